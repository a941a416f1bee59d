"""Reports the expected schedule of a run, with its sessions and their minutes: ``--device-plan``."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from math import inf
from typing import Any, Final, NamedTuple

import pytest

from pytest_device.escape import escaped
from pytest_device.figures import counted, duration
from pytest_device.plugin.grouping import Grouping
from pytest_device.plugin.options import WIDTH, conflicting_distribution_options
from pytest_device.plugin.state import history_of, is_skipped, requirements_of
from pytest_device.scheduling.dispatcher import Step, simulated
from pytest_device.scheduling.estimates import BOOT_SECONDS, PLAIN_SECONDS, TEST_SECONDS
from pytest_device.scheduling.test_plan import TestPlan
from pytest_device.scheduling.work import Limits
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.settings import Settings
from pytest_device.spec import DURATION_MAX_MINUTES

_MINUTE: Final = 60
_NO_DEVICE: Final = "no test needs a device by its markers; nothing was sent"


class PlanReporter:
    """Replaces the run: ``--device-plan``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Write the plan instead of running the tests."""
        config = session.config
        tests = _that_run(session.items)
        width = max(1, config.stash.get(WIDTH, 0))
        processes = "1 process" if width == 1 else f"{width} workers"
        lines = _lines(tests, config, self._settings, width)
        _write(config, f"device plan for {processes}", lines)

        return True


def _that_run(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that pytest does not certainly skip: the others pay for no device."""
    return [item for item in items if not is_skipped(item)]


def _write(config: pytest.Config, title: str, lines: Iterator[str]) -> None:
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin(
        "terminalreporter"
    )
    if reporter:
        reporter.section(title)
        for line in lines:
            reporter.write_line(escaped(line))


@dataclass(frozen=True, slots=True)
class Lasting:
    """The expected lifetime of one session, in seconds from the start of the run."""

    requirement: int
    begins: float
    """When it is created."""
    ends: float


class _Schedule(NamedTuple):
    """When which worker is expected to run which tests, and on which sessions."""

    requirements: Sequence[DeviceRequirement]
    """By their number in the plan."""
    plan: TestPlan
    steps: Sequence[Step]
    lasting: Sequence[float]
    """The expected boot time of each model, in seconds."""
    sessions: Sequence[Lasting]

    @property
    def minutes(self) -> float:
        return sum(session.ends - session.begins for session in self.sessions) / _MINUTE


def _schedule(
    tests: Sequence[pytest.Item], config: pytest.Config, settings: Settings, width: int
) -> _Schedule:
    history = history_of(config)
    grouping = Grouping()
    plan = grouping.plan(tests, may_order=settings.reorder)
    nodeids = [test.nodeid for test in tests]
    limits = Limits(width, settings.max_devices, settings.prefetch)
    dispatcher = plan.dispatcher(nodeids, history, plan.boots(history), limits)
    steps = simulated(dispatcher, width)
    lasting = dispatcher.estimates.boots()
    requirements = list(grouping.requirements)
    sessions = sessions_of(
        steps, plan, lasting, lambda number, step: _room(requirements[number], step)
    )

    return _Schedule(
        requirements, plan, steps, lasting, _created(sessions, requirements)
    )


def _created(
    sessions: Sequence[Lasting], requirements: Sequence[DeviceRequirement]
) -> Sequence[Lasting]:
    """Return the sessions that the run creates: those that it attaches to cost it neither a boot nor a minute."""
    return [
        session for session in sessions if not requirements[session.requirement].attach
    ]


def budget_problem(
    tests: Sequence[pytest.Item],
    config: pytest.Config,
    settings: Settings,
    budget: float,
) -> str:
    """Return how many minutes a run is expected to need, boots included, if that is more than its budget; else ""."""
    # Each worker compares the whole run: it has collected all tests.
    worker_input: dict[str, Any] = getattr(config, "workerinput", {})
    width: int = worker_input.get("workercount", 1)
    minutes = _schedule(_that_run(tests), config, settings, width).minutes
    if minutes <= budget:
        return ""

    source = settings.source("budget_minutes")
    return f"the plan needs about {minutes:.1f} device minutes, but the budget is {budget:g} minutes ({source})"


