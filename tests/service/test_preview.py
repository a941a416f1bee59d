"""The live preview over HTTP: access and responses."""

import asyncio
import gc
from collections.abc import Mapping

import httpx
import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import Screenshot
from pytest_device.service.preview import (
    KEEP_SECONDS,
    SECONDS_BETWEEN,
    SHARE,
    Screens,
)
from pytest_device.service.runners.base import Running
from tests.service.stage import HEIGHT, WIDTH, DrawnDevice, Stage
from tests.service.world import UNKNOWN_ID, Clock

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
def stage() -> Stage:
    return Stage()


def message(reply: httpx.Response) -> str:
    (only,) = reply.json()["errors"]
    return str(only["message"])


def test_the_url_alone_gives_access_to_the_device(stage: Stage) -> None:
    reply = stage.get(stage.preview)

    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "Pixel 8 · Android" in reply.text


def test_without_the_key_nothing_is_shown(stage: Stage) -> None:
    other = Stage().preview.rpartition("/")[2]
    wrong = [
        f"{stage.preview}0",
        stage.preview[:-1],
        stage.preview.replace(stage.id, UNKNOWN_ID),
        f"{stage.preview}é",
    ]
    wrong.append(stage.preview.rpartition("/")[0] + f"/{other}")

    for address in wrong:
        reply = stage.get(address)
        assert reply.status_code == 404
        assert "no preview at this address" in reply.text
        assert stage.get(f"{address}/screen").status_code == 404
        assert stage.post(f"{address}/tap", {"x": 0.5, "y": 0.5}).status_code == 404
    assert not stage.device.taps


def test_a_page_loads_nothing_from_other_hosts_and_sends_no_referrer(
    stage: Stage,
) -> None:
    for address in (
        stage.preview,
        stage.page,
        f"{stage.preview}/screen",
        f"{stage.preview}0",
    ):
        headers = stage.get(address).headers
        assert headers["Content-Security-Policy"].startswith(
            "default-src 'none'; style-src 'self'; script-src 'self';"
        )
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize(
    "name", ["preview/script.js", "preview/style.css", "page/live.js", "page/style.css"]
)
def test_the_files_of_a_page_are_served(stage: Stage, name: str) -> None:
    reply = stage.get(f"{stage.base_url}/assets/{name}")

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
def test_no_other_file_is_served(stage: Stage, name: str) -> None:
    assert stage.get(f"{stage.base_url}/assets/{name}").status_code == 404


def test_the_screenshot_shows_the_devices_screen(stage: Stage) -> None:
    reply = stage.get(f"{stage.preview}/screen")

    assert reply.headers["Content-Type"] == "image/png"
    assert reply.content == asyncio.run(DrawnDevice().screenshot())


def test_an_unchanged_screenshot_is_not_sent_again(stage: Stage) -> None:
    etag = stage.get(f"{stage.preview}/screen").headers["ETag"]
    reply = stage.get(f"{stage.preview}/screen", headers={"If-None-Match": etag})

    assert (reply.status_code, reply.content) == (304, b"")


def test_an_unchanged_page_is_not_sent_again(stage: Stage) -> None:
    etag = stage.get(stage.preview).headers["ETag"]

    assert stage.get(stage.preview, headers={"If-None-Match": etag}).status_code == 304


def test_a_failed_screenshot_is_reported_with_the_reason(stage: Stage) -> None:
    stage.device.broken = "adb: device offline, see https://user:hunter2@example.com"
    reply = stage.get(f"{stage.preview}/screen")

    assert reply.status_code == 503
    assert message(reply) == "adb: device offline, see https://***@example.com"


def test_without_a_device_there_is_no_screenshot() -> None:
    stage = Stage(ready=False)
    reply = stage.get(f"{stage.preview}/screen")

    assert (reply.status_code, reply.content) == (204, b"")
    assert "The device is starting" in stage.get(stage.preview).text
    assert not stage.device.pictures


