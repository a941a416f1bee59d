"""The preview and the session page as a user sees them: in a real Chromium, by mouse and keyboard."""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device.auth import AuthRequest, fetch_discovery
from pytest_device.auth.provider import Client, IdentityProvider
from tests.fakes.devices import COLOURS, WIDTH
from tests.fakes.local_service import UNKNOWN_ID, data
from tests.service.pages import PATIENCE_SECONDS, ServedSession, browser, serving
from tests.service.process import config, running
from tests.waiting import eventually

COLOUR = """
const copy = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
const picture = document.getElementById('picture');
if (!('seen' in document.getElementById('stage').dataset)) return null;
copy.drawImage(picture, picture.width / 2, picture.height / 2, 1, 1, 0, 0, 1, 1);
return [...copy.getImageData(0, 0, 1, 1).data];
"""
FROM = "return performance.getEntriesByType('resource').map((one) => new URL(one.name).origin)"
FAINT = """
document.getElementById('stage')?.removeAttribute('data-seen');
const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
const linear = (value) => (value / 255 <= .03928 ? value / 3294.6 : ((value / 255 + .055) / 1.055) ** 2.4);
const light = ([red, green, blue]) => .2126 * linear(red) + .7152 * linear(green) + .0722 * linear(blue);
const ground = (node) => {
  const colour = channels(getComputedStyle(node).backgroundColor);
  return colour[3] === 0 ? ground(node.parentElement) : colour;
};
const contrast = (node) => {
  const [less, more] = [channels(getComputedStyle(node).color), ground(node)].map(light).sort((a, b) => a - b);
  return (more + .05) / (less + .05);
};
const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
return [...document.querySelectorAll('body *')]
  .filter((node) => node.checkVisibility() && [...node.childNodes].some(isText) && contrast(node) < 4.5)
  .map((node) => node.outerHTML);
"""
"""Text with too little contrast, including that before the first screenshot."""


AGES = {
    35: "30 s ago",
    200: "3 min ago",
    7300: "2 h ago",
    90_000: "1 day ago",
    200_000: "2 days ago",
}
AFTER_TIME = "return getComputedStyle(document.querySelector('time[data-since]'), '::after').content"
LOOKS = """
const style = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
return [
  style('html', 'backgroundColor'), style('html', 'fontFamily'), style('html', 'color'),
  style('.card', 'backgroundColor'), style('.card', 'borderRadius'), style('h1', 'fontSize'),
];
"""
CLIPBOARD = ["clipboardReadWrite", "clipboardSanitizedWrite"]


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    with browser() as chrome:
        yield chrome


@pytest.fixture
def look(chrome: Chrome) -> Iterator[Chrome]:
    """Provide a browser with a blank page, before and after."""
    yield chrome
    chrome.get("about:blank")
    complaints(chrome)


@pytest.fixture
def session(look: Chrome) -> Iterator[ServedSession]:
    with serving(maxDurationMinutes=40, maxIdleTimeMinutes=5) as session:
        yield session
        look.get("about:blank")


def wait(chrome: Chrome, condition: Callable[[], Any]) -> Any:
    return WebDriverWait(chrome, PATIENCE_SECONDS, 0.05).until(lambda _: condition())


def complaints(chrome: Chrome) -> list[Any]:
    """Return the browser's messages about its pages since the last call."""
    reported: list[Any] = chrome.execute("getLog", {"type": "browser"})["value"]
    return reported


def by_id(chrome: Chrome, name: str) -> WebElement:
    return chrome.find_element(By.ID, name)


def says(chrome: Chrome, name: str, text: str) -> None:
    """Wait until a part of the page has a text."""
    wait(chrome, lambda: text in by_id(chrome, name).text)


def has_text(element: WebElement, text: str) -> bool:
    return element.text == text


def shows(chrome: Chrome, number: int) -> None:
    """Wait until the picture has one of the colours."""
    wait(chrome, lambda: chrome.execute_script(COLOUR) == [*COLOURS[number], 255])


def parent(element: WebElement) -> WebElement:
    return element.find_element(By.XPATH, "..")


def press(chrome: Chrome, *keys: str) -> None:
    ActionChains(chrome).send_keys(*keys).perform()


def focused(chrome: Chrome) -> str:
    return (
        chrome.switch_to.active_element.get_attribute("id")
        or chrome.switch_to.active_element.text
    )


