"""The data of several runs or shards as one: what ``device-run.json`` of each says, added up."""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias, cast

from pytest_device.report.run_report import VERSION

_OF_RUN: Final = ("run", "shard", "minutes", "budget_minutes", "cost", "receipt")
"""Keys that each run keeps for itself."""

Data: TypeAlias = Mapping[str, Any]


def check_data(data: object) -> Data:
    """Return the values of a ``device-run.json``; raises ValueError with the reason if they are not."""
    if not isinstance(data, dict):
        raise ValueError("it is no object")  # noqa: TRY004  # as for other damaged files

    values = cast("Data", data)
    version = values.get("version")
    if version != VERSION:
        raise ValueError(
            f"its version is {version!r}, this pytest-device reads {VERSION}"
        )

    for key in (*_OF_RUN, "tests", "sessions", "causes"):
        if key not in values:
            raise ValueError(f"it has no {key}")

    return values


def parse_data(text: str) -> Data:
    """Return the values of a ``device-run.json`` that can be merged; raises ValueError with the reason if they cannot."""
    try:
        data = check_data(json.loads(text))
        # Alone, it needs all that it needs with others.
        merge_data([data])
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = f"it is not a device-run.json: {type(error).__name__}: {error}"
        raise ValueError(reason) from None

    return data


def merge_data(runs: Sequence[Data]) -> dict[str, Any]:
    """Return one report of several runs or shards.

    Tests, sessions and causes are listed together, minutes and costs are added up; each run has its own in ``runs``.
    """
    return {
        "version": VERSION,
        "runs": [{key: data[key] for key in _OF_RUN} for data in runs],
        "tests": [
            {**test, "run": data["run"], "shard": data["shard"]}
            for data in runs
            for test in data["tests"]
        ],
        "sessions": [session for data in runs for session in data["sessions"]],
        "causes": _causes(runs),
        "minutes": _minutes([data["minutes"] for data in runs]),
        "cost": _cost([data["cost"] for data in runs]),
    }


def _causes(runs: Iterable[Data]) -> list[dict[str, Any]]:
    """Return each cause once, with the tests of all runs."""
    tests_by_cause: dict[tuple[str, str], list[str]] = {}
    for data in runs:
        for cause in data["causes"]:
            key = (cause["verdict"], cause["error"])
            tests_by_cause.setdefault(key, []).extend(cause["tests"])

    return [
        {"verdict": verdict, "error": error, "tests": list(dict.fromkeys(tests))}
        for (verdict, error), tests in tests_by_cause.items()
    ]


def _minutes(minutes: Sequence[Data]) -> dict[str, Any]:
    """Return the sums; the bound is the one that holds for all of them."""
    merged: dict[str, Any] = {}
    for of_run in minutes:
        _add(merged, of_run)

    bounds = {of_run["paid_bound"] for of_run in minutes} - {"exactly"}
    if not bounds:
        merged["paid_bound"] = "exactly"
    elif len(bounds) == 1:
        merged["paid_bound"] = bounds.pop()
    else:
        merged["paid_bound"] = "about"

    return merged


def _add(sums: dict[str, Any], values: Data) -> None:
    for key, value in values.items():
        if isinstance(value, dict):
            _add(sums.setdefault(key, {}), cast("Data", value))
        elif isinstance(value, int | float):
            # To a thousandth, as each run: else the sum shows the error of binary fractions.
            sums[key] = round(sums.get(key, 0.0) + value, 3)


def _cost(costs: Sequence[Data | None]) -> dict[str, str] | None:
    """Return the sum; None if a run has no price, or their prices differ."""
    priced = [cost for cost in costs if cost is not None]
    prices = {cost["price"] for cost in priced}
    # A sum without some of the runs, or in several currencies, would mislead.
    if len(priced) < len(costs) or len(prices) != 1:
        return None

    try:
        amount = sum((Decimal(cost["amount"]) for cost in priced), Decimal(0))
        minutes = sum((Decimal(cost["minutes"]) for cost in priced), Decimal(0))
    except InvalidOperation:
        return None

    return {
        "amount": f"{amount:.4f}",
        "minutes": f"{minutes:.4f}",
        "price": prices.pop(),
    }
