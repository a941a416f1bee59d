"""The contexts of the app: its native side and its web view."""

import pytest
from appium.common.exceptions import NoSuchContextException
from appium.webdriver import Remote

from tests.service.appium_driver.conftest import APP_ID

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


def test_the_contexts_of_ios_name_the_page_of_their_web_view(iphone: Remote) -> None:
    native, view = iphone.execute_script("mobile: getContexts")
    assert native == {"id": "NATIVE_APP"}
    assert (view["id"], view["title"], view["bundleId"]) == (WEB_VIEW, "Notes", APP_ID)
    assert view["url"].endswith("/")
