"""Turns collected tests into requirements and orders them; reports all mistakes at once."""

import inspect
import unittest
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.grouping import Grouping
from pytest_device.plugin.markers import (
    IDENTIFIER,
    NODES,
    PLATFORM_ARGUMENT,
    SINGLE,
    SessionNaming,
    Variant,
    arguments_by_name,
    devices_of,
    is_matrix,
    marks_of,
    platforms_of,
    requirement_of,
    variant_of,
    variants,
)
from pytest_device.plugin.options import (
    misspelled,
    settings_of,
    usage_error,
    will_run,
)
from pytest_device.plugin.provider.reach import services_of, unreachable
from pytest_device.plugin.quarantine import (
    Quarantine,
    begin_quarantines,
    read_quarantine,
)
from pytest_device.plugin.selection import (
    MULTI_DEVICE,
    SCOPED_DRIVERS,
    SINGLE_DEVICE,
    WITH_DEVICE,
)
from pytest_device.plugin.shard import select
from pytest_device.plugin.state import (
    ARGUMENTS,
    PROBLEMS,
    REQUIREMENTS,
    add_durations,
    definitions_of,
    history_of,
    requirements_of,
    several_devices,
)
from pytest_device.plugin.xdist.worker import WorkerLink
from pytest_device.scheduling.history import History
from pytest_device.scheduling.test_plan import TestPlan, in_order
from pytest_device.spec import Platform, SessionType, Share

if TYPE_CHECKING:
    from pytest_device.plugin.run import DeviceRun
    from pytest_device.sessions.request import DeviceRequirement
    from pytest_device.settings import Settings


