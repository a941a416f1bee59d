"""What a run would create, and what it may cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from pytest_device.plugin.state import needs_of
from pytest_device.redact import shown
from pytest_device.report.figures import counted
from pytest_device.sessions.requirement import DeviceRequirement
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES

_HIDDEN: Final = frozenset({"launch_args", "open_url"})
"""What an app is given at launch may be a credential anywhere in it."""
NO_DEVICE: Final = "no test needs a device by its markers; nothing was sent"


def lines_of(tests: Sequence[pytest.Item]) -> Iterator[str]:
    """Yield which sessions the tests need, each once for all that share it, and for how many minutes they may bill."""
    needs = Counter(need for test in tests for need in needs_of(test).values())
    if not needs:
        yield NO_DEVICE
        return
    for need, count in needs.items():
        request = need.request
        asked = request.model_dump(
            mode="json", exclude_none=True, exclude_defaults=True, exclude={"app_id", "platform"}
        )
        more = ", ".join(
            f"{name}={_value(name, value)}" for name, value in asked.items() if name not in {"type", "name"}
        )
        yield f"{request.platform} {request.type} ({need.sharing_key}): {counted(count, 'test')}, {more}"
    minutes = sum(_longest(need) for need in needs)
    sessions = counted(len(needs), "session")
    yield f"{sessions}, up to {minutes} minutes (including {CLEANUP_MINUTES} for cleanup each); nothing was sent"
    yield (
        "for one process: each pytest-xdist worker has its own sessions; not included: retried starts, replacements "
        "of expired sessions, device_lease"
    )


def _value(name: str, value: object) -> str:
    if name in _HIDDEN:
        return "…"
    return repr(shown(value) if isinstance(value, str) else value)


def _longest(need: DeviceRequirement) -> int:
    asked = need.request.max_duration_minutes
    return (DURATION_MAX_MINUTES if asked is None else asked) + CLEANUP_MINUTES
