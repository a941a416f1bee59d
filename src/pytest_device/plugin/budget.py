"""Compares the plan of a run with its budget, before it starts."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.plugin.options import will_run
from pytest_device.settings import Settings


def check_budget(
    config: pytest.Config,
    tests: Sequence[pytest.Item],
    settings: Settings,
    note: Callable[[str], None],
) -> None:
    """Compare the expected device minutes of the tests with the budget.

    If they exceed it, raises ConfigError with ``device_budget_action = refuse``, else passes the text to ``note``.
    Each pytest-xdist worker does the same, for the whole run: it has collected all tests.
    """
    budget = settings.budget_minutes
    if budget is None or not will_run(config):
        return

    from pytest_device.plugin.output.plan import planned_minutes

    worker_input: dict[str, Any] = getattr(config, "workerinput", {})
    minutes = planned_minutes(
        tests, config, settings, worker_input.get("workercount", 1)
    )
    if minutes <= budget:
        return

    text = (
        f"the plan needs about {minutes:.1f} device minutes, but the budget is {budget:g} minutes "
        f"({settings.source('budget_minutes')})"
    )

    if settings.budget_action == "refuse":
        raise ConfigError(
            f"{text}: run fewer tests, or increase {Options.budget_minutes.flag}; --device-plan shows the plan"
        )

    note(text)
