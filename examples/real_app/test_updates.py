"""Over-the-air updates, from a service that belongs to the test."""

from pathlib import Path

import pytest

from pytest_device import Platform
from pytest_device.updates.service import DeviceUpdateService

from .notes_app import NotesApp

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")

EXPORTS = Path(__file__).with_name("exports")
VERSION = "1.0.0"


def test_an_update_runs_at_the_next_start(app: NotesApp, device_update_service: DeviceUpdateService) -> None:
    app.wait_for("update", "up to date")

    device_update_service.publish(EXPORTS / "v2", runtime_version=VERSION)
    app.restart()
    app.wait_for("update", "pending")
    app.wait_for("version", "Version 1")

    app.restart()
    app.wait_for("version", "Version 2")


def test_a_broken_update_is_reported_and_left(
    app: NotesApp, device_update_service: DeviceUpdateService, device_platform: Platform
) -> None:
    broken = device_update_service.publish(EXPORTS / "broken", runtime_version=VERSION)[device_platform]
    app.restart()
    app.wait_for("update", "pending")

    app.restart()

    crash = device_update_service.wait_for_crash(broken.id)
    assert crash.fatal_error == "missing is not defined"
    app.wait_for("version", "Version 1")


def test_the_app_starts_without_the_service(app: NotesApp, device_update_service: DeviceUpdateService) -> None:
    device_update_service.fail("server_error", times=2)  # the launch before this one may still be asking

    app.restart()

    app.wait_for("update", "failed with 500")
    app.wait_for("version", "Version 1")
