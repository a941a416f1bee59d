"""A user's suite: mypy and pyright, both strict, accept it and find each misuse at its end.

Every misuse has a comment with the expected error: both checkers report a comment that silences nothing.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from appium.options.android import UiAutomator2Options
from appium.webdriver.webdriver import WebDriver

import pytest_device
from pytest_device import (
    AppError,
    AppiumConfig,
    ConfigError,
    DeviceArguments,
    DeviceClient,
    DeviceError,
    DeviceLease,
    NotFoundError,
    Platform,
    Session,
    SessionClient,
    SessionError,
    SessionRequest,
    SessionType,
    Share,
    Status,
    StatusError,
    WaitPolicy,
    lease,
)
from pytest_device.events import Event, Ready, detail_of
from pytest_device.notifications import (
    DailyTrigger,
    DevicePush,
    NotificationCenter,
    PushMessage,
)
from pytest_device.notifications.endpoint import PushEndpoint


@pytest.mark.device(platform="android", type="appium", max_duration_minutes=10)
def test_greets(device_driver: WebDriver, device_session: Session) -> None:
    assert "Hello" in device_driver.page_source
    assert device_session.status is Status.IN_PROGRESS


@pytest.fixture(scope="module")
def signed_in(module_device_driver: WebDriver) -> WebDriver:
    return module_device_driver


@pytest.mark.device(platform="android", type="appium", share="module")
def test_stays_signed_in(signed_in: WebDriver) -> None:
    assert signed_in.session_id


@pytest.mark.device(platform=Platform.IOS, type=SessionType.WEB_PREVIEW_ONLY)
def test_shows_its_picture(device_session: Session) -> None:
    config = device_session.remote_config

    assert config is not None
    assert (config.web_preview_url or "").startswith("https://")


@pytest.mark.device("alice", platform="android", type="appium")
@pytest.mark.device("bob", platform="ios", type="appium", share=Share.TEST)
def test_chats(
    device_sessions: Mapping[str, Session], device_drivers: Mapping[str, WebDriver]
) -> None:
    assert device_drivers["alice"].page_source != device_drivers["bob"].page_source
    assert (device_sessions["alice"].url or "").startswith("https://")


@pytest.mark.device(platform=["android", "ios"])
def test_has_a_room(
    device_platform: Platform,
    device_environment: Mapping[str, str],
    device_artifacts_dir: Path,
) -> None:
    (device_artifacts_dir / f"{device_platform.value}.txt").write_text("")
    assert device_environment.keys()


@pytest.fixture(scope="module")
def tablet(device_lease: DeviceLease) -> Iterator[Session]:
    with device_lease(
        platform="ios", device_identifier="tablet", max_duration_minutes=20
    ) as session:
        yield session


@pytest.fixture(scope="session")
def page(device_client: SessionClient, app_id: UUID) -> str:
    session = device_client.create(request(app_id))
    return device_client.get(session.id).url or ""


@pytest.fixture
def device_request_defaults(
    device_request_defaults: DeviceArguments,
) -> DeviceArguments:
    return {
        **device_request_defaults,
        "application_archive_url": "https://builds.example/app.apk",
    }


@pytest.fixture
def device_appium_options() -> UiAutomator2Options:
    return UiAutomator2Options().load_capabilities(
        {"appium:autoGrantPermissions": True}
    )


@pytest.fixture
def device_wait_policy(device_wait_policy: WaitPolicy) -> WaitPolicy:
    return replace(device_wait_policy, timeout_seconds=1200)


def pytest_device_request(
    item: pytest.Item, name: str, arguments: dict[str, Any]
) -> None:
    arguments.setdefault("name", f"{item.name} {name}")


def pytest_device_stopping(device_session: Session) -> None:
    assert device_session.status is Status.IN_PROGRESS


def request(app_id: UUID) -> SessionRequest:
    return SessionRequest(
        app_id=app_id,
        platform=Platform.ANDROID,
        type=SessionType.APPIUM,
        name="nightly",
    )


def line_of(event: Event) -> str:
    match event:
        case Ready(session=session, device=device):
            return f"{session.label}: {device}"
        case _:
            return detail_of(event)


def appium_url(client: DeviceClient, app_id: UUID) -> str | None:
    with lease(
        client,
        request(app_id),
        policy=WaitPolicy(timeout_seconds=60),
        on_event=line_of,
    ) as session:
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
        case AppError():
            return f"the app: {error}"
        case SessionError():
            return f"{error.session_id} {error.url or 'without a page'}"
        case _:
            return str(error)


def pushes(
    device_push: DevicePush,
    device_notifications: NotificationCenter,
    device_push_endpoint: PushEndpoint,
) -> str:
    device_push.send({"title": "News", "data": {"url": "/notes/7"}})
    device_push.tap(device_push.wait_shown("News"), action="reply", text="yes")
    device_push.send(
        PushMessage(title="News"), application_id=device_push_endpoint.base_url
    )
    device_notifications.schedule(
        {"content": {"title": "News"}, "trigger": DailyTrigger(hour=9, minute=30)}
    )
    with pytest_device.device_step("reply"):
        device_push.tap(device_push.wait_shown("News"))
    DailyTrigger(hour="9", minute=30)  # type: ignore[arg-type]
    return device_push.wait_opened("/notes/7")


def misuse(
    client: DeviceClient,
    session: Session,
    error: DeviceError,
    device_lease: DeviceLease,
) -> list[object]:
    device_lease(platfrom="ios")  # type: ignore[call-arg]
    device_lease(platform="windows")  # type: ignore[arg-type]
    SessionRequest(platform=Platform.IOS)  # type: ignore[call-arg]
    client.create({"platform": "ios"})  # type: ignore[arg-type]
    session.status = Status.STOPPED  # type: ignore[misc]
    return [
        DeviceArguments(share="week"),  # type: ignore[typeddict-item]
        pytest_device.Sesion,  # type: ignore[attr-defined]
        client.list(),  # type: ignore[attr-defined]
        session.remote_config.web_preview_url,  # type: ignore[union-attr]
        error.status,  # type: ignore[attr-defined]
    ]
