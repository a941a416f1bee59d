"""A browser as the device of a session."""

import asyncio
import shutil
import socket
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import AppState
from tests.service.devices.phone import APP, BootedDevice, booted
from tests.waiting import eventually

STORE = """
localStorage.kept = sessionStorage.kept = 'yes'; document.cookie = 'kept=yes; max-age=600';
new Promise(done => { indexedDB.open('kept').onsuccess = event => { event.target.result.close(); done() } })
"""
STORED = """indexedDB.databases().then(
    databases => [localStorage.kept, sessionStorage.kept, document.cookie, databases.length])"""
NOTHING = [None, None, "", 0]


@pytest.fixture(scope="module")
def iphone(tmp_path_factory: pytest.TempPathFactory) -> Generator[BootedDevice]:
    with booted(
        tmp_path_factory.mktemp("iphone"), platform="ios", deviceIdentifier="iPhone SE"
    ) as phone:
        yield phone


def test_a_page_sees_the_screen_of_the_phone(phone: BootedDevice) -> None:
    phone.start()

    assert phone.says("[innerWidth, innerHeight, screen.width, screen.height, devicePixelRatio]") == [
        412, 915, 412, 915, 2.625,
    ]  # fmt: skip


def test_the_same_build_installed_again_keeps_its_origin_but_not_its_data(
    phone: BootedDevice, tmp_path: Path
) -> None:
    phone.start()
    origin = phone.says("location.origin")
    phone.says(STORE)

    phone.start()
    again = (phone.says("location.origin"), phone.says(STORED))
    shutil.copytree(APP, tmp_path / "other")
    phone.start(path=tmp_path / "other")

    assert again == (origin, NOTHING)
    assert phone.says("location.origin") != origin


def test_a_page_sees_touch_support(phone: BootedDevice) -> None:
    phone.start()

    assert phone.says(
        "[navigator.maxTouchPoints, 'ontouchstart' in window, matchMedia('(pointer: coarse)').matches]"
    )
    assert phone.says("navigator.maxTouchPoints") == 5


def test_a_page_sees_androids_browser(phone: BootedDevice) -> None:
    phone.start()

    assert "Android 10; K" in phone.says("navigator.userAgent")
    assert "Headless" not in phone.says("navigator.userAgent")
    assert phone.says(
        "navigator.userAgentData.getHighEntropyValues(['model', 'platformVersion'])"
    ) == {
        **phone.says("navigator.userAgentData.toJSON()"),
        "mobile": True,
        "platform": "Android",
        "model": "Pixel 7",
        "platformVersion": "14.0.0",
    }


def test_a_page_on_an_iphone_sees_its_screen_and_safari(iphone: BootedDevice) -> None:
    iphone.start()

    assert iphone.device.name == "iPhone SE (3rd generation)"
    assert iphone.says(
        "[innerWidth, innerHeight, devicePixelRatio, navigator.platform]"
    ) == [375, 667, 2, "iPhone"]
    assert "iPhone OS 18_5" in iphone.says("navigator.userAgent")
    assert iphone.says("typeof navigator.userAgentData") == "undefined"


def test_controllers_get_its_port_and_appium_its_driver(
    phone: BootedDevice, iphone: BootedDevice
) -> None:
    android, ios = phone.device.tools, iphone.device.tools

    assert android.capabilities == {
        "platformName": "Android",
        "appium:automationName": "UiAutomator2",
        "appium:udid": f"chromium-cdp-{android.debugging_port}",
    }
    assert (
        ios.capabilities["platformName"],
        ios.capabilities["appium:automationName"],
    ) == ("iOS", "XCUITest")
    assert Path(android.environ["PYTEST_DEVICE_CHROMEDRIVER"]).name == "chromedriver"


def test_the_language_of_pages_is_that_of_a_phone_in_any_locale(
    phone: BootedDevice,
) -> None:
    phone.start()

    languages = "navigator.languages.map((name) => new Intl.Locale(name).toString())"
    assert phone.says(languages) == ["en-US"]


