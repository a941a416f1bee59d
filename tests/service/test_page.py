"""The session's page over HTTP: what it reports, and its stop."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_device.service.accounts import Accounts
from pytest_device.service.api import create_app
from pytest_device.service.page import STOPPED_HERE
from pytest_device.service.runners.base import Failed, LogEntry, Running
from pytest_device.service.sessions import Sessions
from pytest_device.spec import Status
from tests.service.stage import Stage
from tests.service.test_preview import FOREIGN
from tests.service.world import ACCOUNTS, APP_ID, NOW, UNKNOWN_ID, Clock, memory_store


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stage(clock: Clock) -> Stage:
    return Stage(clock=clock)


def status(stage: Stage) -> Status:
    session = stage.sessions.get(stage.id)
    assert session
    return session.status


def test_the_title_contains_state_and_name(stage: Stage) -> None:
    assert "<title>Ready · login works</title>" in stage.get(stage.page).text


def test_the_facts_name_the_device_while_there_is_one(stage: Stage) -> None:
    assert "<dd>Pixel 8 (drawn)</dd>" in stage.get(stage.page).text
    stage.runner.fail("the device died")
    assert "Pixel 8" not in stage.get(stage.page).text


def test_the_screenshot_of_a_running_device_links_to_its_live_preview(
    stage: Stage,
) -> None:
    stage.runner.boot = Running({"webPreviewUrl": stage.preview})
    path = stage.preview.removeprefix(stage.base_url)

    text = stage.get(stage.page).text

    assert f'<a href="{path}"><img src="{path}/screen" alt="Screen of Pixel 8">' in text
    assert stage.get(f"{stage.preview}/screen").headers["Content-Type"] == "image/png"
    stage.runner.fail("the device died")
    assert path not in stage.get(stage.page).text


def test_a_failed_session_shows_its_last_picture(stage: Stage) -> None:
    seen = stage.get(f"{stage.preview}/screen").content
    stage.runner.fail("the controller died")
    stage.runner.seen = False

    assert f'<img src="{stage.id}/picture"' in stage.get(stage.page).text
    picture = stage.get(f"{stage.page}/picture")
    assert picture.content == seen
    assert picture.headers["Content-Type"] == "image/png"


def test_a_session_that_nobody_saw_has_no_picture(stage: Stage) -> None:
    stage.runner.fail("the device died")

    assert "<img" not in stage.get(stage.page).text
    assert stage.get(f"{stage.page}/picture").status_code == 404


def test_a_running_session_has_no_last_picture(stage: Stage) -> None:
    stage.get(f"{stage.preview}/screen")

    assert "/picture" not in stage.get(stage.page).text
    assert stage.get(f"{stage.page}/picture").status_code == 404


def test_a_preview_elsewhere_is_not_shown(stage: Stage) -> None:
    stage.runner.boot = Running(
        {"webPreviewUrl": "https://elsewhere.example/preview/secret"}
    )

    assert "elsewhere" not in stage.get(stage.page).text


def test_a_session_without_a_name_is_called_by_its_id() -> None:
    stage = Stage(name=None)

    assert f"<h1>Session {stage.id[:8]}</h1>" in stage.get(stage.page).text


def test_the_timeline_reports_in_order_what_happened(clock: Clock) -> None:
    stage = Stage(clock=clock, ready=False)
    stage.runner.reported = [
        LogEntry(NOW + 2, "app installed"),
        LogEntry(NOW + 0.5, "device: Pixel <8>"),
    ]
    clock.now += 3
    stage.runner.boot = Running({})
    stage.get(stage.page)
    clock.now += 120
    stage.runner.fail("the controller died\nand this is what it said")
    timeline = (
        stage.get(stage.page).text.partition('id="timeline"')[2].partition("</ol>")[0]
    )
    reported = [entry.partition("</time>")[::2] for entry in timeline.split("<li>")[1:]]

    assert [
        (
            when.rpartition(">")[2],
            text.removeprefix("<span>").removesuffix("</span></li>"),
        )
        for when, text in reported
    ] == [
        ("+0.0 s", "session created"),
        ("+0.5 s", "device: Pixel &lt;8&gt;"),
        ("+2.0 s", "app installed"),
        ("+3.0 s", "session ready"),
        ("+2 min 3 s", "session failed"),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "device: Pixel 8 (chromium: /usr/lib/chromium/chromium, Chromium 153)",
            "device: Pixel 8 (chromium: …/chromium, Chromium 153)",
        ),
        (
            "the driver is not installed in ~/.appium",
            "the driver is not installed in …/.appium",
        ),
        (f"no app in {Path.home()}/a/notes.apk", "no app in …/notes.apk"),
        (
            "no such build in /work/builds; there are 2",
            "no such build in …/builds; there are 2",
        ),
        ("opened file:///srv/builds/app.zip", "opened file://…/app.zip"),
        (r"no file C:\Users\Ada\notes.apk", "no file …/notes.apk"),
        (
            "downloaded https://files.example.com/a/notes.zip in 1.0 s",
            "downloaded https://files.example.com/a/notes.zip in 1.0 s",
        ),
        ("test suite/test_login.py::test_it", "test suite/test_login.py::test_it"),
    ],
)
def test_the_page_shows_no_directories_of_the_machine(
    stage: Stage, text: str, shown: str
) -> None:
    stage.runner.reported = [LogEntry(NOW, text)]
    stage.runner.fail(f"{text}\n{text}")
    page = stage.get(stage.page).text
    listed = stage.get(f"{stage.base_url}/").text

    assert f"<span>{shown}</span></li>" in page
    assert f"Failed: {shown}.</h2><pre>{shown}</pre>" in page
    assert f"<span>{shown}</span></li>" in listed


def test_the_log_on_the_page_shows_no_directories_of_the_machine(stage: Stage) -> None:
    stage.runner.said = (
        "at Server (/usr/lib/node_modules/appium/server.js:12:3)\n"
        "--> GET /session/1/element/2/text\n"
        "//android.widget.TextView"
    )

    assert (
        "at Server (…/server.js:12:3)\n"
        "--&gt; GET /session/1/element/2/text\n"
        "//android.widget.TextView</pre>"
    ) in stage.get(stage.page).text


def test_programs_read_paths_unchanged(stage: Stage) -> None:
    stage.runner.said = "at /usr/lib/server.js"
    stage.runner.fail("no such build in /work/builds")

    facts = stage.get(f"{stage.page}/facts").json()["data"]
    assert facts["reason"] == "no such build in /work/builds"
    assert stage.get(f"{stage.page}/log").text == "at /usr/lib/server.js"


def test_times_are_absolute_without_a_script_and_for_tooltips(clock: Clock) -> None:
    stage = Stage(clock=clock)
    moment = datetime.fromtimestamp(NOW, UTC)
    day = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    iso = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    time = f'<time datetime="{iso}" data-since="{NOW:.0f}" title="{day}">{day}</time>'

    assert f"<dt>Created</dt><dd>{time}</dd>" in stage.get(stage.page).text
    assert f"Android · agent-device · {time}" in stage.get(f"{stage.base_url}/").text
    assert f'title="{day}">+0.0 s</time>' in stage.get(stage.page).text


def test_the_details_say_when_a_session_failed(stage: Stage, clock: Clock) -> None:
    clock.now += 5
    stage.runner.fail("the device died")

    assert '<dt>Failed</dt><dd><time datetime="' in stage.get(stage.page).text
    assert f'data-since="{NOW + 5:.0f}"' in stage.get(stage.page).text


def test_a_failure_is_listed_before_its_consequences(clock: Clock) -> None:
    stage = Stage(clock=clock)
    stage.get(stage.page)
    stage.runner.boot = Failed("the browser ended", at=NOW + 5)
    stage.runner.reported = [LogEntry(NOW + 5.1, "processes exited")]
    clock.now += 6
    timeline = stage.get(f"{stage.page}/facts").json()["data"]["timeline"]

    assert [entry["text"] for entry in timeline][-2:] == [
        "session failed: the browser ended",
        "processes exited",
    ]


def test_the_list_shows_all_sessions_with_their_states_newest_first(
    stage: Stage, clock: Clock
) -> None:
    stage.runner.fail("the device <died>\n  signal 9")
    clock.now += 1
    other = stage.sessions.create(
        {"appId": APP_ID, "platform": "ios", "type": "appium"}, default_minutes=30
    )
    stage.sessions.stop(other.id)
    listed = (
        stage.get(f"{stage.base_url}/")
        .text.partition('<ol id="sessions"')[2]
        .partition("</ol>")[0]
    )
    newest, oldest = listed.split("<li>")[1:]

    assert f'<a href="sessions/{other.id}">Session {other.id[:8]}</a>' in newest
    assert '<span class="state stopped">Stopped</span>' in newest
    assert f'<a href="sessions/{stage.id}">login works</a>' in oldest
    assert '<span class="state errored">Failed</span>' in oldest
    assert "<span>the device &lt;died&gt;</span>" in oldest


def test_a_service_without_sessions_has_an_empty_list(
    stage: Stage, clock: Clock
) -> None:
    none = Sessions(store=memory_store(), runner=stage.runner, clock=clock)
    stage.app = create_app(
        sessions=none, accounts=Accounts(ACCOUNTS), base_url=stage.base_url
    )

    assert (
        'id="none" class="hint" data-live="attributes" >No sessions yet'
        in stage.get(f"{stage.base_url}/").text
    )


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example"])
def test_the_list_is_not_served_for_a_foreign_host(stage: Stage, host: str) -> None:
    reply = stage.get(f"{stage.base_url}/", headers={"Host": host})

    assert reply.status_code == 421
    assert stage.id not in reply.text


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("the device died", "Failed: the device died."),
        ("no such version. Leave it out.", "Failed: no such version. Leave it out."),
        ("is it on?", "Failed: is it on?"),
    ],
)
def test_a_failed_session_says_why_in_one_sentence(
    stage: Stage, reason: str, sentence: str
) -> None:
    stage.runner.fail(reason)
    text = stage.get(stage.page).text

    assert f'<h2 tabindex="-1">{sentence}</h2></section>' in text
    assert text.count(reason) == 1


def test_a_multiline_reason_is_shown_unchanged(stage: Stage) -> None:
    stage.runner.fail("the controller died:\n  at <Server> (node:net)\n  at listen")
    text = stage.get(stage.page).text

    assert (
        '<h2 tabindex="-1">Failed: the controller died:</h2><pre>  at &lt;Server&gt; (node:net)\n  at listen</pre>'
        in text
    )


def test_the_time_left_follows_from_the_limits(stage: Stage, clock: Clock) -> None:
    stage = Stage(clock=clock, maxDurationMinutes=40, maxIdleTimeMinutes=5)
    stage.get(stage.page)
    stage.runner.used = NOW + 60
    text = stage.get(stage.page).text

    assert f'<span class="left" data-until="{NOW + 40 * 60:.0f}">' in text
    assert f'<span class="left" data-until="{NOW + 60 + 5 * 60:.0f}">' in text


def test_an_ended_session_has_no_time_left_and_no_stop(stage: Stage) -> None:
    stage.runner.fail("the device died")
    text = stage.get(stage.page).text

    assert "data-until" not in text
    assert '<div id="stopping" data-live="attributes" hidden>' in text


def test_the_log_is_shown_and_available_as_text(stage: Stage) -> None:
    stage.runner.said = "one\n<two>\nat https://user:hunter2@example.com"

    assert (
        "one\n&lt;two&gt;\nat https://***@example.com</pre>"
        in stage.get(stage.page).text
    )
    assert (
        stage.get(f"{stage.page}/log").text == "one\n<two>\nat https://***@example.com"
    )
    assert (
        stage.get(f"{stage.page}/log").headers["Content-Type"]
        == "text/plain; charset=utf-8"
    )


def test_a_session_with_a_silent_controller_has_no_log(stage: Stage) -> None:
    assert (
        'id="said" class="card" data-live="attributes" hidden'
        in stage.get(stage.page).text
    )


def test_the_details_are_available_as_json(stage: Stage) -> None:
    stage.runner.fail("the device died\nat once")
    facts = stage.get(f"{stage.page}/facts").json()["data"]

    assert (facts["id"], facts["status"], facts["reason"]) == (
        stage.id,
        "errored",
        "the device died\nat once",
    )
    assert [entry["text"] for entry in facts["timeline"]] == [
        "session created",
        "session failed: the device died",
    ]


def test_no_page_shows_a_secret() -> None:
    stage = Stage(
        applicationArchiveUrl="https://user:hunter2@files.example.com/hunter3/notes.zip?key=hunter4"
    )
    stage.runner.boot = Running(
        {"toolsUrl": "https://hunter5.example.com", "toolsAuthToken": "hunter6"}
    )
    stage.runner.reported = [
        LogEntry(NOW, "downloaded https://hunter7@files.example.com/?token=hunter8")
    ]
    texts = [
        stage.get(address).text
        for address in (
            stage.page,
            f"{stage.page}/facts",
            stage.preview,
            f"{stage.base_url}/",
        )
    ]

    assert not [text for text in texts if "hunter" in text]
    assert "notes.zip from files.example.com" in texts[0]


@pytest.mark.parametrize(("session_id", "status"), [(UNKNOWN_ID, 404), ("1", 400)])
def test_an_unknown_session_is_refused_with_a_message(
    stage: Stage, session_id: str, status: int
) -> None:
    reply = stage.get(f"{stage.base_url}/sessions/{session_id}")

    assert reply.status_code == status
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "session" in reply.text


@pytest.mark.parametrize(
    ("path", "root"),
    [
        (f"/sessions/{UNKNOWN_ID}", "../"),
        (f"/preview/{UNKNOWN_ID}/key", "../../"),
        ("/nothing/here", "/"),
    ],
)
def test_an_unknown_address_leads_to_the_list(
    stage: Stage, path: str, root: str
) -> None:
    reply = stage.get(f"{stage.base_url}{path}", headers={"Accept": "text/html,*/*"})

    assert reply.status_code == 404
    assert "<h1>Not found</h1>" in reply.text
    assert f'<a class="button" href="{root}">All sessions</a>' in reply.text


@pytest.mark.parametrize(
    ("method", "accept"), [("GET", "*/*"), ("POST", "text/html,*/*")]
)
def test_a_program_at_an_unknown_address_receives_json(
    stage: Stage, method: str, accept: str
) -> None:
    reply = stage.send(
        method, f"{stage.base_url}/nothing/here", headers={"Accept": accept}
    )

    assert reply.status_code == 404
    assert reply.json()["errors"][0]["code"] == "NOT_FOUND"


def test_a_refusal_escapes_the_path(stage: Stage) -> None:
    assert "&lt;b&gt;" in stage.get(f"{stage.base_url}/sessions/%3Cb%3E").text


def test_the_page_stops_its_session(stage: Stage) -> None:
    assert stage.post(f"{stage.page}/stop", {}).status_code == 200
    assert status(stage) is Status.STOPPED
    assert f"Stopped: {STOPPED_HERE}" in stage.get(stage.page).text


@pytest.mark.parametrize("headers", FOREIGN)
def test_another_site_cannot_stop_a_session(
    stage: Stage, headers: Mapping[str, str | None]
) -> None:
    assert stage.post(f"{stage.page}/stop", {}, **headers).status_code == 403
    assert status(stage) is Status.IN_PROGRESS


def test_a_form_cannot_stop_a_session(stage: Stage) -> None:
    assert (
        stage.post(
            f"{stage.page}/stop", {}, Content_Type="application/x-www-form-urlencoded"
        ).status_code
        == 400
    )
    assert status(stage) is Status.IN_PROGRESS


def test_a_link_cannot_stop_a_session(stage: Stage) -> None:
    assert stage.get(f"{stage.page}/stop").status_code == 405
    assert status(stage) is Status.IN_PROGRESS


def test_stopping_twice_changes_nothing(stage: Stage, clock: Clock) -> None:
    stage.runner.fail("the device died")
    stage.get(stage.page)
    clock.now += 1
    stage.post(f"{stage.page}/stop", {})

    assert "Failed: the device died" in stage.get(stage.page).text