_TYPES: Final = {
    **dict.fromkeys(
        ("device_agent_device", "device_agent_devices"), SessionType.AGENT_DEVICE
    ),
    **dict.fromkeys(("device_argent", "device_argents"), SessionType.ARGENT),
    **dict.fromkeys(
        ("device_driver", "device_drivers", *SCOPED_DRIVERS), SessionType.APPIUM
    ),
}
"""The session type that each fixture needs."""
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


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test marked for several devices with each of them, or with one under ``--device-spread``."""
    try:
        settings = settings_of(metafunc.config)
        devices = arguments_by_name(marks_of(metafunc.definition))
        if SINGLE not in devices:
            return

        possible = _variants(devices[SINGLE], settings)
    except ConfigError:
        return  # reported with all other mistakes

    if len(possible) < 2:  # noqa: PLR2004
        return

    has_platforms = len({variant.platform for variant in possible}) > 1
    has_identifiers = len(possible) > len({variant.platform for variant in possible})

    if settings.spread:
        possible = [_variant_for(possible, metafunc, settings)]

    if has_platforms and has_identifiers:
        ids = [variant.test_id for variant in possible]
        _parametrize(metafunc, (PLATFORM_ARGUMENT, IDENTIFIER), possible, ids)
    elif has_platforms:
        platforms = [variant.platform for variant in possible]
        _parametrize(metafunc, (PLATFORM_ARGUMENT,), platforms, platforms)
    else:
        identifiers = [str(variant.identifier) for variant in possible]
        _parametrize(metafunc, (IDENTIFIER,), identifiers, identifiers)


def _variants(arguments: Mapping[str, Any], settings: "Settings") -> Sequence[Variant]:
    """Return the devices on which a marked test runs; none if a platform is unknown. Raises ConfigError."""
    platforms = platforms_of(arguments, settings)
    if not set(platforms) <= set(Platform):
        return ()  # reported with all other mistakes

    identifiers = arguments.get(IDENTIFIER)
    if is_matrix(identifiers):
        return variants(platforms, identifiers)

    return [Variant(platform) for platform in platforms]


def _variant_for(
    possible: Sequence[Variant], metafunc: pytest.Metafunc, settings: "Settings"
) -> Variant:
    """Return the variant for a test that runs on one only: the same in every process, also if it runs alone."""
    # Tests for other platforms are deselected.
    if settings.is_of_this_run("platform"):
        of_this_run = [
            variant for variant in possible if variant.platform in settings.platform
        ]
        possible = of_this_run or possible

    return possible[crc32(metafunc.definition.nodeid.encode()) % len(possible)]


def _parametrize(
    metafunc: pytest.Metafunc,
    arguments: Sequence[str],
    values: Sequence[object],
    ids: Sequence[str],
) -> None:
    for name in arguments:
        if name not in metafunc.fixturenames:
            metafunc.fixturenames.append(name)
    # The platform has a fixture of its own.
    indirect = [name for name in arguments if name == PLATFORM_ARGUMENT]
    metafunc.parametrize(",".join(arguments), values, ids=ids, indirect=indirect)


def begin_with_devices(
    config: pytest.Config,
    items: list[pytest.Item],
    with_device: list[pytest.Item],
    *,
    may_order: bool,
) -> None:
    """Store the requirements of every device test, and register the run that will provide the devices.

    ``may_order``: whether no other plugin has ordered the tests. Raises pytest.UsageError with all mistakes at once,
    each with file and line; a pytest-xdist worker, where that would look like a crash, sends them to the coordinator
    and runs no tests.
    """
    from pytest_device.plugin.run import DeviceRun

    _refuse_repetition(config)
    _skip_as_unittest(with_device)
    try:
        settings = settings_of(config)
        if not hasattr(config, "workerinput"):  # the coordinator plans
            add_durations(config, settings)

        grouping = Grouping()
        run = DeviceRun(config, settings, grouping)
        needs_service = will_run(config) and not settings.plan
        problems = [
            *_conflicting_plugins(config),
            *_forked_problems(config, with_device),
            *misspelled(config),
            *(run.missing() if needs_service else ()),
            *_read_tests(with_device, run),
            *_read_quarantines(items, with_device),
        ]

        if not problems:
            may_order = (
                may_order
                and settings.reorder
                and not config.getoption("stepwise", default=False)
            )
            _select(config, items, settings)

            if may_order:
                _order(config, items, grouping)

            if settings.plan and will_run(config):
                _register_plan(config, settings)
            else:
                _check_budget(config, items, run)
                run.register(items if may_order else ())

            return
    except ConfigError as error:
        problems = list(error.problems)

    _report_problems(config, items, problems)


def _skip_as_unittest(with_device: list[pytest.Item]) -> None:
    """Let pytest skip the tests that unittest skips: without a mark, that happens in their call, on a device."""
    for item in with_device:
        owner: object = getattr(item, "cls", None) or getattr(item, "module", None)
        function: object = getattr(owner, getattr(item, "originalname", ""), None)

        candidates: list[object] = [function]
        # The tests of other classes run.
        if isinstance(owner, type) and issubclass(owner, unittest.TestCase):
            candidates.append(owner)

        for decorated in candidates:
            if getattr(decorated, "__unittest_skip__", False):
                reason = getattr(decorated, "__unittest_skip_why__", "")
                item.add_marker(pytest.mark.skip(reason=reason))


def _check_budget(
    config: pytest.Config, items: list[pytest.Item], run: "DeviceRun"
) -> None:
    """Note it if the plan needs more than the budget."""
    settings = run.settings
    budget = settings.budget_minutes
    if budget is None or not will_run(config):
        return

    # Here: a run without a budget pays for no plan.
    from pytest_device.plugin.output.plan import budget_problem

    problem = budget_problem(items, config, settings, budget)
    if problem:
        run.note(problem)


def _register_plan(config: pytest.Config, settings: "Settings") -> None:
    """Replace the run with a plan."""
    from pytest_device.plugin.output.plan import PlanReporter

    if not config.pluginmanager.has_plugin("device-plan"):
        config.pluginmanager.register(PlanReporter(settings), "device-plan")


def _report_problems(
    config: pytest.Config, items: list[pytest.Item], problems: list[str]
) -> None:
    if not hasattr(config, "workerinput"):
        raise usage_error(problems)

    # A usage error of a worker would look like a crash: the coordinator reports the problems.
    output: dict[str, Any] = vars(config)["workeroutput"]
    output[PROBLEMS] = problems
    items.clear()


def _select(
    config: pytest.Config, items: list[pytest.Item], settings: "Settings"
) -> None:
    """Deselect tests that this run should skip."""
    _deselect_platforms(config, items, settings)
    if settings.shard:
        select(config, items, settings.shard, settings.source("shard"))


def begin_without_devices(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the shard, or register the plan, of a suite without device tests; raises pytest.UsageError."""
    try:
        settings = settings_of(config)
        if settings.shard:
            select(config, items, settings.shard, settings.source("shard"))
    except ConfigError as error:
        _report_problems(config, items, list(error.problems))
        return

    if settings.plan and will_run(config):
        _register_plan(config, settings)

    if link := WorkerLink.of(config):  # the coordinator has the terminal
        link.send_plan(TestPlan((), (), (), may_order=False))