def test_an_installed_app_runs_once_it_is_launched(phone: BootedDevice) -> None:
    app = phone.install(application_id="com.example.notes")
    assert phone.do(phone.device.apps()) == {"com.example.notes": AppState.NOT_RUNNING}

    phone.do(phone.device.launch(app))

    assert phone.do(phone.device.apps()) == {"com.example.notes": AppState.FOREGROUND}
    assert phone.says("document.title") == "Notes"


def test_an_app_served_elsewhere_is_installed_by_its_url(phone: BootedDevice) -> None:
    served = phone.start(application_id="served")
    address = phone.says("location.href")

    app = phone.do(phone.device.install(App(url=f"{address}deep/index.html")))
    phone.do(phone.device.launch(app))

    assert app == "app"
    assert phone.says("location.pathname") == "/deep/index.html"
    assert phone.do(phone.device.apps()) == {
        served: AppState.NOT_RUNNING,
        "app": AppState.FOREGROUND,
    }


@pytest.mark.parametrize(
    ("app", "reason"),
    [
        (
            App(path=APP / "index.html"),
            r"index\.html is not a web build: .* needs a directory with an index\.html",
        ),
        (App(url="ftp://example.com"), "ftp://example.com is not the URL of a web app"),
        (App(), "None is not the URL of a web app"),
    ],
)
def test_anything_but_a_web_app_is_refused(
    phone: BootedDevice, app: App, reason: str
) -> None:
    with pytest.raises(ControllerError, match=reason):
        phone.do(phone.device.install(app))


def test_an_app_that_is_not_installed_is_refused(phone: BootedDevice) -> None:
    phone.install(application_id="here")

    with pytest.raises(
        ControllerError, match=r"gone is not installed on Pixel 7; installed: here"
    ):
        phone.do(phone.device.launch("gone"))


def test_launch_arguments_are_available_before_the_apps_own_scripts(
    phone: BootedDevice,
) -> None:
    phone.start("--user", "Ann's </script> \N{SNOWMAN}")

    assert phone.says("window.launchArguments") == [
        "--user",
        "Ann's </script> \N{SNOWMAN}",
    ]


def test_arguments_are_those_of_the_last_launch(phone: BootedDevice) -> None:
    app = phone.start("--first")
    phone.do(phone.device.terminate(app))

    phone.do(phone.device.launch(app))

    assert phone.says("window.launchArguments") == []


def test_launching_the_app_in_front_does_not_change_it(phone: BootedDevice) -> None:
    app = phone.start()
    phone.says("window.mark = 1")

    phone.do(phone.device.launch(app))

    assert phone.says("window.mark") == 1


def test_launching_the_app_in_front_with_arguments_restarts_it(
    phone: BootedDevice,
) -> None:
    app = phone.start()
    phone.says("window.mark = sessionStorage.mark = localStorage.mark = 1")

    phone.do(phone.device.launch(app, ["--again"]))

    assert phone.says("[window.mark, sessionStorage.mark, localStorage.mark]") == [
        None,
        None,
        "1",
    ]


def test_a_deep_link_opens_in_the_app_of_its_scheme(phone: BootedDevice) -> None:
    phone.install(application_id="other", scheme="other")
    phone.install(application_id="notes", scheme="notes")

    phone.do(phone.device.open_url("notes://item/3?x=1#end"))

    assert (
        phone.says("location.pathname + location.search + location.hash")
        == "/item/3?x=1#end"
    )
    assert phone.do(phone.device.apps()) == {
        "other": AppState.NOT_RUNNING,
        "notes": AppState.FOREGROUND,
    }


def test_a_link_opens_in_the_named_app(phone: BootedDevice) -> None:
    phone.install(application_id="notes")

    phone.do(phone.device.open_url("https://notes.example.com/item/3", "notes"))

    assert phone.says("location.hostname + location.pathname") == "127.0.0.1/item/3"