@contextmanager
def window(
    chrome: Chrome, width: int, *, dark: bool = False, media: str = ""
) -> Generator[None]:
    """Let the window be this wide, its user prefer light or dark, and the page be printed if ``media`` says so."""
    metrics = {
        "width": width,
        "height": 800,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chrome.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": media, "features": [scheme]}
    )
    try:
        yield
    finally:
        chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        chrome.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": "", "features": []}
        )


def test_the_screenshot_appears_and_changes_with_the_screen(
    look: Chrome, session: ServedSession
) -> None:
    look.get(session.preview)
    shows(look, 0)
    session.device.taps.append((0, 0))
    shows(look, 1)

    assert set(look.execute_script(FROM)) == {session.base_url}
    assert not complaints(look)


def test_a_click_on_the_screenshot_is_a_tap_there(
    look: Chrome, session: ServedSession
) -> None:
    look.get(session.preview)
    shows(look, 0)
    picture = by_id(look, "picture")
    width, height = picture.size["width"], picture.size["height"]
    ActionChains(look).move_to_element_with_offset(
        picture, round(width / 4), round(-height / 4)
    ).click().perform()
    shows(look, 1)

    assert session.device.taps[0] == pytest.approx((0.75, 0.25), abs=0.01)
    says(look, "done", "from the left")


def test_the_keyboard_taps_too(look: Chrome, session: ServedSession) -> None:
    look.get(session.preview)
    shows(look, 0)
    press(look, Keys.TAB)
    assert focused(look) == "screen"
    wait(look, lambda: by_id(look, "cross").value_of_css_property("opacity") == "1")
    press(look, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ENTER)
    shows(look, 1)

    assert session.device.taps == [(0.6, 0.45)]


def test_the_keyboard_rotates_the_device(look: Chrome, session: ServedSession) -> None:
    look.get(session.preview)
    shows(look, 0)
    portrait, landscape = look.find_elements(By.CSS_SELECTOR, "[data-orientation]")
    assert portrait.get_attribute("aria-pressed") == "true"
    press(look, Keys.TAB, Keys.TAB, Keys.TAB)
    assert focused(look) == "Landscape"
    press(look, Keys.SPACE)
    wait(look, lambda: landscape.get_attribute("aria-pressed") == "true")

    assert session.device.held == "LANDSCAPE"
    assert portrait.get_attribute("aria-pressed") == "false"


def test_a_refusal_by_the_device_is_shown(look: Chrome, session: ServedSession) -> None:
    look.get(session.preview)
    shows(look, 0)
    session.device.broken = "simctl cannot tap"
    by_id(look, "picture").click()

    says(look, "message", "Failed: simctl cannot tap.")
    session.device.broken = None
    wait(look, lambda: "no picture" not in by_id(look, "message").text)


def test_a_session_that_becomes_ready_shows_its_screen_without_a_reload(
    look: Chrome,
) -> None:
    with serving(ready=False) as session:
        look.get(session.preview)
        says(look, "absence", "The device is starting")
        session.boot({})
        shows(look, 0)
        assert look.title == "Ready · login works"
        assert not complaints(look)
        look.get("about:blank")


def test_until_the_first_screenshot_the_preview_shows_connecting(
    look: Chrome, session: ServedSession
) -> None:
    session.device.broken = "the screen is not up"
    look.get(session.preview)
    says(look, "absence", "Connecting…")
    session.device.broken = None
    shows(look, 0)

    assert not by_id(look, "absence").is_displayed()


def test_a_button_copies_an_id(look: Chrome, session: ServedSession) -> None:
    look.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": CLIPBOARD, "origin": session.base_url},
    )
    look.get(session.page)
    button = next(
        one
        for one in look.find_elements(By.CSS_SELECTOR, "#facts .copy")
        if session.id in parent(one).text
    )
    button.click()
    wait(look, lambda: button.text == "Copied")

    assert (
        look.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        == session.id
    )


def test_the_list_updates_and_links_to_the_session_pages(
    look: Chrome, session: ServedSession
) -> None:
    look.get(f"{session.base_url}/")
    says(look, "sessions", "Ready")
    session.fail("the device died")
    says(look, "sessions", "the device died")
    assert not complaints(look)
    look.find_element(By.LINK_TEXT, "login works").click()
    wait(look, lambda: look.current_url == session.page)
    look.find_element(By.LINK_TEXT, "All sessions").click()
    wait(look, lambda: look.title == "Device sessions")