def _conflicting_plugins(config: pytest.Config) -> list[str]:
    if not config.pluginmanager.has_plugin("appium_scheduler"):
        return []

    return [
        "pytest-appium-scheduler also has a marker 'device': disable one plugin, -p no:appium_scheduler or -p no:device"
    ]


def _refuse_repetition(config: pytest.Config) -> None:
    """End the run in the process in which ``--looponfail`` of pytest-xdist repeats the tests, which catches UsageError."""
    names = {type(plugin).__name__ for plugin in config.pluginmanager.get_plugins()}
    if "WorkerFailSession" in names:
        pytest.exit(
            "--looponfail repeats tests whenever a file changes, and each time they pay for devices: run tests with "
            "devices without it, with --lf after a change",
            pytest.ExitCode.USAGE_ERROR,
        )


def _forked_problems(
    config: pytest.Config, with_device: list[pytest.Item]
) -> Iterator[str]:
    """Yield a problem if pytest-forked runs device tests: each in a child of this process, which owns the devices."""
    forks_all = config.getoption("forked", default=None)
    if forks_all is None:  # without pytest-forked, its marker does nothing
        return

    for item in with_device:
        if forks_all or item.get_closest_marker("forked"):
            yield (
                f"pytest-forked runs {item.nodeid} in a forked process, which can't use the run's devices: "
                "run tests with devices without --forked and @pytest.mark.forked"
            )
            return


def _read_tests(with_device: list[pytest.Item], run: "DeviceRun") -> list[str]:
    """Store the requirements of all device tests; return all mistakes."""
    sharing = _DriverSharing()
    problems: list[str] = []
    for item in with_device:
        try:
            _read_test(item, run.settings, run.names)
            sharing.check(item, requirements_of(item))
        except ConfigError as error:
            problems += [f"{_location(item)}: {problem}" for problem in error.problems]

    return list(dict.fromkeys(problems))  # a parametrized test repeats its mistakes


def _read_quarantines(
    items: list[pytest.Item], with_device: list[pytest.Item]
) -> list[str]:
    """Let the quarantines of tests begin; return all mistakes."""
    having_device = set(with_device)
    problems: list[str] = []
    quarantines: list[tuple[pytest.Item, Quarantine]] = []
    for item in items:
        try:
            quarantine = read_quarantine(item, has_device=item in having_device)
        except ConfigError as error:
            problems += [f"{_location(item)}: {problem}" for problem in error.problems]
        else:
            if quarantine:
                quarantines.append((item, quarantine))

    return list(dict.fromkeys(problems)) or begin_quarantines(quarantines)


def _location(item: pytest.Item) -> str:
    """Return where a test is defined, or its node ID if unknown: a plugin's tests are defined in its own files."""
    path, line, _ = item.location
    if (item.config.rootpath / path).resolve() != item.path.resolve():
        return item.nodeid

    return f"{path}:{(line or 0) + 1}: {getattr(item, 'originalname', item.name)}"


