"""The live preview over HTTP: access and responses."""

import asyncio
import gc
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from pytest_device.service.preview import (
    KEEP_SECONDS,
    MIN_SECONDS_BETWEEN,
    SHARE,
    Screens,
)
from tests.fakes.clock import FakeClock
from tests.fakes.devices import HEIGHT, WIDTH, FakeDevice
from tests.fakes.local_service import NOW, UNKNOWN_ID
from tests.service.pages import ServedSession

FOREIGN: list[Mapping[str, str | None]] = [
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Origin": None},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Sec_Fetch_Site": "none"},
]
NO_POINTS: list[object] = [
    {},
    {"x": 0.5},
    {"x": 0.5, "y": 1.01},
    {"x": -0.01, "y": 0.5},
    {"x": "0.5", "y": 0.5},
    {"x": True, "y": 0.5},
    {"x": None, "y": 0.5},
    [0.5, 0.5],
]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def session(clock: FakeClock) -> ServedSession:
    return ServedSession(clock=clock)


def message(reply: httpx.Response) -> str:
    (only,) = reply.json()["errors"]
    return str(only["message"])


def test_the_url_alone_gives_access_to_the_device(session: ServedSession) -> None:
    reply = session.get(session.preview)

    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "Pixel 8 · Android" in reply.text


def test_without_the_key_nothing_is_shown(session: ServedSession) -> None:
    other = ServedSession().preview.rpartition("/")[2]
    wrong = [
        f"{session.preview}0",
        session.preview[:-1],
        session.preview.replace(session.id, UNKNOWN_ID),
        f"{session.preview}é",
    ]
    wrong.append(session.preview.rpartition("/")[0] + f"/{other}")

    for address in wrong:
        reply = session.get(address)
        assert reply.status_code == 404
        assert "no preview at this address" in reply.text
        assert session.get(f"{address}/screen").status_code == 404
        assert session.post(f"{address}/tap", {"x": 0.5, "y": 0.5}).status_code == 404
    assert not session.device.taps


def test_a_page_loads_nothing_from_other_hosts_and_sends_no_referrer(
    session: ServedSession,
) -> None:
    for address in (
        session.preview,
        session.page,
        f"{session.preview}/screen",
        f"{session.preview}0",
    ):
        headers = session.get(address).headers
        assert headers["Content-Security-Policy"].startswith(
            "default-src 'none'; style-src 'self'; script-src 'self';"
        )
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize(
    "name", ["preview/script.js", "preview/style.css", "page/live.js", "page/style.css"]
)
def test_the_files_of_a_page_are_served(session: ServedSession, name: str) -> None:
    reply = session.get(f"{session.base_url}/assets/{name}")

    assert reply.status_code == 200
    assert reply.headers["Content-Type"].split(";")[0] in {
        "text/javascript",
        "text/css",
    }


@pytest.mark.parametrize(
    "name",
    [
        "preview/__init__.py",
        "preview/..%2f__init__.py",
        "page/session.html",
        "other/style.css",
    ],
)
def test_no_other_file_is_served(session: ServedSession, name: str) -> None:
    assert session.get(f"{session.base_url}/assets/{name}").status_code == 404


def test_the_screenshot_shows_the_devices_screen(session: ServedSession) -> None:
    reply = session.get(f"{session.preview}/screen")

    assert reply.headers["Content-Type"] == "image/png"
    assert reply.content == asyncio.run(FakeDevice().screenshot())


def test_an_unchanged_screenshot_is_not_sent_again(session: ServedSession) -> None:
    etag = session.get(f"{session.preview}/screen").headers["ETag"]
    reply = session.get(f"{session.preview}/screen", headers={"If-None-Match": etag})

    assert (reply.status_code, reply.content) == (304, b"")


def test_an_unchanged_page_is_not_sent_again(session: ServedSession) -> None:
    etag = session.get(session.preview).headers["ETag"]

    assert (
        session.get(session.preview, headers={"If-None-Match": etag}).status_code == 304
    )


def test_a_failed_screenshot_is_reported_with_the_reason(
    session: ServedSession,
) -> None:
    session.device.broken = "adb: device offline, see https://user:hunter2@example.com"
    reply = session.get(f"{session.preview}/screen")

    assert reply.status_code == 503
    assert message(reply) == "adb: device offline, see https://***@example.com"


