"""The devices that a marked test runs on: each platform, and on each the identifiers that its marker lists."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from pytest_device.errors import ConfigError
from pytest_device.spec import Platform

IDENTIFIER: Final = "device_identifier"
"""The marker's argument, and the argument that parametrizes a test marked for several identifiers."""


class Variant(NamedTuple):
    """A platform and an identifier on it; None leaves the choice of a device to the service."""

    platform: str
    identifier: str | None = None

    @property
    def test_id(self) -> str:
        """The variant in the ID of a test for several platforms."""
        return "-".join(filter(None, self))


def is_matrix(identifiers: object) -> bool:
    """Return whether the value of a marker's ``device_identifier`` lists identifiers."""
    return isinstance(identifiers, list | tuple | set | frozenset | Mapping)


def variants(platforms: Sequence[str], identifiers: object) -> tuple[Variant, ...]:
    """Return what a marker's platforms and identifiers name together, in the marker's order.

    >>> several = variants(["android", "ios"], {"android": ["Pixel 8", "Pixel 6"]})
    >>> [variant.test_id for variant in several]
    ['android-Pixel 8', 'android-Pixel 6', 'ios']

    Arguments:
        platforms: the platforms of the marker or of the settings.
        identifiers: a list for one platform, or a mapping of platforms to an identifier or a list. A platform that the
            mapping lacks has one variant without an identifier.

    Raises:
        ConfigError: the identifiers are anything else, or an empty list.
    """
    if isinstance(identifiers, Mapping):
        by_platform = cast("Mapping[Any, object]", identifiers)
        unknown = [key for key in by_platform if key not in list(Platform)]
        if unknown:
            raise ConfigError(
                f"{IDENTIFIER}={identifiers!r}: {unknown[0]!r} must be android or ios"
            )

        return tuple(
            Variant(platform, identifier)
            for platform in platforms
            for identifier in _listed(by_platform.get(platform), by_platform)
        )

    if len(platforms) > 1:
        example = "{'android': ['Pixel 8', 'Pixel 6'], 'ios': ['iPhone 16']}"
        raise ConfigError(
            f"{IDENTIFIER}={identifiers!r}: a list is for one platform; for several, map each to its own, for example "
            f"{IDENTIFIER}={example}"
        )

    return tuple(
        Variant(platform, identifier)
        for platform in platforms
        for identifier in _listed(identifiers, identifiers)
    )


def _listed(value: object, whole: object) -> tuple[str | None, ...]:
    """Return the identifiers of one platform, each once; ``whole`` is the marker's argument, for messages."""
    if value is None or isinstance(value, str):
        return (value,)

    # Not a set: all pytest-xdist workers have to collect the tests in the same order.
    if not isinstance(value, list | tuple):
        raise ConfigError(
            f"{IDENTIFIER}={whole!r}: {value!r} must be a string or a list of strings"
        )

    names = cast("Sequence[object]", value)
    if not names:
        raise ConfigError(f"{IDENTIFIER}={whole!r}: the list must not be empty")

    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"{IDENTIFIER}={whole!r}: {name!r} must be a simulator name, a UDID or a hardware profile"
            )

    return tuple(dict.fromkeys(cast("Sequence[str]", names)))
