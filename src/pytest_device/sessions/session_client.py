"""The calls that create, read and stop sessions."""

from typing import Protocol
from uuid import UUID

from pytest_device.errors import ConfigError, NoCapacityError, StatusError, TransportError
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest


class SessionClient(Protocol):
    """The three calls of the document: a ``DeviceClient``, or what goes through a reaper."""

    @property
    def base_url(self) -> str: ...
    def create(self, request: SessionRequest) -> Session: ...
    def get(self, session_id: UUID | str) -> Session: ...
    def stop(self, session_id: UUID | str) -> Session: ...


def may_have_created(error: BaseException) -> bool:
    """Return whether a create call that ended so may have left a session that nobody can name.

    Not so when it never left, or was refused.
    """
    match error:
        case ConfigError():
            return False
        case TransportError():
            return error.sent
        case NoCapacityError():
            return False
        case StatusError():
            return error.status >= 500  # noqa: PLR2004  # a gateway may have lost a good answer
        case _:  # an interrupt loses the answer too
            return True
