"""How accessible the package is: import cycles, complexity, and the way of one test through the files.

The figures of the source are read from its text. Those of the way come from a real run of
pytest at a local service: the calls of the main thread from the first hook until the service
receives the create call, and from the teardown hook until it receives the stop call.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from pytest_device.sessions.client import DeviceClient
from pytest_device.testing import faulty_service

PACKAGE: Final = "pytest_device"
COMPLEXITY_BAR: Final = 8
CREATE_BARS: Final = (400, 32, 150)
STOP_BARS: Final = (40, 11, 20)
"""Calls, files, changes from one file to another."""
CLOCK_SECONDS: Final = 0.001
"""Precision of the service's timestamps."""

SUITE: Final = """
import pytest

@pytest.mark.device(platform="android", type="web-preview-only", share="test")
def test_it(device_session):
    assert device_session.id
"""
PROBE: Final = Path(__file__).with_name("structure_probe.py")
_BRANCHES: Final = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.match_case,
)


class Call(NamedTuple):
    """A call of a function of ours, in Unix seconds."""

    at: float
    file: str
    function: str


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the package: its lines, the modules of ours that it imports, its functions."""

    lines: int
    imports: frozenset[str]
    functions: Sequence[ast.FunctionDef | ast.AsyncFunctionDef]


def main() -> int:
    """Print every figure next to its bar; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(__file__).parents[1],
        help="a checkout (default: this one)",
    )
    root: Path = parser.parse_args().root
    modules = dict(_modules(root / "src"))
    met = [*_source(modules), *_way(*_profiled(root))]
    print("bars met" if all(met) else "BAR MISSED")
    return 0 if all(met) else 1


def _source(modules: Mapping[str, Module]) -> Iterator[bool]:
    yield _figure("import circles, lazy imports counted", len(_circles(modules)), 0)
    functions = [
        function for module in modules.values() for function in module.functions
    ]
    yield _figure(
        "complexity of a function, 95th percentile",
        _p95([_complexity(one) for one in functions]),
        COMPLEXITY_BAR,
    )
    total = sum(module.lines for module in modules.values())
    print(
        f"lines of Python in src: {total}, in {len(modules)} modules, {len(functions)} functions"
    )


def _way(calls: Sequence[Call], created: float, stopped: float) -> Iterator[bool]:
    """Compare the two parts of the way; ``created`` and ``stopped`` are when the service received its calls."""
    yield from _part(
        "to the create call",
        _between(calls, "pytest_generate_tests", created),
        CREATE_BARS,
    )
    yield from _part(
        "to the stop call",
        _between(calls, "pytest_runtest_teardown", stopped),
        STOP_BARS,
    )


def _between(calls: Sequence[Call], hook: str, end: float) -> Sequence[Call]:
    first = next(
        index for index, call in enumerate(calls) if call.function.endswith(hook)
    )
    return [call for call in calls[first:] if call.at <= end + CLOCK_SECONDS]


def _part(
    what: str, calls: Sequence[Call], bars: tuple[int, int, int]
) -> Iterator[bool]:
    files = [call.file for call in calls]
    changes = sum(here != before for before, here in pairwise(files))
    print("  " + " > ".join(dict.fromkeys(files)))
    calls_bar, files_bar, changes_bar = bars
    yield _figure(f"calls {what}", len(files), calls_bar)
    yield _figure(f"files {what}", len(set(files)), files_bar)
    yield _figure(f"changes of file {what}", changes, changes_bar)


def _figure(what: str, value: float, bar: float) -> bool:
    print(f"{what}: {value:g} (bar: {bar:g})")
    return value <= bar


def _modules(source: Path) -> Iterator[tuple[str, Module]]:
    paths = sorted((source / PACKAGE).rglob("*.py"))
    names = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in paths
    }
    for name, path in names.items():
        text = path.read_text()
        tree = ast.parse(text)
        functions = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        yield (
            name,
            Module(text.count("\n"), frozenset(_imports(tree, name, names)), functions),
        )


def _imports(tree: ast.AST, name: str, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of ours that are imported anywhere but for annotations."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        targets = list[str]()
        if isinstance(node, ast.ImportFrom) and node.module:
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        found = (
            _known(target, known)
            for target in targets
            if target.partition(".")[0] == PACKAGE
        )
        yield from (target for target in found if target != name)
        yield from _imports(node, name, known)


def _known(target: str, known: Mapping[str, Path]) -> str:
    while target not in known:
        target = target.rpartition(".")[0]
    return target


def _circles(modules: Mapping[str, Module]) -> list[set[str]]:
    """Return the sets of modules that reach each other."""
    reached: dict[str, set[str]] = defaultdict(set)
    for name in modules:
        waiting = list(modules[name].imports)
        while waiting:
            if (target := waiting.pop()) not in reached[name]:
                reached[name].add(target)
                waiting += modules[target].imports
    circles = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in modules
    }
    return [set(circle) for circle in circles if circle]


def _complexity(function: ast.AST) -> int:
    """Count the ways through a function, as McCabe does."""
    count = 1
    for node in ast.walk(function):
        count += isinstance(node, _BRANCHES)
        count += len(node.ifs) + 1 if isinstance(node, ast.comprehension) else 0
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
    return count


def _p95(values: list[int]) -> int:
    return sorted(values)[int(len(values) * 0.95)]


def _profiled(root: Path) -> tuple[list[Call], float, float]:
    """Run a test with a session of its own on the checkout's source.

    Return its calls, and when the service received the create and the stop call, in Unix seconds.
    """
    with tempfile.TemporaryDirectory() as directory, faulty_service() as service:
        suite, report = Path(directory), Path(directory, "calls.json")
        (suite / "pytest.ini").write_text("[pytest]\n")
        (suite / "test_it.py").write_text(SUITE)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(root / "src"), str(PROBE.parent)]),
            "STRUCTURE_REPORT": str(report),
            "DEVICE_URL": service.url,
            "DEVICE_TOKEN": service.token,
            "DEVICE_APP_ID": service.app_id,
            "DEVICE_STATE_DIR": str(suite / "state"),
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            PROBE.stem,
            "-p",
            "no:cacheprovider",
        ]
        subprocess.run(
            command, cwd=suite, env=environment, check=True, stdout=subprocess.PIPE
        )
        calls = [Call(*values) for values in json.loads(report.read_text())]
        (session,) = service.sessions()
        with DeviceClient(service.url, service.token) as client:
            seen = client.get(session["id"])
    if seen.created_at is None or seen.finished_at is None:
        raise RuntimeError(f"the session was not stopped: {seen.status}")
    return calls, seen.created_at.timestamp(), seen.finished_at.timestamp()


if __name__ == "__main__":
    sys.exit(main())