def test_without_a_device_there_is_no_screenshot() -> None:
    session = ServedSession(ready=False)
    reply = session.get(f"{session.preview}/screen")

    assert (reply.status_code, reply.content) == (204, b"")
    assert "The device is starting" in session.get(session.preview).text
    assert not session.device.pictures


def test_a_device_without_a_screen_is_distinguished(session: ServedSession) -> None:
    session.record.device = None

    assert "has no screen" in session.get(session.preview).text


def test_a_tap_has_the_right_position(session: ServedSession) -> None:
    assert (
        session.post(f"{session.preview}/tap", {"x": 0.25, "y": 1}).status_code == 204
    )
    assert session.device.taps == [(0.25, 1)]


def test_a_tap_causes_a_new_screenshot(session: ServedSession) -> None:
    before = session.get(f"{session.preview}/screen").content
    session.post(f"{session.preview}/tap", {"x": 0.5, "y": 0.5})

    assert session.get(f"{session.preview}/screen").content != before


def test_the_device_is_rotated(session: ServedSession) -> None:
    assert (
        session.post(
            f"{session.preview}/orientation", {"orientation": "LANDSCAPE"}
        ).status_code
        == 204
    )
    assert session.device.held == "LANDSCAPE"


@pytest.mark.parametrize("headers", FOREIGN)
def test_another_site_cannot_touch_the_device(
    session: ServedSession, headers: Mapping[str, str | None]
) -> None:
    replies = [
        session.post(f"{session.preview}/tap", {"x": 0.5, "y": 0.5}, **headers),
        session.post(
            f"{session.preview}/orientation", {"orientation": "LANDSCAPE"}, **headers
        ),
    ]

    assert [reply.status_code for reply in replies] == [403, 403]
    assert (session.device.taps, session.device.held) == ([], "PORTRAIT")


def test_a_form_cannot_touch_the_device(session: ServedSession) -> None:
    reply = session.post(
        f"{session.preview}/tap", {"x": 0.5, "y": 0.5}, Content_Type="text/plain"
    )

    assert reply.status_code == 400
    assert not session.device.taps


@pytest.mark.parametrize("body", NO_POINTS)
def test_a_point_off_the_screen_is_refused(
    session: ServedSession, body: object
) -> None:
    assert session.post(f"{session.preview}/tap", body).status_code == 400
    assert not session.device.taps


@pytest.mark.parametrize("orientation", ["portrait", "", None, 90, ["LANDSCAPE"]])
def test_an_unknown_orientation_is_refused(
    session: ServedSession, orientation: object
) -> None:
    reply = session.post(f"{session.preview}/orientation", {"orientation": orientation})

    assert reply.status_code == 400
    assert message(reply) == "orientation must be one of PORTRAIT, LANDSCAPE"


def test_a_refusal_by_the_device_has_a_reason(session: ServedSession) -> None:
    session.device.broken = "simctl cannot tap"
    replies = [
        session.post(f"{session.preview}/tap", {"x": 0.5, "y": 0.5}),
        session.post(f"{session.preview}/orientation", {"orientation": "LANDSCAPE"}),
    ]

    assert [(reply.status_code, message(reply)) for reply in replies] == [
        (409, "simctl cannot tap")
    ] * 2


def test_an_ended_session_cannot_be_tapped(session: ServedSession) -> None:
    session.fail("the device died")
    reply = session.post(f"{session.preview}/tap", {"x": 0.5, "y": 0.5})

    assert reply.status_code == 409
    assert "has ended" in message(reply)
    assert not session.device.taps


def test_an_ended_session_still_reports_its_reason(session: ServedSession) -> None:
    session.fail("the device <died>")

    assert "Failed: the device &lt;died&gt;" in session.get(session.preview).text


def test_watching_and_tapping_do_not_keep_a_session_alive() -> None:
    clock = FakeClock(NOW)
    session = ServedSession(clock=clock, maxDurationMinutes=30, maxIdleTimeMinutes=1)
    session.get(session.preview)
    clock.now += 59
    session.get(f"{session.preview}/screen")
    session.post(f"{session.preview}/tap", {"x": 0.5, "y": 0.5})
    clock.now += 2

    assert "controller not used for 1 min" in session.get(session.preview).text