def test_the_end_of_a_session_is_shown_in_place_of_the_screen(
    look: Chrome, session: ServedSession
) -> None:
    look.get(session.preview)
    shows(look, 0)
    session.fail("the device died:\n  signal 9")
    says(look, "outcome", "Failed: the device died:\n  signal 9")

    assert look.title == "Failed · login works"
    assert (
        "The session has ended. This is its last picture." in by_id(look, "stage").text
    )
    look.refresh()
    shows(look, 0)
    look.find_element(By.LINK_TEXT, "Session page").click()
    wait(look, lambda: look.current_url == session.page)
    assert "signal 9" in by_id(look, "outcome").text


def test_a_stopped_service_is_reported(look: Chrome) -> None:
    with serving() as session:
        look.get(session.preview)
        shows(look, 0)

    says(look, "message", "The service does not respond.")


def test_the_page_updates_with_its_session(
    look: Chrome, session: ServedSession
) -> None:
    look.get(session.page)
    session.note(time.time(), "app installed")
    session.print("one\ntwo")

    says(look, "timeline", "app installed")
    says(look, "log", "one\ntwo")
    says(look, "times", "Time left\n39:")
    assert not complaints(look)


def test_the_page_shows_the_screen_and_links_to_the_live_preview(
    look: Chrome, session: ServedSession
) -> None:
    session.boot({"webPreviewUrl": session.preview})
    look.get(session.page)
    seen = "const picture = document.querySelector('#screen img'); return picture?.complete && picture.naturalWidth"

    assert eventually(lambda: look.execute_script(seen) == WIDTH)
    pictures = session.device.pictures
    session.device.taps.append((0.5, 0.5))
    assert eventually(lambda: session.device.pictures > pictures)
    look.find_element(By.CSS_SELECTOR, "#screen a").click()

    assert eventually(lambda: look.current_url == session.preview)
    assert not complaints(look)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_screen_fills_its_card(
    look: Chrome, session: ServedSession, width: int
) -> None:
    session.boot({"webPreviewUrl": session.preview})
    look.get(session.page)
    seen = "return document.querySelector('#screen img')?.naturalWidth"
    wait(look, lambda: look.execute_script(seen) == WIDTH)

    with window(look, width):
        card = by_id(look, "screen").size["width"]
        picture = look.find_element(By.CSS_SELECTOR, "#screen img").size["width"]
        assert picture > 0.8 * card


def test_times_are_relative_with_the_absolute_time_as_tooltip(
    look: Chrome, session: ServedSession
) -> None:
    for address in (session.page, f"{session.base_url}/"):
        look.get(address)
        moment = look.find_element(By.CSS_SELECTOR, "time[data-since]")
        assert moment.text == "just now"
        assert "UTC" in str(moment.get_attribute("title"))
        for seconds, text in AGES.items():
            since = "arguments[0].dataset.since = Date.now() / 1000 - arguments[1]"
            look.execute_script(since, moment, seconds)
            wait(look, partial(has_text, moment, text))


def test_a_failed_session_shows_its_last_picture(
    look: Chrome, session: ServedSession
) -> None:
    session.boot({"webPreviewUrl": session.preview})
    look.get(session.page)
    seen = "return document.querySelector('#screen img')?.naturalWidth"
    wait(look, lambda: look.execute_script(seen) == WIDTH)
    session.fail("the device died")
    says(look, "outcome", "Failed: the device died.")
    says(look, "screen", "Last picture")
    wait(look, lambda: look.execute_script(seen) == WIDTH)

    assert not complaints(look)


def test_an_unknown_page_leads_to_the_list(
    look: Chrome, session: ServedSession
) -> None:
    for path in (f"/sessions/{UNKNOWN_ID}", "/nothing/here"):
        look.get(f"{session.base_url}{path}")
        assert look.execute_script(FAINT) == []
        look.find_element(By.LINK_TEXT, "All sessions").click()
        wait(look, lambda: look.title == "Device sessions")


