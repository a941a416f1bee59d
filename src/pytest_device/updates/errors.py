"""Errors for updates and for code signing certificates."""

from pytest_device.errors import ConfigError, DeviceError


class UpdateError(DeviceError):
    """An update, or a protocol message, that can't be read or must not be used.

    ``code`` is ``malformed``, ``too_large``, ``not_specified``, ``signature_missing`` or ``signature_invalid``.
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class CertificateError(UpdateError, ConfigError, ValueError):
    """A certificate or key that must not be used for signing.

    ``code`` is ``expired``, ``not_yet_valid``, ``wrong_usage``, ``key_mismatch`` or ``malformed``.
    """
