"""A suite as a user writes it: mypy and pyright, both strict, accept it and find each misuse at its end.

Every misuse stands with the complaint that it must get: both checkers report a comment that silences nothing.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from uuid import UUID

import pytest
from appium.webdriver.webdriver import WebDriver

import pytest_device
from pytest_device import (
    AppiumConfig,
    ConfigError,
    DeviceClient,
    DeviceError,
    NotFoundError,
    Platform,
    Session,
    SessionError,
    SessionRequest,
    SessionType,
    Status,
    StatusError,
    WaitPolicy,
    lease,
)


@pytest.mark.device(platform="android", type="appium", max_duration_minutes=10)
def test_greets(device_driver: WebDriver, device_session: Session) -> None:
    assert "Hello" in device_driver.page_source
    assert device_session.status is Status.IN_PROGRESS


@pytest.mark.device(platform=Platform.IOS, type=SessionType.WEB_PREVIEW_ONLY)
def test_shows_its_picture(device_session: Session) -> None:
    config = device_session.remote_config

    assert config is not None
    assert (config.web_preview_url or "").startswith("https://")


def request(app_id: UUID) -> SessionRequest:
    return SessionRequest(app_id=app_id, platform=Platform.ANDROID, type=SessionType.APPIUM, name="nightly")


def appium_url(client: DeviceClient, app_id: UUID) -> str | None:
    with lease(client, request(app_id), policy=WaitPolicy(timeout_seconds=60)) as session:
        match session.remote_config:
            case AppiumConfig(appium_url=url):
                return url
            case _:
                return None


def is_gone(session_id: UUID) -> bool:
    with DeviceClient("https://devices.example", "token") as client:
        try:
            return client.get(session_id).status is Status.STOPPED
        except NotFoundError:
            return True


def reason(error: DeviceError) -> str:
    match error:
        case ConfigError():
            return "; ".join(error.problems)
        case StatusError():
            return f"{error.status} {error.detail}"
        case SessionError():
            return f"{error.session_id} {error.url or 'without a page'}"
        case _:
            return str(error)


def misuse(client: DeviceClient, session: Session, error: DeviceError) -> list[object]:
    SessionRequest(platform=Platform.IOS)  # type: ignore[call-arg]
    client.create({"platform": "ios"})  # type: ignore[arg-type]
    session.status = Status.STOPPED  # type: ignore[misc]
    return [
        pytest_device.Sesion,  # type: ignore[attr-defined]
        client.list(),  # type: ignore[attr-defined]
        session.remote_config.web_preview_url,  # type: ignore[union-attr]
        error.status,  # type: ignore[attr-defined]
    ]
