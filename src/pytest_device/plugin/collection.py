"""Turns collected tests into requirements and orders them; reports all mistakes at once."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.grouping import Grouping
from pytest_device.plugin.markers import (
    PLATFORM_ARGUMENT,
    SINGLE,
    Names,
    arguments_by_name,
    devices_of,
    marks_of,
    need_of,
    platforms_of,
)
from pytest_device.plugin.options import (
    is_dry_run,
    misspelled,
    settings_of,
    usage_error,
    will_run,
)
from pytest_device.plugin.scopes import DriverSharing, set_up_order, too_narrow
from pytest_device.plugin.selection import (
    MULTI_DEVICE,
    SCOPED_DRIVERS,
    SINGLE_DEVICE,
    WITH_DEVICE,
)
from pytest_device.plugin.shard import select
from pytest_device.plugin.state import (
    ARGUMENTS,
    NEEDS,
    PROBLEMS,
    history_of,
    needs_of,
    several_devices,
)
from pytest_device.plugin.xdist.worker import WorkerLink
from pytest_device.scheduling.history import History
from pytest_device.scheduling.sizing import Use, sized
from pytest_device.scheduling.test_plan import TestPlan, in_order
from pytest_device.spec import Platform, SessionType

if TYPE_CHECKING:
    from pytest_device.plugin.run import DeviceRun
    from pytest_device.sessions.requirement import DeviceRequirement
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
_ENVIRONMENTS: Final = frozenset({"device_environment", "device_process_environment"})


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test marked for several platforms with each of them, or with one under ``--device-spread``."""
    try:
        settings = settings_of(metafunc.config)
        devices = arguments_by_name(marks_of(metafunc.definition))
        platforms = (
            platforms_of(devices.get(SINGLE, {}), settings) if SINGLE in devices else ()
        )
    except ConfigError:
        return  # reported with all other mistakes
    if len(platforms) < 2 or not set(platforms) <= set(Platform):  # noqa: PLR2004
        return
    if settings.spread and settings.is_of_this_run(
        "platform"
    ):  # tests for other platforms are deselected
        platforms = (
            tuple(platform for platform in platforms if platform in settings.platform)
            or platforms
        )
    if settings.spread:  # based on the test's name: the same in every process, also if this test runs alone
        platforms = (
            platforms[crc32(metafunc.definition.nodeid.encode()) % len(platforms)],
        )
    if PLATFORM_ARGUMENT not in metafunc.fixturenames:
        metafunc.fixturenames.append(PLATFORM_ARGUMENT)
    metafunc.parametrize(PLATFORM_ARGUMENT, platforms, ids=platforms, indirect=True)


def begin(
    config: pytest.Config,
    items: list[pytest.Item],
    wanted: list[pytest.Item],
    *,
    may_order: bool,
) -> None:
    """Store the requirements of every device test, and register the run that will provide the devices.

    ``may_order``: whether no other plugin has ordered the tests. Raises pytest.UsageError with all mistakes at once,
    each with file and line; a pytest-xdist worker, where that would look like a crash, sends them to the coordinator
    and runs no tests.
    """
    from pytest_device.plugin.run import DeviceRun

    try:
        settings = settings_of(config)
        run = DeviceRun(config, settings)
        problems = [
            *_rivals(config),
            *misspelled(config),
            *run.missing(),
            *_read(wanted, run),
        ]
        if not problems:
            may_order = (
                may_order
                and settings.reorder
                and not config.getoption("stepwise", default=False)
            )
            _choose(config, items, settings)
            grouping = Grouping()
            if may_order:
                _order(config, items, grouping)
            if not _register_dry_run(config, settings):
                run.register(items if may_order else (), grouping)
            return
    except ConfigError as error:
        problems = list(error.problems)
    _report_problems(config, items, problems)


def _register_dry_run(config: pytest.Config, settings: "Settings") -> bool:
    """Replace the run with a dry run or plan if requested; return whether it was."""
    if not (will_run(config) and is_dry_run(config)):
        return False
    from pytest_device.plugin.output.plan import DryRunReporter

    if not config.pluginmanager.has_plugin("device-dry-run"):
        config.pluginmanager.register(DryRunReporter(settings), "device-dry-run")
    return True


def _report_problems(
    config: pytest.Config, items: list[pytest.Item], problems: list[str]
) -> None:
    if not hasattr(config, "workerinput"):
        raise usage_error(problems)
    output: dict[str, Any] = vars(config)["workeroutput"]
    output[PROBLEMS] = problems
    items.clear()


def _choose(
    config: pytest.Config, items: list[pytest.Item], settings: "Settings"
) -> None:
    """Deselect tests that this run should skip, and size the sessions of the others."""
    _deselect(config, items, settings)
    select(config, items, settings)
    if settings.size_durations:
        _size(config, items, settings)


