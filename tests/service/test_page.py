"""The session's page over HTTP: what it reports, and its stop."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.local_service import NOW, UNKNOWN_ID, InProcessService
from tests.service.pages import ServedSession
from tests.service.test_preview import FOREIGN


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def session(clock: FakeClock) -> ServedSession:
    return ServedSession(clock=clock)


def test_the_title_contains_state_and_name(session: ServedSession) -> None:
    assert "<title>Ready · login works</title>" in session.get(session.page).text


def test_the_facts_name_the_device_also_of_an_ended_session(
    session: ServedSession,
) -> None:
    assert "<dd>Pixel 8 (fake)</dd>" in session.get(session.page).text
    session.fail("the device died")
    session.record.forget_programs()
    assert "<dd>Pixel 8 (fake)</dd>" in session.get(session.page).text


def test_the_screenshot_of_a_running_device_links_to_its_live_preview(
    session: ServedSession,
) -> None:
    session.boot({"webPreviewUrl": session.preview})
    path = session.preview.removeprefix(session.base_url)

    text = session.get(session.page).text

    assert f'<a href="{path}"><img src="{path}/screen" alt="Screen of Pixel 8">' in text
    assert (
        session.get(f"{session.preview}/screen").headers["Content-Type"] == "image/png"
    )
    session.fail("the device died")
    assert path not in session.get(session.page).text


def test_a_failed_session_shows_its_last_picture(session: ServedSession) -> None:
    seen = session.get(f"{session.preview}/screen").content
    session.fail("the controller died")
    session.record.device = None

    assert f'<img src="{session.id}/picture"' in session.get(session.page).text
    picture = session.get(f"{session.page}/picture")
    assert picture.content == seen
    assert picture.headers["Content-Type"] == "image/png"


def test_a_session_that_nobody_saw_has_no_picture(session: ServedSession) -> None:
    session.fail("the device died")

    assert "<img" not in session.get(session.page).text
    assert session.get(f"{session.page}/picture").status_code == 404


def test_a_running_session_has_no_last_picture(session: ServedSession) -> None:
    session.get(f"{session.preview}/screen")

    assert "/picture" not in session.get(session.page).text
    assert session.get(f"{session.page}/picture").status_code == 404


def test_a_preview_elsewhere_is_not_shown(session: ServedSession) -> None:
    session.boot({"webPreviewUrl": "https://elsewhere.example/preview/secret"})

    assert "elsewhere" not in session.get(session.page).text


def test_a_session_without_a_name_is_called_by_its_id() -> None:
    session = ServedSession(name=None)

    assert f"<h1>Session {session.id[:8]}</h1>" in session.get(session.page).text


def test_the_timeline_reports_in_order_what_happened(clock: FakeClock) -> None:
    session = ServedSession(clock=clock, ready=False)
    session.note(NOW + 2, "app installed")
    session.note(NOW + 0.5, "device: Pixel <8>")
    clock.now += 3
    session.boot({})
    session.get(session.page)
    clock.now += 120
    session.fail("the controller died\nand this is what it said")
    timeline = (
        session.get(session.page)
        .text.partition('id="timeline"')[2]
        .partition("</ol>")[0]
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
    session: ServedSession, text: str, shown: str
) -> None:
    session.note(NOW, text)
    session.fail(f"{text}\n{text}")
    page = session.get(session.page).text
    listed = session.get(f"{session.base_url}/").text

    assert f"<span>{shown}</span></li>" in page
    assert f"Failed: {shown}.</h2><pre>{shown}</pre>" in page
    assert f"<span>{shown}</span></li>" in listed


def test_the_log_on_the_page_shows_no_directories_of_the_machine(
    session: ServedSession,
) -> None:
    session.print(
        "at Server (/usr/lib/node_modules/appium/server.js:12:3)\n"
        "--> GET /session/1/element/2/text\n"
        "//android.widget.TextView"
    )

    assert (
        "at Server (…/server.js:12:3)\n"
        "--&gt; GET /session/1/element/2/text\n"
        "//android.widget.TextView</pre>"
    ) in session.get(session.page).text


def test_programs_read_paths_unchanged(session: ServedSession) -> None:
    session.print("at /usr/lib/server.js")
    session.fail("no such build in /work/builds")

    facts = session.get(f"{session.page}/facts").json()["data"]
    assert facts["reason"] == "no such build in /work/builds"
    assert session.get(f"{session.page}/log").text == "at /usr/lib/server.js"


def test_times_are_absolute_without_a_script_and_for_tooltips(clock: FakeClock) -> None:
    session = ServedSession(clock=clock)
    moment = datetime.fromtimestamp(NOW, UTC)
    day = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    iso = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    time = f'<time datetime="{iso}" data-since="{NOW:.0f}" title="{day}">{day}</time>'

    assert f"<dt>Created</dt><dd>{time}</dd>" in session.get(session.page).text
    assert (
        f"Android · agent-device · {time}" in session.get(f"{session.base_url}/").text
    )
    assert f'title="{day}">+0.0 s</time>' in session.get(session.page).text


def test_the_details_say_when_a_session_failed(
    session: ServedSession, clock: FakeClock
) -> None:
    clock.now += 5
    session.fail("the device died")

    assert '<dt>Failed</dt><dd><time datetime="' in session.get(session.page).text
    assert f'data-since="{NOW + 5:.0f}"' in session.get(session.page).text


def test_a_failure_is_listed_before_its_consequences(clock: FakeClock) -> None:
    session = ServedSession(clock=clock)
    session.get(session.page)
    session.fail("the browser ended", at=NOW + 5)
    session.note(NOW + 5.1, "processes exited")
    clock.now += 6
    timeline = session.get(f"{session.page}/facts").json()["data"]["timeline"]

    assert [entry["text"] for entry in timeline][-2:] == [
        "session failed: the browser ended",
        "processes exited",
    ]


def test_the_list_shows_all_sessions_with_their_states_newest_first(
    session: ServedSession, clock: FakeClock
) -> None:
    session.fail("the device <died>\n  signal 9")
    clock.now += 1
    other = session.service.created(platform="ios", type="appium")
    session.service.stop(other)
    listed = (
        session.get(f"{session.base_url}/")
        .text.partition('<ol id="sessions"')[2]
        .partition("</ol>")[0]
    )
    newest, oldest = listed.split("<li>")[1:]

    assert f'<a href="sessions/{other}">Session {other[:8]}</a>' in newest
    assert '<span class="state stopped">Stopped</span>' in newest
    assert f'<a href="sessions/{session.id}">login works</a>' in oldest
    assert '<span class="state errored">Failed</span>' in oldest
    assert "<span>the device &lt;died&gt;</span>" in oldest


def test_a_service_without_sessions_has_an_empty_list() -> None:
    with closing(InProcessService()) as service:
        page = service.send("GET", "/", token=None).text

    assert 'id="none" class="hint" data-live="attributes" >No sessions yet' in page


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example"])
def test_the_list_is_not_served_for_a_foreign_host(
    session: ServedSession, host: str
) -> None:
    reply = session.get(f"{session.base_url}/", headers={"Host": host})

    assert reply.status_code == 421
    assert session.id not in reply.text


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("the device died", "Failed: the device died."),
        ("no such version. Leave it out.", "Failed: no such version. Leave it out."),
        ("is it on?", "Failed: is it on?"),
    ],
)
def test_a_failed_session_says_why_in_one_sentence(
    session: ServedSession, reason: str, sentence: str
) -> None:
    session.fail(reason)
    text = session.get(session.page).text

    assert f'<h2 tabindex="-1">{sentence}</h2></section>' in text
    assert text.count(reason) == 1


def test_a_multiline_reason_is_shown_unchanged(session: ServedSession) -> None:
    session.fail("the controller died:\n  at <Server> (node:net)\n  at listen")
    text = session.get(session.page).text

    assert (
        '<h2 tabindex="-1">Failed: the controller died:</h2><pre>  at &lt;Server&gt; (node:net)\n  at listen</pre>'
        in text
    )


def test_the_time_left_follows_from_the_limits(
    session: ServedSession, clock: FakeClock
) -> None:
    session = ServedSession(clock=clock, maxDurationMinutes=40, maxIdleTimeMinutes=5)
    session.get(session.page)
    session.record.last_request = NOW + 60
    text = session.get(session.page).text

    assert f'<span class="left" data-until="{NOW + 40 * 60:.0f}">' in text
    assert f'<span class="left" data-until="{NOW + 60 + 5 * 60:.0f}">' in text


def test_an_ended_session_has_no_time_left_and_no_stop(session: ServedSession) -> None:
    session.fail("the device died")
    text = session.get(session.page).text

    assert "data-until" not in text
    assert '<div id="stopping" data-live="attributes" hidden>' in text


def test_the_log_is_shown_and_available_as_text(session: ServedSession) -> None:
    session.print("one\n<two>\nat https://user:hunter2@example.com")

    assert (
        "one\n&lt;two&gt;\nat https://***@example.com</pre>"
        in session.get(session.page).text
    )
    assert (
        session.get(f"{session.page}/log").text
        == "one\n<two>\nat https://***@example.com"
    )
    assert (
        session.get(f"{session.page}/log").headers["Content-Type"]
        == "text/plain; charset=utf-8"
    )


def test_a_session_with_a_silent_controller_has_no_log(session: ServedSession) -> None:
    assert (
        'id="said" class="card" data-live="attributes" hidden'
        in session.get(session.page).text
    )


def test_the_details_are_available_as_json(session: ServedSession) -> None:
    session.fail("the device died\nat once")
    facts = session.get(f"{session.page}/facts").json()["data"]

    assert (facts["id"], facts["status"], facts["reason"]) == (
        session.id,
        "errored",
        "the device died\nat once",
    )
    assert [entry["text"] for entry in facts["timeline"]] == [
        "session created",
        "session failed: the device died",
    ]


def test_no_page_shows_a_secret() -> None:
    session = ServedSession(
        applicationArchiveUrl="https://user:hunter2@files.example.com/hunter3/notes.zip?key=hunter4"
    )
    session.boot(
        {"toolsUrl": "https://hunter5.example.com", "toolsAuthToken": "hunter6"}
    )
    session.note(NOW, "downloaded https://hunter7@files.example.com/?token=hunter8")
    texts = [
        session.get(address).text
        for address in (
            session.page,
            f"{session.page}/facts",
            session.preview,
            f"{session.base_url}/",
        )
    ]

    assert not [text for text in texts if "hunter" in text]
    assert "notes.zip from files.example.com" in texts[0]


@pytest.mark.parametrize(("session_id", "status"), [(UNKNOWN_ID, 404), ("1", 400)])
def test_an_unknown_session_is_refused_with_a_message(
    session: ServedSession, session_id: str, status: int
) -> None:
    reply = session.get(f"{session.base_url}/sessions/{session_id}")

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
    session: ServedSession, path: str, root: str
) -> None:
    reply = session.get(
        f"{session.base_url}{path}", headers={"Accept": "text/html,*/*"}
    )

    assert reply.status_code == 404
    assert "<h1>Not found</h1>" in reply.text
    assert f'<a class="button" href="{root}">All sessions</a>' in reply.text


@pytest.mark.parametrize(
    ("method", "accept"), [("GET", "*/*"), ("POST", "text/html,*/*")]
)
def test_a_program_at_an_unknown_address_receives_json(
    session: ServedSession, method: str, accept: str
) -> None:
    reply = session.send(
        method, f"{session.base_url}/nothing/here", headers={"Accept": accept}
    )

    assert reply.status_code == 404
    assert reply.json()["errors"][0]["code"] == "NOT_FOUND"


def test_a_refusal_escapes_the_path(session: ServedSession) -> None:
    assert "&lt;b&gt;" in session.get(f"{session.base_url}/sessions/%3Cb%3E").text


def test_the_page_stops_its_session(session: ServedSession) -> None:
    assert session.post(f"{session.page}/stop", {}).status_code == 200
    assert session.status == "stopped"
    assert "Stopped: requested on the session page" in session.get(session.page).text


@pytest.mark.parametrize("headers", FOREIGN)
def test_another_site_cannot_stop_a_session(
    session: ServedSession, headers: Mapping[str, str | None]
) -> None:
    assert session.post(f"{session.page}/stop", {}, **headers).status_code == 403
    assert session.status == "in-progress"


def test_a_form_cannot_stop_a_session(session: ServedSession) -> None:
    assert (
        session.post(
            f"{session.page}/stop", {}, Content_Type="application/x-www-form-urlencoded"
        ).status_code
        == 400
    )
    assert session.status == "in-progress"


def test_a_link_cannot_stop_a_session(session: ServedSession) -> None:
    assert session.get(f"{session.page}/stop").status_code == 405
    assert session.status == "in-progress"


def test_stopping_twice_changes_nothing(
    session: ServedSession, clock: FakeClock
) -> None:
    session.fail("the device died")
    session.get(session.page)
    clock.now += 1
    session.post(f"{session.page}/stop", {})

    assert "Failed: the device died" in session.get(session.page).text