def _read_test(item: pytest.Item, settings: "Settings", names: SessionNaming) -> None:
    """Store the arguments and requirements of a test's devices. Raises ConfigError with all mistakes of the test."""
    fixtures: list[str] = getattr(item, "fixturenames", [])
    if item.get_closest_marker("device") is None and WITH_DEVICE.isdisjoint(fixtures):
        return  # only uses a fixture that creates sessions itself

    devices = devices_of(item, settings)
    requirements: dict[str, DeviceRequirement] = {}
    problems: list[str] = []
    for name, arguments in devices.items():
        try:
            requirements[name] = requirement_of(item, arguments, settings, names)
        except ConfigError as error:
            problems += [
                f"{name}: {problem}" if name else problem for problem in error.problems
            ]

    problems += _wrong_fixtures(item, devices, requirements)

    attached = [
        requirement.attach
        for requirement in requirements.values()
        if requirement.attach
    ]
    if len(attached) > len(set(attached)):
        problems.append(
            f"can't attach {' and '.join(requirements)} to one session: give each its own, attach='ID'"
        )

    at_once = len(requirements) - len(attached)
    if settings.max_sessions is not None and at_once > settings.max_sessions:
        source = settings.source("max_sessions")
        problems.append(
            f"needs {at_once} devices at once, but {source} allows only {settings.max_sessions}"
        )

    problems += unreachable(item, settings)
    if problems:
        raise ConfigError(*problems)

    item.stash[ARGUMENTS] = devices
    item.stash[REQUIREMENTS] = requirements
    if isinstance(item, pytest.Function):
        item.fixturenames = _set_up_order(item)


def _wrong_fixtures(
    item: pytest.Item,
    devices: Collection[str],
    requirements: Mapping[str, "DeviceRequirement"],
) -> Iterator[str]:
    if not isinstance(item, pytest.Function):
        yield "device() requires a test function: tests of this kind have no fixtures"
        return

    yield from _too_narrow(item)
    yield from _arguments_of_unittest(item)
    requested = set(item.fixturenames)
    types = {requirement.request.type for requirement in requirements.values()}

    if SINGLE not in devices:
        of_one = SINGLE_DEVICE & requested - {PLATFORM_ARGUMENT}
        # Report a fixture or the one that it builds on, not both.
        for name in sorted(of_one - {"device_session"} or of_one):
            instead = f"{name}s" if f"{name}s" in MULTI_DEVICE else "device_sessions"
            yield several_devices(
                name, "device_drivers" if name in SCOPED_DRIVERS else instead, devices
            )

    fixtures = {
        kind.value: name
        for name, kind in sorted(_TYPES.items(), reverse=True)
        if name in requested
    }
    for needed, name in fixtures.items():
        if others := {kind.value for kind in types} - {needed}:
            yield f"{name} needs type={needed!r}, not {min(others)!r}: add type={needed!r} to the marker"

    if "device_environment" in requested and SessionType.WEB_PREVIEW_ONLY in types:
        yield "device_environment needs a controller, but type='web-preview-only' has none"


def _arguments_of_unittest(item: pytest.Function) -> Iterator[str]:
    """Yield a problem for a method of a ``unittest.TestCase`` with arguments: unittest calls it without any."""
    if item.cls is None or not issubclass(item.cls, unittest.TestCase):
        return

    # Not that of a wrapped method: a decorator such as mock.patch passes arguments itself.
    parameters = list(
        inspect.signature(item.obj, follow_wrapped=False).parameters.values()
    )

    if not inspect.ismethod(item.obj):  # before pytest 8.2 it is not bound yet
        parameters = parameters[1:]

    required = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]

    if required:
        yield (
            f"a method of a unittest.TestCase can't request {', '.join(required)} as an argument, because unittest "
            "calls it without arguments: set an attribute in an autouse fixture, or use a class without TestCase"
        )


def _deselect_platforms(
    config: pytest.Config, items: list[pytest.Item], settings: "Settings"
) -> None:
    """Deselect tests for platforms that the command line or the environment does not name."""
    if not settings.platform or not settings.is_of_this_run("platform"):
        return

    others = [
        item
        for item in items
        if {
            requirement.request.platform
            for requirement in requirements_of(item).values()
        }.difference(settings.platform)
    ]

    if others:
        config.hook.pytest_deselected(items=others)
        gone = set(others)
        items[:] = [item for item in items if item not in gone]


def _order(config: pytest.Config, items: list[pytest.Item], grouping: Grouping) -> None:
    """Group tests with identical requirements, as far as shared fixtures allow."""
    plan = grouping.plan(items, may_order=True)
    if not plan.has_devices():  # all device tests are deselected
        return

    # Workers must agree on the order.
    history = History(None) if hasattr(config, "workerinput") else history_of(config)
    items[:] = [
        items[index]
        for index in in_order(plan, [item.nodeid for item in items], history)
    ]


