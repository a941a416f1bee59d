"""Decides what caused an error that is not the test's own: app, configuration or infrastructure."""

from typing import Final

from pytest_device.errors import (
    AppError,
    ConfigError,
    DeviceError,
    ForbiddenError,
    InvalidRequestError,
    NotAttemptedError,
    NotFoundError,
    StatusError,
    UnauthorizedError,
)
from pytest_device.sessions.network import InterceptedError
from pytest_device.verdict import Verdict

_UNPROCESSABLE: Final = 422
_CONFIG: Final = (
    ConfigError,
    InvalidRequestError,
    UnauthorizedError,
    ForbiddenError,
    NotFoundError,
    InterceptedError,
)
"""A refusal by the service never counts as infrastructure: 400 also means no access, or an invalid request. Nor does a
plugin of the suite that blocks the calls: another device would not help."""


def verdict_of(error: DeviceError) -> Verdict:
    """Return the cause of an error that occurred while a device was provided."""
    if isinstance(error, AppError):
        return Verdict.APP

    if isinstance(error, NotAttemptedError):
        return error.verdict

    # Not sent by the service itself.
    if isinstance(error, StatusError) and error.is_page:
        return Verdict.INFRASTRUCTURE

    if isinstance(error, _CONFIG) or (
        isinstance(error, StatusError) and error.status == _UNPROCESSABLE
    ):
        return Verdict.CONFIG

    return Verdict.INFRASTRUCTURE
