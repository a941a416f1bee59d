"""Push messages: permission, the app's push token, and what a notification does."""

import pytest

from pytest_device.notifications import DevicePush
from pytest_device.notifications.endpoint import PushEndpoint

from .notes_app import NotesApp

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")

NEWS = {"title": "A note for you", "body": "from Ada", "data": {"url": "/notes/7"}}


@pytest.fixture
def notified(app: NotesApp) -> NotesApp:
    """Allow notifications."""
    app.tap("notify")
    app.answer_permission(allow=True)
    app.wait_for("push", "Notifications are on")
    return app


def test_the_app_requests_a_push_token(app: NotesApp, device_push_endpoint: PushEndpoint) -> None:
    earlier = len(device_push_endpoint.requests)
    app.tap("notify")
    app.answer_permission(allow=True)

    request = device_push_endpoint.wait_for_request(after=earlier)

    assert request.body["appId"] == app.identifier
    app.wait_for("push", "Notifications are on")


def test_without_permission_no_token_is_requested(app: NotesApp, device_push_endpoint: PushEndpoint) -> None:
    earlier = len(device_push_endpoint.requests)
    app.tap("notify")
    app.answer_permission(allow=False)

    app.wait_for("push", "Notifications are off")
    assert len(device_push_endpoint.requests) == earlier


def test_a_tapped_notification_opens_its_note(notified: NotesApp, device_push: DevicePush) -> None:
    device_push.send(NEWS)

    device_push.tap(device_push.wait_shown("A note for you"))

    notified.wait_for("page", "Note 7")


def test_a_dismissed_notification_opens_nothing(notified: NotesApp, device_push: DevicePush) -> None:
    device_push.send(NEWS)

    device_push.dismiss(device_push.wait_shown("A note for you"))

    notified.wait_for("push", "Dismissed A note for you")
    notified.wait_for("page", "Home")