def test_a_device_without_a_screen_is_distinguished(stage: Stage) -> None:
    stage.runner.seen = False

    assert "has no screen" in stage.get(stage.preview).text


def test_a_tap_has_the_right_position(stage: Stage) -> None:
    assert stage.post(f"{stage.preview}/tap", {"x": 0.25, "y": 1}).status_code == 204
    assert stage.device.taps == [(0.25, 1)]


def test_a_tap_causes_a_new_screenshot(stage: Stage) -> None:
    before = stage.get(f"{stage.preview}/screen").content
    stage.post(f"{stage.preview}/tap", {"x": 0.5, "y": 0.5})

    assert stage.get(f"{stage.preview}/screen").content != before


def test_the_device_is_rotated(stage: Stage) -> None:
    assert (
        stage.post(
            f"{stage.preview}/orientation", {"orientation": "LANDSCAPE"}
        ).status_code
        == 204
    )
    assert stage.device.held == "LANDSCAPE"


@pytest.mark.parametrize("headers", FOREIGN)
def test_another_site_cannot_touch_the_device(
    stage: Stage, headers: Mapping[str, str | None]
) -> None:
    replies = [
        stage.post(f"{stage.preview}/tap", {"x": 0.5, "y": 0.5}, **headers),
        stage.post(
            f"{stage.preview}/orientation", {"orientation": "LANDSCAPE"}, **headers
        ),
    ]

    assert [reply.status_code for reply in replies] == [403, 403]
    assert (stage.device.taps, stage.device.held) == ([], "PORTRAIT")


def test_a_form_cannot_touch_the_device(stage: Stage) -> None:
    reply = stage.post(
        f"{stage.preview}/tap", {"x": 0.5, "y": 0.5}, Content_Type="text/plain"
    )

    assert reply.status_code == 400
    assert not stage.device.taps


@pytest.mark.parametrize("body", NO_POINTS)
def test_a_point_off_the_screen_is_refused(stage: Stage, body: object) -> None:
    assert stage.post(f"{stage.preview}/tap", body).status_code == 400
    assert not stage.device.taps


@pytest.mark.parametrize("orientation", ["portrait", "", None, 90, ["LANDSCAPE"]])
def test_an_unknown_orientation_is_refused(stage: Stage, orientation: object) -> None:
    reply = stage.post(f"{stage.preview}/orientation", {"orientation": orientation})

    assert reply.status_code == 400
    assert message(reply) == "orientation must be one of PORTRAIT, LANDSCAPE"


def test_a_refusal_by_the_device_has_a_reason(stage: Stage) -> None:
    stage.device.broken = "simctl cannot tap"
    replies = [
        stage.post(f"{stage.preview}/tap", {"x": 0.5, "y": 0.5}),
        stage.post(f"{stage.preview}/orientation", {"orientation": "LANDSCAPE"}),
    ]

    assert [(reply.status_code, message(reply)) for reply in replies] == [
        (409, "simctl cannot tap")
    ] * 2


def test_an_ended_session_cannot_be_tapped(stage: Stage) -> None:
    stage.runner.fail("the device died")
    reply = stage.post(f"{stage.preview}/tap", {"x": 0.5, "y": 0.5})

    assert reply.status_code == 409
    assert "has ended" in message(reply)
    assert not stage.device.taps


def test_an_ended_session_still_reports_its_reason(stage: Stage) -> None:
    stage.runner.fail("the device <died>")

    assert "Failed: the device &lt;died&gt;" in stage.get(stage.preview).text


def test_watching_and_tapping_do_not_keep_a_session_alive() -> None:
    clock = Clock()
    stage = Stage(clock=clock, maxDurationMinutes=30, maxIdleTimeMinutes=1)
    stage.get(stage.preview)
    clock.now += 59
    stage.get(f"{stage.preview}/screen")
    stage.post(f"{stage.preview}/tap", {"x": 0.5, "y": 0.5})
    clock.now += 2

    assert "controller not used for 1 min" in stage.get(stage.preview).text


