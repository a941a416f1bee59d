"""Workloads for simulated runs: those of the cells, and families whose durations can be guessed or not."""

import random
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import fmean
from typing import Final

from benchmarks.parallel.cells import KINDS, Cell, suite_of
from benchmarks.parallel.simulation import Case, Workload

_MEAN_SECONDS: Final = 30.0
"""Of the tests of a cell, as they would really take."""
_LABELS: Final = {kind: " ".join(request.values()) for kind, request in KINDS.items()}


def of_cell(cell: Cell, variant: int | None = None) -> Workload:
    """Return the workload of a cell, or one like it with other random durations, at the pace of real tests."""
    suite = suite_of(cell, 1.0, variant="" if variant is None else f" {variant}")
    factor = _MEAN_SECONDS / fmean(one.seconds for one in suite.tests)
    cases = [
        Case(
            f"test_{one.module:03}.py::test_{one.number}",
            one.kind and _LABELS[one.kind],
            one.seconds * factor,
        )
        for one in suite.tests
    ]
    boots = {_LABELS[kind]: seconds * factor for kind, seconds in suite.boots.items()}
    name = cell.name if variant is None else f"{cell.name} {variant}"
    return Workload(name, cases, boots, cell.workers, cell.sessions)


@dataclass(frozen=True, slots=True)
class Family:
    """A law of workloads."""

    name: str
    tests: int
    kinds: int
    workers: int
    sessions: int | None = None
    free: float = 0.0
    """Share of tests without a device."""
    boot: float = 60.0
    mean: float = 25.0
    """Median of a device test."""
    free_mean: float = 0.05
    test: float = 0.7
    """Sigma of the lognormal law of a test's own factor."""
    function: float = 0.0
    """Sigma of the factor that all cases of a function have."""
    module: float = 0.0
    """Sigma of the factor that all tests of a module have."""
    source: float = 0.0
    """Sigma of the factor that a function has by the size of its source."""
    noise: float = 0.0
    """Sigma of the factor of a function's size that its duration does not have."""
    cases: int = 1
    """Maximum number of cases of a function."""
    long: int = 0
    """Number of tests that take ten times as long."""


FAMILIES: Final = (
    Family("few long", 60, 2, 6, free=0.5, long=3),
    Family("few long, limit", 60, 3, 8, sessions=5, long=3),
    Family("heavy tail", 120, 3, 8, test=1.2),
    Family("slow boots", 60, 3, 6, boot=240.0),
    Family("slow boots, short tests", 120, 4, 8, boot=180.0, mean=8.0),
    Family("mostly plain", 400, 2, 4, free=0.9),
    Family("mostly plain, long", 300, 3, 8, free=0.8, free_mean=4.0),
    Family("parametrized", 120, 3, 8, test=0.15, function=0.8, cases=12),
    Family("parametrized, wide", 200, 2, 16, test=0.15, function=0.8, cases=20),
    Family("parametrized, few workers", 80, 2, 3, test=0.2, function=0.8, cases=10),
    Family("by module", 100, 3, 8, test=0.3, module=0.8),
    Family("by module, one kind", 100, 1, 8, test=0.3, module=0.8),
    Family(
        "by module and function",
        150,
        4,
        12,
        test=0.2,
        module=0.5,
        function=0.5,
        cases=8,
    ),
    Family("by size", 100, 3, 8, test=0.3, source=0.7),
    Family("by size, wide", 60, 3, 16, test=0.3, source=0.7),
    Family("by size, roughly", 100, 3, 8, test=0.5, source=0.5, noise=0.3),
    Family("unlike its size", 100, 3, 8, noise=0.7),
    Family("alike", 80, 3, 8, test=0.05),
    Family("uncorrelated", 80, 3, 8),
    Family("uncorrelated cases", 120, 3, 8, test=0.9, cases=12),
    Family("uncorrelated, wide", 60, 3, 16, sessions=16),
    Family("uncorrelated, small", 20, 2, 4),
)


def of_family(family: Family, seed: int) -> Workload:
    """Generate a workload of a family."""
    chance = random.Random(f"{family.name} {seed}")
    kinds = list(_LABELS.values())[: family.kinds]
    weights = list(accumulate(1 / (place + 1) for place in range(family.kinds)))
    boots = {kind: family.boot * chance.lognormvariate(0, 0.25) for kind in kinds}
    long = set(chance.sample(range(family.tests), family.long))
    cases: list[Case] = []
    module = function = 0
    while len(cases) < family.tests:
        module += 1
        about = (
            kinds[module - 1]
            if module <= len(kinds)
            else chance.choices(kinds, cum_weights=weights)[0]
        )
        of_module = chance.lognormvariate(0, family.module)
        for _ in range(chance.randint(3, 8)):
            function += 1
            of_function = of_module * chance.lognormvariate(0, family.function)
            by_size = chance.lognormvariate(0, family.source)
            size = (
                int(400 * by_size * chance.lognormvariate(0, family.noise))
                if family.source or family.noise
                else 0
            )
            of_function *= by_size
            is_free = chance.random() < family.free and len(cases) >= family.kinds
            kind = (
                about
                if chance.random() < 0.75
                else chance.choices(kinds, cum_weights=weights)[0]
            )
            number = chance.randint(1, family.cases)
            for case in range(number):
                if len(cases) == family.tests:
                    break
                seconds = of_function * chance.lognormvariate(0, family.test)
                seconds *= family.free_mean if is_free else family.mean
                seconds *= 10 if len(cases) in long and not is_free else 1
                name = f"test_{module:03}.py::test_{function}"
                name += f"[{case}]" if number > 1 else ""
                cases.append(Case(name, None if is_free else kind, seconds, size))
    used = {case.kind for case in cases}
    boots = {kind: seconds for kind, seconds in boots.items() if kind in used}
    return Workload(
        f"{family.name} {seed}", cases, boots, family.workers, family.sessions
    )


def without_names(workload: Workload) -> Workload:
    """Return the same workload with nothing to guess durations from: no two tests are alike."""
    cases = [
        replace(case, nodeid=f"test_{number}.py::test_{number}", size=0)
        for number, case in enumerate(workload.cases)
    ]
    return replace(workload, cases=cases)
