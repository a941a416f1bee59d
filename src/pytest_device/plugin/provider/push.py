"""Push clients and notification centers for tests."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.center import NotificationCenter
from pytest_device.notifications.content import PushMessage
from pytest_device.notifications.push import (
    AgentDevicePush,
    AppiumPush,
    CallablePush,
    DevicePush,
    LocalPush,
    PushDelivery,
    PushDevice,
)
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.project import vendor_profile
from pytest_device.plugin.state import needs_of, single_value
from pytest_device.sessions.models import Session
from pytest_device.spec import SessionType

__tracebackhide__ = hides_frames

LOCAL: Final = "chromium-cdp-"
"""UDID prefix of local devices with a notification center."""

Own = PushDelivery | Callable[[PushMessage, PushDevice], object] | None


def push_to(session: Session, fixture: Callable[[str], Any], own: Own) -> DevicePush:
    """Return the push client of a session's device, which uses the suite's own delivery or the controller."""
    platform = session.platform
    device = PushDevice(
        "ios" if platform == "ios" else "android",
        f"the {platform} device of session {session.id}",
    )
    if own is not None:
        return DevicePush(CallablePush(own) if callable(own) else own, device)
    match session.type:
        case SessionType.APPIUM:
            driver = fixture("device_driver")
            given: Mapping[str, Any] = driver.capabilities
            if str(given.get("udid", "")).startswith(LOCAL):
                return DevicePush(LocalPush(driver), device)
            app = str(given.get("bundleId") or given.get("appPackage") or "")
            return DevicePush(
                AppiumPush(driver), PushDevice(device.platform, device.name, app)
            )
        case SessionType.AGENT_DEVICE:
            return DevicePush(AgentDevicePush(fixture("device_agent_device")), device)
        case other:
            return DevicePush(
                None,
                device,
                f"sessions of type {other} can't receive push messages: use device_push_delivery",
            )


def center_of(item: pytest.Item, settings: Mapping[str, Any]) -> NotificationCenter:
    """Return a notification center for a test. Raises ConfigError for missing settings."""
    known: dict[str, Any] = {
        "clock": lambda: datetime.now(UTC),
        "vendor": vendor_profile(settings_of(item.config)),
        **settings,
    }
    if "platform" not in known and needs_of(item):
        need = single_value(
            needs_of(item), "device_notifications", "device_notification_settings"
        )
        known["platform"] = str(need.request.platform)
    missing = [
        name for name in ("platform", "handler_timeout_seconds") if name not in known
    ]
    if missing:
        raise ConfigError(
            f"device_notifications needs {', '.join(missing)}: return them from device_notification_settings"
        )
    return NotificationCenter(**known)
