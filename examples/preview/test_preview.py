"""A device with a live preview but no controller, to watch it or to take screenshots."""

import httpx
import pytest

from pytest_device import Session

NOTES = "5b0f6f0e-7c52-4f0b-9a53-2d1f8f0f6a11"
pytestmark = pytest.mark.device(
    platform="ios", type="web-preview-only", device_identifier="chromium", build_id=NOTES, open_url="notes://notes/3"
)


def test_has_a_page_to_open_in_a_browser(device_session: Session) -> None:
    assert device_session.remote_config
    page = httpx.get(device_session.remote_config.web_preview_url or "", trust_env=False)
    assert page.status_code == httpx.codes.OK
    assert page.headers["content-type"].startswith("text/html")
