"""Fixtures and their scopes: which tests may share a driver, and the order of setup."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.markers import NODES, PLATFORM_ARGUMENT, parameters_of
from pytest_device.plugin.selection import SCOPED_DRIVERS, WITH_DEVICE
from pytest_device.plugin.state import definitions_of
from pytest_device.spec import Share

if TYPE_CHECKING:
    from pytest_device.sessions.requirement import DeviceRequirement

_SCOPES: Final = ("function", "class", "module", "package", "session")
"""From the narrowest to the widest."""
_SHARES: Final = {
    "class": (Share.CLASS, Share.MODULE, Share.RUN),
    "module": (Share.MODULE, Share.RUN),
}
"""Scopes in which a driver's device may be shared, by the driver's scope; otherwise the whole run."""
_XUNIT: Final = (
    "_unittest_setUpClass_fixture_",
    "_xunit_setup_class_fixture_",
    "_xunit_setup_module_fixture_",
)
"""Prefixes of pytest's names for the setup of classes and modules."""


def too_narrow(item: pytest.Function) -> Iterator[str]:
    """Yield a problem for each fixture of the suite that requests a narrower-scoped fixture of this plugin."""
    for name, definitions in definitions_of(item).items():
        for definition in definitions:
            at = _SCOPES.index(definition.scope)
            for requested in sorted(WITH_DEVICE.intersection(definition.argnames)):
                scope = SCOPED_DRIVERS.get(requested, "function")
                if _SCOPES.index(scope) < at:
                    yield (
                        f"the {definition.scope}-scoped fixture {name} can't request {requested}, which is "
                        f"{scope}-scoped: {_instead(requested, at)}"
                    )


def _instead(requested: str, at: int) -> str:
    if requested == "device_driver" or requested in SCOPED_DRIVERS:
        wide = next(
            name for name, scope in SCOPED_DRIVERS.items() if _SCOPES.index(scope) >= at
        )
        return f"request {wide}"
    return "make it function-scoped, or create a session for it with device_lease"


class DriverSharing:
    """Finds tests that request a shared driver but cannot share it."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str, object], tuple[str, DeviceRequirement]] = {}

    def check(
        self, item: pytest.Item, needs: "Mapping[str, DeviceRequirement]"
    ) -> None:
        """Raise ConfigError if a test cannot use the shared driver; tests on several platforms have one for each."""
        names: Sequence[str] = getattr(item, "fixturenames", ())
        wide = [name for name in SCOPED_DRIVERS if name in names]
        problems = [
            problem
            for fixture in wide
            for need in needs.values()
            for problem in self._differing(item, fixture, need)
        ]
        drivers = [
            *wide,
            *(
                {"device_driver", "device_drivers"}.intersection(names)
                and ["device_driver"]
            ),
        ]
        if len(drivers) > 1:
            problems.append(
                f"{' and '.join(drivers)} can't be used in one test, because a device has one driver"
            )
        if problems:
            raise ConfigError(*problems)

    def _differing(
        self, item: pytest.Item, fixture: str, need: "DeviceRequirement"
    ) -> Iterator[str]:
        shares, share = _SHARES.get(SCOPED_DRIVERS[fixture], (Share.RUN,)), need.share
        if share not in shares:
            rule = " or ".join(repr(str(one)) for one in shares)
            yield f"share={str(share)!r} is too narrow for {fixture}: it must be {rule}"
            return
        scope = NODES.get(SCOPED_DRIVERS[fixture], pytest.Session)
        node = item.getparent(scope) or item
        platform = parameters_of(item).get(PLATFORM_ARGUMENT)
        other, first = self._first.setdefault(
            (node.nodeid, fixture, platform), (item.nodeid, need)
        )
        if first != need:
            pairs = zip(first.request, need.request, strict=True)
            fields = [
                name for (name, one), (_, another) in pairs if one != another
            ] or ["share"]
            yield (
                f"its marker differs from that of {other} in {', '.join(fields)}, but {fixture} shares one device "
                "between them: use the same marker, or device_driver"
            )


def set_up_order(item: pytest.Function) -> list[str]:
    """Return a test's fixtures in setup order: its sessions last, after any fixture that may skip the test.

    Appium options come before the first fixture with a session: a mistake in them costs no device. ``setUpClass`` and
    similar methods come after the other fixtures of their scope, so that they find a shared driver.
    """
    names, definitions = item.fixturenames, definitions_of(item)
    if (
        "device_sessions" not in names
    ):  # a copy, since pytest shares the list among the items of a function
        names = [*names, "device_sessions"]
    if not SCOPED_DRIVERS.keys().isdisjoint(names):
        scopes = {
            name: _SCOPES.index(of_name[-1].scope)
            for name, of_name in definitions.items()
            if of_name
        }
        return sorted(
            names, key=lambda name: (-scopes.get(name, 0), name.startswith(_XUNIT))
        )
    if "device_drivers" in names:
        place = next(
            index for index, name in enumerate(names) if _has_session(name, definitions)
        )
        names = [*names[:place], "device_appium_options", *names[place:]]
    return names


def _has_session(
    name: str,
    definitions: Mapping[str, Sequence[Any]],
    seen: frozenset[str] = frozenset(),
) -> bool:
    """Return whether a fixture requests the test's sessions, directly or through others."""
    if name == "device_sessions" or name in seen or not definitions.get(name):
        return name == "device_sessions"
    return any(
        _has_session(one, definitions, seen | {name})
        for one in definitions[name][-1].argnames
    )