def begin_without(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the shard, or register the dry run, of a suite without device tests; raises pytest.UsageError."""
    try:
        settings = settings_of(config)
        select(config, items, settings)
    except ConfigError as error:
        _report_problems(config, items, list(error.problems))
        return
    _register_dry_run(config, settings)
    if link := WorkerLink.of(config):  # the coordinator has the terminal
        link.send_plan(TestPlan((), (), (), may_order=False))


def _size(
    config: pytest.Config, items: list[pytest.Item], settings: "Settings"
) -> None:
    """Limit sessions to the duration that their tests took in earlier runs."""
    uses = [
        Use(
            item.nodeid,
            need,
            is_fixed="max_duration_minutes" in item.stash[ARGUMENTS][name],
        )
        for item in items
        for name, need in needs_of(item).items()
    ]
    requests = sized(uses, history_of(config).test_seconds, settings.test_minutes)
    for item in items:
        if needs := needs_of(item):
            item.stash[NEEDS] = {
                name: replace(need, request=requests[need], defaults=())
                if need in requests
                else need
                for name, need in needs.items()
            }


def _rivals(config: pytest.Config) -> list[str]:
    if not config.pluginmanager.has_plugin("appium_scheduler"):
        return []
    return [
        "pytest-appium-scheduler also has a marker 'device': disable one plugin, -p no:appium_scheduler or -p no:device"
    ]


def _read(wanted: list[pytest.Item], run: "DeviceRun") -> list[str]:
    names, sharing = Names(os.environ, run.name[:8]), DriverSharing()
    problems: list[str] = []
    for item in wanted:
        try:
            _read_one(item, run.settings, names)
            sharing.check(item, needs_of(item))
        except ConfigError as error:
            problems += [f"{_place(item)}: {problem}" for problem in error.problems]
    return list(dict.fromkeys(problems))  # a parametrized test repeats its mistakes


def _place(item: pytest.Item) -> str:
    """Return where a test is defined, or its node ID if unknown: a plugin's tests are defined in its own files."""
    path, line, _ = item.location
    if (item.config.rootpath / path).resolve() != item.path.resolve():
        return item.nodeid
    return f"{path}:{(line or 0) + 1}: {getattr(item, 'originalname', item.name)}"


def _read_one(item: pytest.Item, settings: "Settings", names: Names) -> None:
    fixtures: list[str] = getattr(item, "fixturenames", [])
    if item.get_closest_marker("device") is None and WITH_DEVICE.isdisjoint(fixtures):
        return  # only uses a fixture that creates sessions itself
    devices = devices_of(item, settings)
    needs: dict[str, DeviceRequirement] = {}
    problems: list[str] = []
    for name, arguments in devices.items():
        try:
            needs[name] = need_of(item, arguments, settings, names)
        except ConfigError as error:
            problems += [
                f"{name}: {problem}" if name else problem for problem in error.problems
            ]
    problems += _wrong_fixtures(item, devices, needs)
    attached = [need.attach for need in needs.values() if need.attach]
    if len(attached) > len(set(attached)):
        problems.append(
            f"can't attach {' and '.join(needs)} to one session: give each its own, attach='ID'"
        )
    if (
        settings.max_sessions is not None
        and len(needs) - len(attached) > settings.max_sessions
    ):
        source = settings.source("max_sessions")
        problems.append(
            f"needs {len(needs) - len(attached)} devices at once, but {source} allows only {settings.max_sessions}"
        )
    if problems:
        raise ConfigError(*problems)
    item.stash[ARGUMENTS], item.stash[NEEDS] = devices, needs
    if isinstance(item, pytest.Function):
        item.fixturenames = set_up_order(item)


def _wrong_fixtures(
    item: pytest.Item,
    devices: Collection[str],
    needs: Mapping[str, "DeviceRequirement"],
) -> Iterator[str]:
    if not isinstance(item, pytest.Function):
        yield "device() requires a test function: tests of this kind have no fixtures"
        return
    yield from too_narrow(item)
    asked = set(item.fixturenames)
    types = {need.request.type for need in needs.values()}
    if SINGLE not in devices:
        of_one = SINGLE_DEVICE & asked - {PLATFORM_ARGUMENT}
        # Report a fixture or the one that it builds on, not both.
        for name in sorted(of_one - {"device_session"} or of_one):
            instead = f"{name}s" if f"{name}s" in MULTI_DEVICE else "device_sessions"
            yield several_devices(
                name, "device_drivers" if name in SCOPED_DRIVERS else instead, devices
            )
    fixtures = {
        kind.value: name
        for name, kind in sorted(_TYPES.items(), reverse=True)
        if name in asked
    }
    for needed, name in fixtures.items():
        if others := {kind.value for kind in types} - {needed}:
            yield f"{name} needs type={needed!r}, not {min(others)!r}: add type={needed!r} to the marker"
    if _ENVIRONMENTS & asked and SessionType.WEB_PREVIEW_ONLY in types:
        yield f"{min(_ENVIRONMENTS & asked)} needs a controller, but type='web-preview-only' has none"


def _deselect(
    config: pytest.Config, items: list[pytest.Item], settings: "Settings"
) -> None:
    """Deselect tests for platforms that the command line or the environment does not name."""
    if not settings.platform or not settings.is_of_this_run("platform"):
        return
    others = [
        item
        for item in items
        if {need.request.platform for need in needs_of(item).values()}.difference(
            settings.platform
        )
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
    history = (
        History(None) if hasattr(config, "workerinput") else history_of(config)
    )  # workers must agree on the order
    items[:] = [
        items[place]
        for place in in_order(plan, [item.nodeid for item in items], history)
    ]
