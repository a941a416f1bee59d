"""Push clients and notification centers for tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.center import NotificationCenter
from pytest_device.notifications.content import PushMessage
from pytest_device.notifications.lists import NotificationList
from pytest_device.notifications.push import (
    AgentDevicePush,
    AppiumPush,
    Deliver,
    DevicePush,
    LocalPush,
    PushDelivery,
    PushDevice,
)
from pytest_device.notifications.shade import AndroidShade, IosCenter
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.project import vendor_profile
from pytest_device.plugin.provider.reach import SIMULATED
from pytest_device.plugin.state import requirements_of, single_value
from pytest_device.sessions.models import Session
from pytest_device.spec import SessionType

__tracebackhide__ = hides_frames


Own = PushDelivery | Deliver | None


def push_to(session: Session, fixture: Callable[[str], Any], own: Own) -> DevicePush:
    """Return the push client of a session's device, which uses the suite's own delivery or the controller."""
    platform = session.platform
    device = PushDevice(
        "ios" if platform == "ios" else "android",
        f"the {platform} device of session {session.id}",
    )

    if own is not None:
        if isinstance(own, AppiumPush):
            device = replace(device, application_id=_app_of(own.driver))

        shade = (
            partial(_list_of, fixture, device)
            if session.type == SessionType.APPIUM
            else None
        )
        return DevicePush(own, device, list_of=shade)

    match session.type:
        case SessionType.APPIUM:
            driver = fixture("device_driver")
            if _is_local(driver):
                return DevicePush(LocalPush(driver), device)

            return DevicePush(
                AppiumPush(driver),
                replace(device, application_id=_app_of(driver)),
                list_of=partial(_list_of, fixture, device),
            )
        case SessionType.AGENT_DEVICE:
            return DevicePush(AgentDevicePush(fixture("device_agent_device")), device)
        case other:
            return DevicePush(
                None,
                device,
                f"sessions of type {other} can't receive push messages: use device_push_delivery",
            )


def _list_of(
    fixture: Callable[[str], Any], device: PushDevice, sent: Sequence[PushMessage]
) -> NotificationList:
    """Return the notification list of an Appium session's device."""
    driver = fixture("device_driver")
    if _is_local(driver):
        return LocalPush(driver)
    if device.platform == "ios":
        return IosCenter(driver, sent)

    return AndroidShade(driver, _app_of(driver))


def _is_local(driver: Any) -> bool:
    return str(driver.capabilities.get("udid", "")).startswith(SIMULATED)


def _app_of(driver: Any) -> str:
    capabilities: Mapping[str, Any] = driver.capabilities
    return str(capabilities.get("bundleId") or capabilities.get("appPackage") or "")


def center_of(item: pytest.Item, settings: Mapping[str, Any]) -> NotificationCenter:
    """Return a notification center for a test. Raises ConfigError for missing settings."""
    arguments: dict[str, Any] = {
        "clock": lambda: datetime.now(UTC),
        "vendor": vendor_profile(settings_of(item.config)),
        **settings,
    }

    if "platform" not in arguments and requirements_of(item):
        requirement = single_value(
            requirements_of(item),
            "device_notifications",
            "device_service_settings",
        )
        arguments["platform"] = str(requirement.request.platform)

    missing = [
        name
        for name in ("platform", "handler_timeout_seconds")
        if name not in arguments
    ]
    if missing:
        raise ConfigError(
            f"device_notifications needs {', '.join(missing)}: return them from device_service_settings"
        )

    return NotificationCenter(**arguments)