def _lines(
    tests: Sequence[pytest.Item], config: pytest.Config, settings: Settings, width: int
) -> Iterator[str]:
    """Yield the devices that the tests need, the number of boots, and the duration and billed time of the run."""
    if not any(requirements_of(test) for test in tests):
        yield _NO_DEVICE
        return

    history = history_of(config)
    schedule = _schedule(tests, config, settings, width)
    plan = schedule.plan
    steps = schedule.steps
    sessions = schedule.sessions
    max_at_once = at_once(
        _created(sessions_of(steps, plan, schedule.lasting), schedule.requirements)
    )
    yield from _devices(schedule.requirements, plan, sessions)
    takes = max((step.ends for step in steps), default=0.0)
    minutes = schedule.minutes
    yield (
        f"{counted(len(sessions), 'boot')}, at most {max_at_once} at once; about {duration(takes)} in total, "
        f"{minutes:.1f} device minutes including boots; nothing was sent"
    )

    if others := conflicting_distribution_options(
        config, workers=config.stash.get(WIDTH, 0) > 0
    ):
        yield f"assuming a run without {' and '.join(others)}"

    boots = plan.boots(history)
    known = sum(history.test_seconds(test.nodeid) is not None for test in tests)
    booted = sum(bool(history.boots(model)) for model in plan.models)
    yield (
        f"known from earlier runs: {known} of {counted(len(tests), 'test')}, {booted} of "
        f"{counted(len(boots), 'device model')}; otherwise assuming {TEST_SECONDS:.0f} s per device test, "
        f"{PLAIN_SECONDS:g} s per other test, {BOOT_SECONDS:.0f} s per boot"
    )


def _devices(
    requirements: Sequence[DeviceRequirement],
    plan: TestPlan,
    sessions: Sequence[Lasting],
) -> Iterator[str]:
    tests = Counter(
        chain.from_iterable(plan.groups[group].requirements for group, _ in plan.tests)
    )
    lines: dict[str, list[int]] = defaultdict(list)
    for number, requirement in enumerate(requirements):
        request = requirement.request
        more = f" {request.device_identifier}" if request.device_identifier else ""
        lines[f"{request.platform} {request.type}{more} ({requirement.share})"].append(
            number
        )

    for line, numbers in lines.items():
        of_line = [session for session in sessions if session.requirement in numbers]
        minutes = sum(session.ends - session.begins for session in of_line) / _MINUTE
        yield (
            f"{line}: {counted(sum(tests[number] for number in numbers), 'test')}, "
            f"{counted(len(of_line), 'device')}, {minutes:.1f} min"
        )


def sessions_of(
    steps: Sequence[Step],
    plan: TestPlan,
    boots: Sequence[float],
    room: Callable[[int, Step], float] = lambda _number, _step: inf,
) -> list[Lasting]:
    """Return the sessions that steps need: each starts to boot before its first test, and ends with its last.

    A session that has been ready for longer than ``room`` returns for a test, in seconds, is replaced before that test.
    """
    sessions: list[Lasting] = []
    open_by_worker: dict[int, dict[tuple[int, int], Lasting]] = defaultdict(dict)
    for step in steps:
        group = plan.groups[step.group]
        held = open_by_worker[step.worker]
        models = dict(zip(_counted(group.requirements), group.models, strict=True))
        for slot, session in list(held.items()):
            if slot not in models or (
                step.begins > session.begins + boots[models[slot]] + room(slot[0], step)
            ):
                sessions.append(held.pop(slot))

        for slot, model in models.items():
            begins = max(0.0, step.begins - boots[model])
            if slot in held:
                begins = held[slot].begins
            held[slot] = Lasting(slot[0], begins, step.ends)

    for held in open_by_worker.values():
        sessions += held.values()

    return sessions


def _room(requirement: DeviceRequirement, step: Step) -> float:
    """Return the maximum seconds that a device may have been ready to be used for a test."""
    longest = _MINUTE * (
        requirement.request.max_duration_minutes or DURATION_MAX_MINUTES
    )
    return longest - max(float(_MINUTE * requirement.minutes), step.ends - step.begins)


def at_once(sessions: Sequence[Lasting]) -> int:
    """Return the maximum number of sessions that run at the same time.

    >>> at_once([Lasting(0, begins=0, ends=60), Lasting(0, begins=60, ends=90)])
    1
    """
    begins = [(session.begins, 1) for session in sessions]
    # At equal times, -1 sorts first: a session that ends makes room for one that begins.
    ends = [(session.ends, -1) for session in sessions]
    changes = [change for _, change in sorted(begins + ends)]

    return max(accumulate(changes), default=0)


def _counted(requirements: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield requirements with their occurrence numbers, so that duplicates differ."""
    seen = Counter[int]()
    for requirement in requirements:
        yield requirement, seen[requirement]
        seen[requirement] += 1
