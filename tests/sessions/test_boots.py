"""What a boot depends on, and how long it took."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytest_device import Session, SessionRequest

APP = "11111111-2222-4333-8444-555555555555"
BUILD = "21111111-2222-4333-8444-555555555555"


def request(**arguments: Any) -> SessionRequest:
    return SessionRequest.from_arguments(
        **{"app_id": APP, "platform": "ios", "type": "appium"} | arguments
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "mine"},
        {"max_duration_minutes": 7},
        {"max_idle_time_minutes": 3},
        {"app_id": BUILD},
    ],
)
def test_irrelevant_fields_do_not_change_the_boot_key(
    arguments: Mapping[str, Any],
) -> None:
    assert request(**arguments).boot_key == request().boot_key == "ios appium"


def test_each_relevant_field_changes_the_boot_key() -> None:
    several: list[dict[str, Any]] = [
        {},
        {"platform": "android"},
        {"type": "argent"},
        {"device_identifier": "iPhone 17"},
        {"device_identifier": "iPhone 17 Pro"},
        {"package_version": "3.1"},
        {"package_version": "iPhone 17"},
        {"build_id": BUILD},
        {"application_archive_url": "https://builds.example/app"},
        {"vendor_go": True},
        {"vendor_go": True, "sdk_version": "54"},
    ]

    assert len({request(**arguments).boot_key for arguments in several}) == len(several)


def test_a_boot_key_reveals_no_possible_secret() -> None:
    source = {
        "application_archive_url": "https://me:hidden@builds.example/app?X-Signature=hidden"
    }
    secret = request(
        **source,
        device_identifier="hidden",
        launch_args=["hidden"],
        open_url="app://hidden",
    )

    assert "hidden" not in secret.boot_key
    assert secret.boot_key == (
        request(
            application_archive_url="https://builds.example/other",
            device_identifier="hidden",
        ).boot_key
    )


def session(**times: datetime) -> Session:
    made = datetime(2026, 11, 21, tzinfo=UTC)
    values = {
        "id": BUILD,
        "app_id": APP,
        "url": "https://devices.example/1",
        "job_run_id": "1",
        "type": "appium",
    }
    reported = {"platform": "ios", "status": "in-progress", "max_duration_minutes": 30}
    wire = {
        name: time.isoformat()
        for name, time in {"created_at": made, "updated_at": made, **times}.items()
    }
    return Session.model_validate(values | reported | wire, by_name=True)


def test_boot_times_are_computed_from_the_services_timestamps() -> None:
    made = datetime(2026, 11, 21, tzinfo=UTC)

    assert session(started_at=made + timedelta(seconds=52.5)).boot_seconds == 52.5
    assert session(started_at=made - timedelta(seconds=1)).boot_seconds is None
    assert session().boot_seconds is None
