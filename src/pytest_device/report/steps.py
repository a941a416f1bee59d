"""The recorded actions of a test as steps of its report: fixtures, steps that the suite names, waits and commands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from pytest_device.escape import escaped
from pytest_device.report.attempts import Location, Step
from pytest_device.trace.values import DEVICE_WAIT, Action, folded

MAX_STEPS: Final = 200
"""Steps of one phase of a test; the last ones are kept, which led to its end. The trace has all of them."""
MAX_TITLE: Final = 200
MAX_ERROR: Final = 1_000
"""Characters."""

Parts: TypeAlias = Mapping[str, Sequence[Action]]
"""Actions by the key of the action that they are a part of."""


def steps_of_phase(
    actions: Sequence[Action], title: str, time_of_day: Callable[[float], float]
) -> list[Step]:
    """Return the steps within the last action with this title, which is a phase of a test.

    What viewers hide unless asked, such as the evidence of a failure, is left out.

    Arguments:
        actions: The actions of the test, in the order in which they began.
        title: The title of the phase.
        time_of_day: Converts the times of actions to seconds since the epoch.
    """
    phase = _last_phase(actions, title)
    if phase is None:
        return []

    parents = {action.key: action.parent for action in actions}
    shown = folded(list(_shown(actions, phase, parents)))
    kept = shown[-MAX_STEPS:]
    parts = _parts(kept, phase, parents)
    start = time_of_day(phase.start)
    steps = [
        _step(action, parts, time_of_day, start) for action in parts.get(phase.key, ())
    ]

    if len(kept) < len(shown):
        steps.insert(0, Step("earlier steps are not shown", "test.step", start, 0.0))

    return steps


def _last_phase(actions: Sequence[Action], title: str) -> Action | None:
    # An attempt that is repeated has the same phases.
    for action in reversed(actions):
        if action.title == title and not action.parent:
            return action

    return None


def _shown(
    actions: Sequence[Action], phase: Action, parents: Mapping[str, str]
) -> Iterator[Action]:
    """Yield the actions within a phase, without those that are hidden."""
    for action in actions:
        if not action.group and phase.key in _ancestors(action, parents):
            yield action


def _parts(
    kept: Sequence[Action], phase: Action, parents: Mapping[str, str]
) -> dict[str, list[Action]]:
    """Return the kept actions by the key of the closest kept one that they are a part of, else of the phase."""
    keys = {action.key for action in kept}
    parts: dict[str, list[Action]] = {}
    for action in kept:
        whole = phase.key
        for key in _ancestors(action, parents):
            if key in keys:
                whole = key
                break

        parts.setdefault(whole, []).append(action)

    return parts


def _ancestors(action: Action, parents: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys of the actions that an action is a part of, the closest first."""
    key = action.parent
    while key:
        yield key
        key = parents.get(key, "")


def _step(
    action: Action,
    parts: Parts,
    time_of_day: Callable[[float], float],
    earliest: float,
) -> Step:
    start = time_of_day(action.start)
    seconds = 0.0 if action.end is None else time_of_day(action.end) - start
    if action.method == DEVICE_WAIT:
        # The recorder's clock stands still meanwhile; the seconds are rounded, and might begin before the phase.
        seconds = min(float(action.params["seconds"]), start - earliest)
        start -= seconds

    error = f"{action.error.name}: {action.error.message}" if action.error else ""
    location = None
    if action.stack:
        frame = action.stack[0]
        location = Location(frame.file, frame.line)

    # Escaped, since readers of the page can be misled, and pytest-xdist ends the whole run for a lone surrogate.
    return Step(
        escaped(action.full_title)[:MAX_TITLE],
        _category(action),
        start,
        max(0.0, seconds),
        escaped(error)[:MAX_ERROR],
        location,
        tuple(
            _step(part, parts, time_of_day, start) for part in parts.get(action.key, ())
        ),
    )


def _category(action: Action) -> str:
    """Return Playwright's word for the kind of a step."""
    if action.kind != "step":
        return "pw:api"
    return "fixture" if action.method == "fixture" else "test.step"