def test_a_web_url_opens_unchanged(phone: BootedDevice) -> None:
    phone.start()
    address = phone.says("location.href")

    phone.do(phone.device.open_url(f"{address}elsewhere"))

    assert phone.says("location.pathname") == "/elsewhere"


def test_an_unreachable_url_is_refused_without_its_secrets(phone: BootedDevice) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(
        ControllerError, match="cannot be opened: net::ERR_CONNECTION_REFUSED"
    ) as refused:
        phone.do(
            phone.device.open_url(f"http://someone:made-up-password@127.0.0.1:{port}/")
        )

    assert "made-up-password" not in str(refused.value)


def test_an_apps_stored_data_is_cleared(phone: BootedDevice) -> None:
    app = phone.start()
    phone.says(STORE)
    assert phone.says(STORED) == ["yes", "yes", "kept=yes", 1]

    phone.do(phone.device.clear(app))

    assert phone.do(phone.device.apps()) == {app: AppState.NOT_RUNNING}
    phone.do(phone.device.launch(app))
    assert phone.says(STORED) == NOTHING


def test_another_apps_stored_data_is_kept(phone: BootedDevice) -> None:
    kept = phone.start(application_id="kept")
    phone.says("localStorage.kept = 'yes'")
    cleared = phone.start(application_id="cleared")

    phone.do(phone.device.clear(cleared))

    phone.do(phone.device.launch(kept))
    assert phone.says("localStorage.kept") == "yes"


def test_the_data_of_every_shown_page_can_be_cleared(phone: BootedDevice) -> None:
    app = phone.start()
    phone.says(STORE)
    visited = phone.says("location.href").replace("127.0.0.1", "localhost")
    phone.do(phone.device.open_url(visited))
    phone.says(STORE)

    phone.do(phone.device.clear())

    phone.do(phone.device.launch(app))
    assert phone.says(STORED) == NOTHING
    phone.do(phone.device.open_url(visited))
    assert phone.says(STORED) == NOTHING


def test_the_data_of_pages_opened_by_an_app_is_cleared_with_it(
    phone: BootedDevice,
) -> None:
    app = phone.start()
    elsewhere = phone.says("location.href").replace("127.0.0.1", "localhost")
    phone.says(f"void (location.href = '{elsewhere}')")
    assert phone.says_in_time(
        "location.hostname + document.readyState", "localhostcomplete"
    )
    phone.says(STORE)

    phone.do(phone.device.clear(app))

    phone.do(phone.device.open_url(elsewhere))
    assert phone.says(STORED) == NOTHING


def test_an_app_cannot_navigate_back_to_earlier_pages(phone: BootedDevice) -> None:
    app = phone.start()
    phone.says("history.pushState(null, '', '/left')")
    phone.do(phone.device.terminate(app))

    phone.do(phone.device.launch(app))

    assert phone.says("history.length") == 2  # the home screen and the app


def test_the_window_name_is_cleared_with_the_app(phone: BootedDevice) -> None:
    app = phone.start()
    phone.says("window.name = 'kept'")

    phone.do(phone.device.clear(app))

    phone.do(phone.device.launch(app))
    assert phone.says("window.name") == ""


def test_a_terminated_app_leaves_the_home_screen(phone: BootedDevice) -> None:
    app = phone.start()

    assert phone.do(phone.device.terminate(app)) is True
    assert phone.says("document.title") == "Home"
    assert phone.do(phone.device.terminate(app)) is False


def test_an_app_that_is_removed_is_gone(phone: BootedDevice) -> None:
    app = phone.start()
    address = phone.says("location.href")

    assert phone.do(phone.device.remove(app)) is True

    assert phone.do(phone.device.apps()) == {}
    assert phone.do(phone.device.remove(app)) is False
    with pytest.raises(ControllerError, match="net::ERR_CONNECTION_REFUSED"):
        phone.do(phone.device.open_url(address))


