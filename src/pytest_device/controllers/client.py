"""The base class of the clients for agent-device and argent: a session's controller, its connection and its files."""

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Self, TypeVar
from urllib.parse import quote

from pytest_device.controllers.environment import environment_of
from pytest_device.controllers.transport import OK, Transport, as_mapping
from pytest_device.errors import ControllerError
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import RemoteConfig

__tracebackhide__ = True  # errors are shown at the line of the test

CALL_SECONDS: Final = 180.0
"""Maximum seconds of one call: the first one prepares the device."""

C = TypeVar("C", bound=RemoteConfig)


def config_of(session: Session, kind: type[C], controller: str) -> C:
    """Return the connection details of a session; raise ControllerError if it has another controller, or none."""
    if not isinstance(config := session.remote_config, kind):
        raise ControllerError(f"session {session.id} is of type {session.type}: it has no {controller}")
    return config


class Client:
    """A connection to one controller, closed at the end of its ``with`` block."""

    controller: ClassVar[str]

    def __init__(
        self,
        session: Session,
        environment: Mapping[str, str] | None = None,
        *,
        timeout_seconds: float = CALL_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        url, token = self._access(session)
        self.environment = environment_of(session) if environment is None else environment
        self.platform = str(session.platform)
        self._timeout_seconds, self._sleep = timeout_seconds, sleep
        self._transport = Transport(
            self.controller, url, token, page=session.page, timeout_seconds=timeout_seconds, sleep=sleep
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; a session of agent-device stays open."""
        self._transport.close()

    def artifact(self, artifact_id: str) -> bytes:
        """Return a file created by a call, by the ID of its artifact; agent-device returns it once."""
        reply = self._transport.get(f"/artifacts/{quote(artifact_id, safe='')}")
        if reply.status != OK:
            raise self._no_artifact(as_mapping(self._transport.value_of(reply)), reply.status)
        return reply.body

    def _access(self, session: Session) -> tuple[str, str]:
        raise NotImplementedError

    def _no_artifact(self, reply: Mapping[str, Any], status: int) -> ControllerError:
        raise NotImplementedError