def test_the_rule_of_idle_time_is_reported() -> None:
    session = ServedSession(maxIdleTimeMinutes=7)

    assert (
        "when its controller is not used for 7 min" in session.get(session.preview).text
    )


def test_a_preview_only_session_reports_no_idle_limit() -> None:
    session = ServedSession(type="web-preview-only")
    text = session.get(session.preview).text

    assert "has no controller" in text
    assert "not used" not in text


def screens(session: ServedSession, count: int) -> list[httpx.Response]:
    """Send requests for the screenshot at the same time."""

    async def exchange() -> list[httpx.Response]:
        transport = httpx.ASGITransport(session.service.app)
        async with httpx.AsyncClient(transport=transport) as client:
            requests = (client.get(f"{session.preview}/screen") for _ in range(count))
            return await asyncio.gather(*requests)

    return asyncio.run(exchange())


def test_all_viewers_share_one_screenshot(
    session: ServedSession, clock: FakeClock
) -> None:
    session.device.expose = lambda: clock.sleep_async(1)

    replies = screens(session, 20)

    assert {reply.status_code for reply in replies} == {200}
    assert session.device.pictures == 1


def test_all_viewers_share_one_failure(session: ServedSession) -> None:
    session.device.broken = "no screen"

    replies = screens(session, 5)

    assert [message(reply) for reply in replies] == ["no screen"] * 5
    assert session.device.pictures == 1


def test_screenshots_are_taken_at_a_modest_rate(
    session: ServedSession, clock: FakeClock
) -> None:
    pictures = []
    for seconds in (0, MIN_SECONDS_BETWEEN * 0.9, MIN_SECONDS_BETWEEN * 0.2):
        clock.advance(seconds)
        session.get(f"{session.preview}/screen")
        pictures.append(session.device.pictures)

    assert pictures == [1, 1, 2]


def test_slow_screenshots_are_taken_less_often(
    session: ServedSession, clock: FakeClock
) -> None:
    session.device.expose = lambda: clock.sleep_async(1)
    pictures = []
    for seconds in (0, SHARE * 0.9, SHARE * 0.2):
        clock.advance(seconds)
        session.get(f"{session.preview}/screen")
        pictures.append(session.device.pictures)

    assert pictures == [1, 1, 2]


def test_an_action_during_a_screenshot_is_visible_in_the_next(
    session: ServedSession,
) -> None:
    async def tap() -> None:
        transport = httpx.ASGITransport(session.service.app)
        headers = {"Origin": session.base_url, "Sec-Fetch-Site": "same-origin"}
        async with httpx.AsyncClient(transport=transport) as client:
            await client.post(
                f"{session.preview}/tap", json={"x": 0.5, "y": 0.5}, headers=headers
            )

    session.device.expose = tap
    session.get(f"{session.preview}/screen")
    session.device.expose = None
    session.get(f"{session.preview}/screen")

    assert len(session.device.taps) == 1
    assert session.device.pictures == 2


def test_an_unrequested_screenshot_is_dropped(clock: FakeClock) -> None:
    screens = Screens(clock)
    picture = asyncio.run(screens.screenshot("1", FakeDevice()))
    data, kind = picture.data, type(picture)
    assert is_held(data, kind)
    del picture
    clock.advance(KEEP_SECONDS + 1)
    asyncio.run(screens.screenshot("2", FakeDevice()))

    assert not is_held(data, kind)


def is_held(data: bytes, kind: type[Any]) -> bool:
    """Return whether a screenshot with these data is still in memory."""
    gc.collect()
    return any(held.data is data for held in gc.get_objects() if type(held) is kind)


def test_invalid_image_data_is_not_shown(session: ServedSession) -> None:
    session.device.screen = b"<svg onload='alert(1)'/>"
    reply = session.get(f"{session.preview}/screen")

    assert reply.status_code == 503
    assert "did not return a PNG or JPEG" in message(reply)


def test_a_rotated_device_has_a_landscape_screenshot(session: ServedSession) -> None:
    session.post(f"{session.preview}/orientation", {"orientation": "LANDSCAPE"})
    png = session.get(f"{session.preview}/screen").content

    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (HEIGHT, WIDTH)


def test_a_session_that_becomes_ready_shows_its_device() -> None:
    session = ServedSession(ready=False)
    session.boot({})

    assert "Pixel 8" in session.get(session.preview).text