def test_a_second_installation_replaces_the_first(phone: BootedDevice) -> None:
    phone.start()
    phone.says("localStorage.kept = 'yes'")

    app = phone.start()

    assert list(phone.do(phone.device.apps())) == [app]
    assert phone.says("localStorage.kept") is None


def test_the_screen_is_rotated_for_every_page(phone: BootedDevice) -> None:
    app = phone.start()
    assert phone.do(phone.device.orientation()) == "PORTRAIT"

    phone.do(phone.device.rotate("LANDSCAPE"))

    seen = (
        "[innerWidth, innerHeight, screen.orientation.type, screen.orientation.angle]"
    )
    assert phone.do(phone.device.orientation()) == "LANDSCAPE"
    assert phone.says(seen) == [915, 412, "landscape-primary", 90]
    phone.do(phone.device.launch(app, ["--again"]))
    assert phone.says(seen) == [915, 412, "landscape-primary", 90]


def size(jpeg: bytes) -> tuple[int, int]:
    """Return the width and height that a JPEG's frame header reports."""
    at = 2
    while jpeg[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + int.from_bytes(jpeg[at + 2 : at + 4])
    return int.from_bytes(jpeg[at + 7 : at + 9]), int.from_bytes(jpeg[at + 5 : at + 7])


def test_a_screenshot_has_every_pixel_of_the_screen(phone: BootedDevice) -> None:
    phone.start()

    upright = size(phone.do(phone.device.screenshot()))
    phone.do(phone.device.rotate("LANDSCAPE"))
    turned = size(phone.do(phone.device.screenshot()))

    assert upright == pytest.approx((1082, 2402), abs=1)
    assert turned == pytest.approx((2402, 1082), abs=1)


def test_a_touch_presses_the_button_at_that_position(phone: BootedDevice) -> None:
    phone.start()

    phone.do(phone.device.tap(150 / 412, 330 / 915))

    assert phone.says_in_time("document.querySelector('button').textContent", "pressed")
    assert phone.says("window.touched") is True


def test_a_touch_has_the_right_position_on_a_page_that_renders_late(
    phone: BootedDevice, tmp_path: Path
) -> None:
    page = (APP / "index.html").read_text()
    late = "onload = () => setTimeout(() => { for (const end = Date.now() + 300; Date.now() < end;) {} })"
    (tmp_path / "index.html").write_text(
        page.replace("console.warn(", f"{late}; console.warn(")
    )
    phone.start(path=tmp_path)

    phone.do(phone.device.tap(150 / 412, 330 / 915))

    assert phone.says_in_time("document.querySelector('button').textContent", "pressed")


def test_a_touch_next_to_the_button_does_not_press_it(phone: BootedDevice) -> None:
    phone.start()

    phone.do(phone.device.tap(150 / 412, 380 / 915))
    phone.do(phone.device.tap(150 / 412, 250 / 915))

    assert phone.says("document.querySelector('button').textContent") == "Add"


def ask(phone: BootedDevice) -> None:
    """Let the page open a dialog, and wait until the device knows: then it has no screenshot."""
    phone.says("setTimeout(() => { window.answer = confirm('Sure?') })")
    assert eventually(lambda: has_dialog(phone))


def has_dialog(phone: BootedDevice) -> bool:
    try:
        phone.do(phone.device.screenshot())
    except ControllerError as error:
        return "dialog" in str(error)
    return False


def test_while_a_dialog_is_open_there_is_no_screenshot(phone: BootedDevice) -> None:
    phone.start()
    ask(phone)

    with pytest.raises(ControllerError, match=r"a dialog of the page is open: Sure\?"):
        phone.do(phone.device.screenshot())
    phone.do(phone.device.tap(0, 0))


def test_a_page_is_rotated_when_its_dialog_is_closed(phone: BootedDevice) -> None:
    phone.start()
    ask(phone)

    phone.do(phone.device.rotate("LANDSCAPE"))
    phone.do(phone.device.tap(0, 0))

    try:
        assert phone.says_in_time("innerWidth", 915)
    finally:
        phone.do(phone.device.rotate("PORTRAIT"))


def test_while_a_dialog_is_open_a_touch_accepts_it(phone: BootedDevice) -> None:
    phone.start()
    ask(phone)

    phone.do(phone.device.tap(0, 0))

    assert phone.says_in_time("window.answer", expected=True)


def test_a_dialog_does_not_block_the_next_launch(phone: BootedDevice) -> None:
    app = phone.start()
    ask(phone)

    phone.do(phone.device.launch(app, ["--again"]))

    assert phone.says("window.launchArguments") == ["--again"]


def test_a_page_that_is_left_gets_no_consent(phone: BootedDevice) -> None:
    app = phone.start()
    phone.says("setTimeout(() => { localStorage.answer = confirm('Delete all?') })")
    assert eventually(lambda: has_dialog(phone))

    phone.do(phone.device.launch(app, ["--again"]))

    assert phone.says("localStorage.answer") == "false"


def test_an_endless_script_does_not_block_the_next_launch(phone: BootedDevice) -> None:
    app = phone.start()
    phone.says("void setTimeout(() => { while (true); })")

    phone.do(phone.device.launch(app, ["--again"]))

    assert phone.says("window.launchArguments") == ["--again"]


def test_dialogs_without_end_do_not_block_the_next_launch(phone: BootedDevice) -> None:
    app = phone.start()
    phone.says("window.name = 'before'")
    phone.says("void setTimeout(() => { while (true) alert('again'); })")
    assert eventually(lambda: has_dialog(phone))

    phone.do(phone.device.launch(app, ["--again"]))

    assert phone.says("[window.name, ...window.launchArguments]") == ["", "--again"]
    assert phone.says("innerWidth") == 412


def test_an_app_that_opens_a_dialog_at_its_start_is_launched(
    phone: BootedDevice, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text(
        "<title>Greeting</title><script>alert('Hello')</script>"
    )

    phone.start(path=tmp_path)

    phone.do(phone.device.tap(0, 0))
    assert phone.says_in_time("document.title", "Greeting")


def test_a_page_with_a_beforeunload_dialog_is_left(phone: BootedDevice) -> None:
    app = phone.start()
    # Pages that nobody has touched are not asked.
    phone.do(phone.device.tap(150 / 412, 330 / 915))
    phone.says("onbeforeunload = event => { event.preventDefault(); return 'stay' }")

    assert phone.do(phone.device.terminate(app)) is True

    assert phone.says("document.title") == "Home"


def test_a_page_opened_by_another_is_also_emulated_and_closed_with_the_app(
    phone: BootedDevice,
) -> None:
    app = phone.start()

    phone.says("void window.open('/beside')")

    assert phone.says_in_time("location.pathname", "/beside")
    assert phone.says("[innerWidth, devicePixelRatio, navigator.maxTouchPoints]") == [
        412,
        2.625,
        5,
    ]
    phone.do(phone.device.terminate(app))
    assert phone.says("document.title") == "Home"


def test_an_app_that_opened_a_foreign_page_is_terminated_with_it(
    phone: BootedDevice,
) -> None:
    app = phone.start()
    phone.says("void window.open('about:blank')")
    assert phone.says_in_time("location.href", "about:blank")

    assert phone.do(phone.device.terminate(app)) is True

    assert phone.says("document.title") == "Home"


def test_if_a_controller_closes_the_last_page_another_opens(
    phone: BootedDevice,
) -> None:
    app = phone.start()

    phone.calls("Page.close")

    assert phone.says_in_time("location.href", "about:blank")
    phone.do(phone.device.launch(app))
    assert phone.says("[document.title, innerWidth]") == ["Notes", 412]


def test_a_pages_log_is_kept(phone: BootedDevice) -> None:
    phone.start()
    phone.says(
        "console.log('the token is', {}, 3, 'https://someone:made-up-password@example.com')"
    )
    phone.says("setTimeout(() => { throw new Error('broken') })")
    phone.says("new Promise(setTimeout)")

    lines = [(line.level, line.text) for line in phone.device.lines]
    assert ("WARNING", "careful with /") in lines
    assert ("INFO", "the token is Object 3 https://***@example.com") in lines
    assert any(
        level == "SEVERE" and text.startswith("Uncaught Error: broken")
        for level, text in lines
    )


def test_screenshots_work_while_apps_start_and_end(phone: BootedDevice) -> None:
    app = phone.install()

    async def look() -> set[bytes]:
        return {(await phone.device.screenshot())[:2] for _ in range(4)}

    async def both() -> set[bytes]:
        async def move() -> None:
            for _ in range(2):
                await phone.device.launch(app)
                await phone.device.terminate(app)

        pictures, _ = await asyncio.gather(look(), move())
        return pictures

    assert phone.do(both()) == {b"\xff\xd8"}


def test_a_page_that_crashes_is_reported(tmp_path: Path) -> None:
    with booted(tmp_path / "session", deviceIdentifier="chromium") as phone:
        with pytest.raises(ControllerError):
            phone.calls("Page.crash", limit_seconds=1)

        assert phone.do(phone.device.ended()) == "the page has crashed (crashed)"


def test_an_app_can_be_launched_again_after_a_crash(phone: BootedDevice) -> None:
    app = phone.start()
    with pytest.raises(ControllerError):
        phone.calls("Page.crash", limit_seconds=1)
    assert phone.says_in_time("location.href", "about:blank")
    assert (phone.do(phone.device.crash()), phone.do(phone.device.apps())) == (
        "the page has crashed (crashed)",
        {app: 1},
    )

    phone.do(phone.device.launch(app))

    assert (phone.do(phone.device.crash()), phone.do(phone.device.apps())) == (
        None,
        {app: 4},
    )


def test_an_app_in_the_background_is_hidden_behind_the_home_screen(
    phone: BootedDevice,
) -> None:
    app = phone.start()
    phone.do(phone.device.background())
    assert phone.do(phone.device.apps()) == {app: 3}

    phone.do(phone.device.foreground())

    assert phone.do(phone.device.apps()) == {app: 4}
    assert phone.says("document.visibilityState") == "visible"


def test_an_app_with_a_dialog_goes_to_the_background_and_comes_back(
    phone: BootedDevice,
) -> None:
    app = phone.start()
    ask(phone)

    phone.do(phone.device.background())
    hidden = phone.do(phone.device.apps())
    phone.do(phone.device.foreground())
    phone.do(phone.device.tap(0, 0))

    assert (hidden, phone.do(phone.device.apps())) == ({app: 3}, {app: 4})
    assert phone.says_in_time("window.answer", expected=True)
    assert phone.says("document.visibilityState") == "visible"


def test_a_killed_browser_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "session"
    with booted(directory) as phone:
        processes = phone.processes()
        main = min(processes, key=lambda process: process.create_time())

        main.kill()

        assert phone.do(phone.device.ended()).startswith(
            "the browser exited unexpectedly: killed by SIGKILL"
        )
        with pytest.raises(ControllerError, match="the browser"):
            phone.do(phone.device.screenshot())
    assert not directory.exists()
    # Init takes its time with orphans.
    assert not psutil.wait_procs(processes, timeout=20)[1]


def test_a_released_phone_has_ended(tmp_path: Path) -> None:
    directory = tmp_path / "session"
    with booted(directory) as phone:
        assert phone.processes()
        phone.start()
        address = phone.says("location.host").split(":")
    assert not phone.processes()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address[0], int(address[1])))