def _too_narrow(item: pytest.Function) -> Iterator[str]:
    """Yield a problem for each fixture of the suite that requests a narrower-scoped fixture of this plugin."""
    for name, definitions in definitions_of(item).items():
        for definition in definitions:
            width = _SCOPES.index(definition.scope)
            for requested in sorted(WITH_DEVICE.intersection(definition.argnames)):
                scope = SCOPED_DRIVERS.get(requested, "function")
                if _SCOPES.index(scope) < width:
                    yield (
                        f"the {definition.scope}-scoped fixture {name} can't request {requested}, which is "
                        f"{scope}-scoped: {_instead(requested, width)}"
                    )


def _instead(requested: str, width: int) -> str:
    """Return what a fixture whose scope has this index can do instead of requesting another one."""
    if requested == "device_driver" or requested in SCOPED_DRIVERS:
        wide_driver = next(
            name
            for name, scope in SCOPED_DRIVERS.items()
            if _SCOPES.index(scope) >= width
        )
        return f"request {wide_driver}"

    return "make it function-scoped, or create a session for it with device_lease"


class _DriverSharing:
    """Finds tests that request a shared driver but cannot share it."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str, object], tuple[str, DeviceRequirement]] = {}

    def check(
        self, item: pytest.Item, requirements: "Mapping[str, DeviceRequirement]"
    ) -> None:
        """Raise ConfigError if a test cannot use the shared driver; tests on several platforms have one for each."""
        names: Sequence[str] = getattr(item, "fixturenames", ())
        wide = [name for name in SCOPED_DRIVERS if name in names]
        problems = [
            problem
            for fixture in wide
            for requirement in requirements.values()
            for problem in self._differing(item, fixture, requirement)
        ]

        drivers = list(wide)
        if {"device_driver", "device_drivers"}.intersection(names):
            drivers.append("device_driver")

        if len(drivers) > 1:
            problems.append(
                f"{' and '.join(drivers)} can't be used in one test, because a device has one driver"
            )

        if problems:
            raise ConfigError(*problems)

    def _differing(
        self, item: pytest.Item, fixture: str, requirement: "DeviceRequirement"
    ) -> Iterator[str]:
        shares = _SHARES.get(SCOPED_DRIVERS[fixture], (Share.RUN,))
        share = requirement.share
        if share not in shares:
            rule = " or ".join(repr(str(wider)) for wider in shares)
            yield f"share={str(share)!r} is too narrow for {fixture}: it must be {rule}"
            return

        scope = NODES.get(SCOPED_DRIVERS[fixture], pytest.Session)
        node = item.getparent(scope) or item
        other, first = self._first.setdefault(
            (node.nodeid, fixture, variant_of(item)), (item.nodeid, requirement)
        )
        if first != requirement:
            mine = dict(requirement.request)
            fields = [
                name
                for name, value in dict(first.request).items()
                if value != mine[name]
            ]
            # Requests that are equal differ in how their device is shared.
            if not fields:
                fields = ["share"]

            yield (
                f"its marker differs from that of {other} in {', '.join(fields)}, but {fixture} shares one device "
                "between them: use the same marker, or device_driver"
            )


def _set_up_order(item: pytest.Function) -> list[str]:
    """Return a test's fixtures in setup order: its sessions last, after any fixture that may skip the test.

    The services with which the app talks come before its sessions: a tunnel to them that fails costs no device.
    Appium options come before the first fixture with a session: a mistake in them costs no device. ``setUpClass`` and
    similar methods come after the other fixtures of their scope, so that they find a shared driver.
    """
    names = item.fixturenames
    definitions = definitions_of(item)

    # A copy, since pytest shares the list among the items of a function.
    if "device_sessions" not in names:
        names = [*names, "device_sessions"]
    if services := services_of(item):
        names = [*services, *(name for name in names if name not in services)]

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
        index = next(
            index for index, name in enumerate(names) if _has_session(name, definitions)
        )
        names = [*names[:index], "device_appium_options", *names[index:]]

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
        _has_session(requested, definitions, seen | {name})
        for requested in definitions[name][-1].argnames
    )
