"""Remote iOS Simulators and Android Emulators for pytest: the public names, imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pytest_device.controllers.agent_device import AgentDevice as AgentDevice
    from pytest_device.controllers.argent import Argent as Argent
    from pytest_device.controllers.argent import Tool as Tool
    from pytest_device.controllers.snapshot import Node as Node
    from pytest_device.controllers.snapshot import Snapshot as Snapshot
    from pytest_device.errors import AgentDeviceError as AgentDeviceError
    from pytest_device.errors import AppError as AppError
    from pytest_device.errors import ArgentError as ArgentError
    from pytest_device.errors import AuthConfigError as AuthConfigError
    from pytest_device.errors import AuthError as AuthError
    from pytest_device.errors import ConfigError as ConfigError
    from pytest_device.errors import ControllerError as ControllerError
    from pytest_device.errors import ControllerLostError as ControllerLostError
    from pytest_device.errors import CreateDelayedError as CreateDelayedError
    from pytest_device.errors import DeviceError as DeviceError
    from pytest_device.errors import ForbiddenError as ForbiddenError
    from pytest_device.errors import InvalidRequestError as InvalidRequestError
    from pytest_device.errors import LeaseTimeoutError as LeaseTimeoutError
    from pytest_device.errors import NoCapacityError as NoCapacityError
    from pytest_device.errors import NotAttemptedError as NotAttemptedError
    from pytest_device.errors import NotFoundError as NotFoundError
    from pytest_device.errors import ProjectError as ProjectError
    from pytest_device.errors import ResponseError as ResponseError
    from pytest_device.errors import ServiceError as ServiceError
    from pytest_device.errors import SessionError as SessionError
    from pytest_device.errors import SessionFailedError as SessionFailedError
    from pytest_device.errors import SessionGoneError as SessionGoneError
    from pytest_device.errors import SessionStoppedError as SessionStoppedError
    from pytest_device.errors import SessionTimeoutError as SessionTimeoutError
    from pytest_device.errors import StatusError as StatusError
    from pytest_device.errors import StopDelayedError as StopDelayedError
    from pytest_device.errors import StopFailedError as StopFailedError
    from pytest_device.errors import TokenError as TokenError
    from pytest_device.errors import TransportError as TransportError
    from pytest_device.errors import UnauthorizedError as UnauthorizedError
    from pytest_device.errors import UnexpectedReplyError as UnexpectedReplyError
    from pytest_device.sessions.client import DeviceClient as DeviceClient
    from pytest_device.sessions.client import SessionClient as SessionClient
    from pytest_device.sessions.lease import lease as lease
    from pytest_device.sessions.lifecycle import WaitPolicy as WaitPolicy
    from pytest_device.sessions.models import Session as Session
    from pytest_device.sessions.remote_config import (
        AgentDeviceConfig as AgentDeviceConfig,
    )
    from pytest_device.sessions.remote_config import AppiumConfig as AppiumConfig
    from pytest_device.sessions.remote_config import ArgentConfig as ArgentConfig
    from pytest_device.sessions.remote_config import RemoteConfig as RemoteConfig
    from pytest_device.sessions.remote_config import (
        WebPreviewConfig as WebPreviewConfig,
    )
    from pytest_device.sessions.request import DeviceArguments as DeviceArguments
    from pytest_device.sessions.request import DeviceLease as DeviceLease
    from pytest_device.sessions.request import SessionRequest as SessionRequest
    from pytest_device.spec import Platform as Platform
    from pytest_device.spec import SessionType as SessionType
    from pytest_device.spec import Share as Share
    from pytest_device.spec import Status as Status
    from pytest_device.trace.recorder import device_step as device_step

_NAMES_OF: Final = {
    "controllers.agent_device": "AgentDevice",
    "controllers.argent": "Argent Tool",
    "controllers.snapshot": "Node Snapshot",
    "errors": (
        "AgentDeviceError AppError ArgentError AuthConfigError AuthError ConfigError ControllerError "
        "ControllerLostError CreateDelayedError DeviceError ForbiddenError InvalidRequestError LeaseTimeoutError "
        "NoCapacityError NotAttemptedError NotFoundError ProjectError ResponseError ServiceError SessionError "
        "SessionFailedError SessionGoneError SessionStoppedError SessionTimeoutError StatusError StopDelayedError "
        "StopFailedError TokenError TransportError UnauthorizedError UnexpectedReplyError"
    ),
    "sessions.client": "DeviceClient SessionClient",
    "sessions.lease": "lease",
    "sessions.lifecycle": "WaitPolicy",
    "sessions.models": "Session",
    "sessions.remote_config": "AgentDeviceConfig AppiumConfig ArgentConfig RemoteConfig WebPreviewConfig",
    "sessions.request": "DeviceArguments DeviceLease SessionRequest",
    "spec": "Platform SessionType Share Status",
    "trace.recorder": "device_step",
}
_MODULE_OF: Final = {
    name: module for module, names in _NAMES_OF.items() for name in names.split()
}


if not TYPE_CHECKING:  # otherwise a misspelled name would pass as Any

    def __getattr__(name: str) -> object:
        if name in _MODULE_OF:
            return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
