"""Who is to blame for an error: the test, the app under test, the infrastructure, or the configuration."""

from enum import StrEnum
from typing import Final

from pytest_device.errors import (
    AppError,
    ConfigError,
    DeviceError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    UnauthorizedError,
)


class Verdict(StrEnum):
    """Who has to act on an error."""

    APP = "app"
    CONFIG = "config"
    INFRASTRUCTURE = "infrastructure"


_CONFIG: Final = (ConfigError, InvalidRequestError, UnauthorizedError, ForbiddenError, NotFoundError)
"""A refusal is never called infrastructure: 400 also means no access, or a rule that the request breaks."""


def verdict_of(error: DeviceError) -> Verdict:
    """Return what an error met while providing a device is about."""
    if isinstance(error, AppError):
        return Verdict.APP
    if isinstance(error, _CONFIG):
        return Verdict.CONFIG
    return Verdict.INFRASTRUCTURE