def test_a_printed_page_has_no_buttons_and_the_whole_log(
    look: Chrome, session: ServedSession
) -> None:
    session.print("a line\n" * 200)
    look.get(session.page)
    says(look, "log", "a line")
    with window(look, 794, dark=True, media="print"):
        buttons = look.find_elements(By.CSS_SELECTOR, "button")
        assert not [button.text for button in buttons if button.is_displayed()]
        log = by_id(look, "log")
        assert log.get_property("scrollHeight") == log.get_property("clientHeight")
        background = by_id(look, "log").value_of_css_property("background-color")
        assert background == "rgba(255, 255, 255, 1)"
        assert "UTC)" in look.execute_script(AFTER_TIME)
        assert look.execute_script(FAINT) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_provider_looks_like_the_service(
    look: Chrome, session: ServedSession, *, dark: bool
) -> None:
    client = Client("app", ["myapp://redirect"])
    with IdentityProvider(clients=[client]) as provider, window(look, 390, dark=dark):
        config = {"client_id": "app", "redirect_uri": "myapp://redirect", "scopes": []}
        discovery = fetch_discovery(provider.issuer)
        sign_in = AuthRequest(config).make_auth_url(discovery)
        unknown = AuthRequest(config | {"redirect_uri": f"myapp://{'x' * 99}"})
        looks: list[Any] = []
        for address in (session.page, sign_in, unknown.make_auth_url(discovery)):
            look.get(address)
            looks.append(look.execute_script(LOOKS))
            assert look.execute_script("return document.body.scrollWidth <= innerWidth")
            assert look.execute_script(FAINT) == []

        assert looks[1:] == [looks[0]] * 2
        refused = [one for one in complaints(look) if "Content Security" in str(one)]
        assert not refused


def test_a_session_is_stopped_only_after_confirmation(
    look: Chrome, session: ServedSession
) -> None:
    look.get(session.page)
    press(look, Keys.TAB, Keys.ENTER)
    assert focused(look) == "Keep it running"
    press(look, Keys.ENTER)
    press(look, Keys.ENTER, Keys.ESCAPE)
    assert "Ready" in by_id(look, "state").text
    press(look, Keys.ENTER, Keys.TAB, Keys.ENTER)
    says(look, "outcome", "Stopped: requested on the session page")

    assert look.title == "Stopped · login works"
    assert not by_id(look, "stop").is_displayed()
    assert not complaints(look)


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("ended", [False, True], ids=["ready", "failed"])
def test_the_pages_fit_their_window_and_can_be_read_in_light_and_dark(
    look: Chrome, session: ServedSession, width: int, *, ended: bool
) -> None:
    session.print("a log\n" + "with-a-very-long-word-" * 20)
    if ended:
        session.fail(
            "the-device-died-of-a-very-long-word-" * 10 + "\n" + "and-more-" * 50
        )
    for address in (f"{session.base_url}/", session.page, session.preview):
        look.get(address)
        for dark in (False, True):
            with window(look, width, dark=dark):
                assert look.execute_script(
                    "return document.body.scrollWidth <= innerWidth"
                )
                assert look.execute_script(FAINT) == []


def test_a_real_device_can_be_watched_and_tapped_through_the_preview(
    look: Chrome, tmp_path: Path
) -> None:
    build = tmp_path / "builds" / UNKNOWN_ID
    (build / "app").mkdir(parents=True)
    (build / "build.json").write_text(json.dumps({"archive": "app"}))
    dark_until_touched = (
        "<body style='background:#000' onclick='this.style.background = `#fff`'>"
    )
    (build / "app" / "index.html").write_text(
        f"<meta name=viewport content='width=device-width'><style>body {{ height: 90vh }}</style>{dark_until_touched}"
    )
    settings = config(tmp_path, runner="real", types=[], builds_dir=str(build.parent))
    with running(settings) as service:
        session_id = data(service.create(type="web-preview-only", buildId=UNKNOWN_ID))[
            "id"
        ]
        assert eventually(
            lambda: data(service.get(session_id))["status"] == "in-progress"
        )
        look.get(data(service.get(session_id))["remoteConfig"]["webPreviewUrl"])
        wait(look, lambda: look.execute_script(COLOUR) == [0, 0, 0, 255])
        by_id(look, "picture").click()
        wait(look, lambda: look.execute_script(COLOUR) == [255, 255, 255, 255])
        look.find_element(By.CSS_SELECTOR, "[data-orientation=LANDSCAPE]").click()
        wait(
            look,
            lambda: (
                by_id(look, "picture").size["width"]
                > by_id(look, "picture").size["height"]
            ),
        )

        assert not complaints(look)
        look.get("about:blank")