def test_the_rule_of_idle_time_is_reported() -> None:
    stage = Stage(maxIdleTimeMinutes=7)

    assert "when its controller is not used for 7 min" in stage.get(stage.preview).text


def test_a_preview_only_session_reports_no_idle_limit() -> None:
    stage = Stage(type="web-preview-only")
    text = stage.get(stage.preview).text

    assert "has no controller" in text
    assert "not used" not in text


class Slow(DrawnDevice):
    """A device whose pictures take a second each."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    async def screenshot(self) -> bytes:
        await self.clock.sleep(1)
        return await super().screenshot()


def test_all_viewers_share_one_screenshot() -> None:
    clock = Clock()
    device = Slow(clock)
    screens = Screens(clock)

    async def look() -> None:
        await asyncio.gather(*(screens.screenshot("1", device) for _ in range(20)))

    asyncio.run(look())

    assert device.pictures == 1


def test_all_viewers_share_one_failure() -> None:
    device = DrawnDevice(broken="no screen")
    screens = Screens(Clock())

    async def look() -> list[object]:
        return await asyncio.gather(
            *(screens.screenshot("1", device) for _ in range(5)), return_exceptions=True
        )

    assert [str(error) for error in asyncio.run(look())] == ["no screen"] * 5
    assert device.pictures == 1


def test_screenshots_are_taken_at_a_modest_rate() -> None:
    clock, device = Clock(), DrawnDevice()
    screens = Screens(clock)
    for seconds in (0, SECONDS_BETWEEN * 0.9, SECONDS_BETWEEN * 0.2):
        clock.now += seconds
        asyncio.run(screens.screenshot("1", device))

    assert device.pictures == 2


def test_slow_screenshots_are_taken_less_often() -> None:
    clock = Clock()
    device = Slow(clock)
    screens = Screens(clock)
    for seconds in (0, SHARE * 0.9, SHARE * 0.2):
        clock.now += seconds
        asyncio.run(screens.screenshot("1", device))

    assert device.pictures == 2


def test_an_action_during_a_screenshot_is_visible_in_the_next() -> None:
    clock = Clock()
    device = Slow(clock)
    screens = Screens(clock)

    async def tap_meanwhile() -> None:
        taking = asyncio.create_task(screens.screenshot("1", device))
        await asyncio.sleep(0)
        screens.has_changed("1")
        await taking
        await screens.screenshot("1", device)

    asyncio.run(tap_meanwhile())

    assert device.pictures == 2


def test_an_unrequested_screenshot_is_dropped() -> None:
    clock = Clock()
    screens = Screens(clock)
    data = asyncio.run(screens.screenshot("1", DrawnDevice())).data
    assert is_held(data)
    clock.now += KEEP_SECONDS + 1
    asyncio.run(screens.screenshot("2", DrawnDevice()))

    assert not is_held(data)


def is_held(data: bytes) -> bool:
    """Return whether a screenshot with these data is still in memory."""
    gc.collect()
    return any(one.data is data for one in gc.get_objects() if type(one) is Screenshot)


def test_invalid_image_data_is_not_shown() -> None:
    class Odd(DrawnDevice):
        async def screenshot(self) -> bytes:
            return b"<svg onload='alert(1)'/>"

    with pytest.raises(ControllerError, match="did not return a PNG or JPEG"):
        asyncio.run(Screens().screenshot("1", Odd()))


def test_a_rotated_device_has_a_landscape_screenshot(stage: Stage) -> None:
    stage.post(f"{stage.preview}/orientation", {"orientation": "LANDSCAPE"})
    png = stage.get(f"{stage.preview}/screen").content

    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (HEIGHT, WIDTH)


def test_a_session_that_becomes_ready_shows_its_device() -> None:
    stage = Stage(ready=False)
    stage.runner.boot = Running({})

    assert "Pixel 8" in stage.get(stage.preview).text
