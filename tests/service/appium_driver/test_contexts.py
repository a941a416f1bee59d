"""The contexts of the app: its native side and its web view."""

import json
from collections.abc import Iterator

import pytest
from appium.common.exceptions import NoSuchContextException
from appium.webdriver import Remote

from tests.service.appium_driver.conftest import APP, APP_ID, driven

WEB_VIEW = f"WEBVIEW_{APP_ID}"


def test_a_missing_context_is_refused_with_the_existing_ones(phone: Remote) -> None:
    with pytest.raises(NoSuchContextException) as refused:
        phone.switch_to.context("WEBVIEW_other")
    assert f"there are NATIVE_APP, {WEB_VIEW}" in str(refused.value)
    assert phone.current_context == "NATIVE_APP"


def test_the_contexts_of_android_name_the_page_of_their_web_view(phone: Remote) -> None:
    (view,) = phone.execute_script("mobile: getContexts", {"waitForWebviewMs": 1000})
    (page,) = view["pages"]
    assert (view["webviewName"], page["title"], page["type"]) == (
        WEB_VIEW,
        "Notes",
        "page",
    )
    assert view["info"]["Android-Package"] == APP_ID
    description = json.loads(page["description"])
    assert (description["attached"], description["visible"]) == (True, True)
    assert description["width"] == phone.get_window_size()["width"]


def test_the_contexts_of_ios_name_the_page_of_their_web_view(iphone: Remote) -> None:
    native, view = iphone.execute_script("mobile: getContexts")
    assert native == {"id": "NATIVE_APP"}
    assert (view["id"], view["title"], view["bundleId"]) == (WEB_VIEW, "Notes", APP_ID)
    assert view["url"].endswith("/")


FRAMED = "<title>Inside</title><h1>In the frame</h1>"


@pytest.fixture(params=["phone", "iphone"])
def framed(request: pytest.FixtureRequest) -> Iterator[Remote]:
    """Provide an app with a frame in its page."""
    driver: Remote = request.getfixturevalue(request.param)
    driver.switch_to.context(WEB_VIEW)
    driver.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<iframe style=\"display: none\"></iframe><iframe></iframe>');"
        "const frame = document.querySelectorAll('iframe')[1]; frame.srcdoc = arguments[0];"
        "return new Promise(resolve => { frame.onload = () => resolve(null) })",
        FRAMED,
    )
    driver.switch_to.context("NATIVE_APP")
    yield driver
    driver.switch_to.context("NATIVE_APP")
    driver.get("notes:///reset")


def test_a_visible_frame_is_a_web_view_of_its_own(framed: Remote) -> None:
    frame = f"{WEB_VIEW}.frame.2"
    assert framed.contexts == ["NATIVE_APP", WEB_VIEW, frame]

    *_, view = framed.execute_script("mobile: getContexts")
    page = view["pages"][0] if "pages" in view else view
    assert (page["title"], page["url"]) == ("Inside", "about:srcdoc")

    framed.switch_to.context(frame)
    assert framed.current_context == frame
    assert framed.find_element("css selector", "h1").text == "In the frame"

    framed.switch_to.context(WEB_VIEW)
    assert framed.find_elements("css selector", "iframe")


@pytest.mark.parametrize(
    ("fixture", "name"), [("android", "bundleId"), ("ios", "appPackage")]
)
def test_the_other_platforms_name_of_an_app_is_ignored(
    request: pytest.FixtureRequest, fixture: str, name: str
) -> None:
    session = request.getfixturevalue(fixture)
    with driven(session, {"app": str(APP), f"appium:{name}": "org.other"}) as driver:
        ids = {driver.capabilities.get(key) for key in ("bundleId", "appPackage")}
        assert APP_ID in ids
