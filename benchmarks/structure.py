"""How accessible the package is: import cycles, sizes, imports, and the path of one marker through the files.

The figures of the source are read from its text; those of the path from a real run of pytest at a local service, whose
calls ``sys.setprofile`` counts.
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
from typing import Final

from pytest_device.testing import faulty_service

PACKAGE: Final = "pytest_device"
LINES_BAR: Final = 300
IMPORTS_BAR: Final = 15
FUNCTION_BAR: Final = 18
COMPLEXITY_BAR: Final = 8
FILES_BAR: Final = 8
CHANGES_BAR: Final = 12
FRAMES_BAR: Final = 8

SUITE: Final = """
import pytest

@pytest.mark.device(platform="android", type="appium", share="test")
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


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the package: its length, the modules of ours that it imports, its functions."""

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
    met = [*_source(modules), *_path(_profiled(root))]
    print("bars met" if all(met) else "BAR MISSED")
    return 0 if all(met) else 1


def _source(modules: Mapping[str, Module]) -> Iterator[bool]:
    yield _figure("import circles, lazy imports counted", len(_circles(modules)), 0)
    longest = max(modules, key=lambda name: modules[name].lines)
    yield _figure(
        f"lines of the longest module ({longest})", modules[longest].lines, LINES_BAR
    )
    busiest = max(modules, key=lambda name: len(modules[name].imports))
    yield _figure(
        f"modules of ours that one imports ({busiest})",
        len(modules[busiest].imports),
        IMPORTS_BAR,
    )
    functions = [
        function for module in modules.values() for function in module.functions
    ]
    yield _figure(
        "lines of a function, 95th percentile",
        _p95([_length(one) for one in functions]),
        FUNCTION_BAR,
    )
    yield _figure(
        "complexity of a function, 95th percentile",
        _p95([_complexity(one) for one in functions]),
        COMPLEXITY_BAR,
    )
    total = sum(module.lines for module in modules.values())
    print(
        f"lines of Python in src: {total}, in {len(modules)} modules, {len(functions)} functions"
    )


def _path(seen: Mapping[str, list[str]]) -> Iterator[bool]:
    """Compare what the run's calls went through; ``seen`` has the files, in the order of the calls."""
    calls, stack = seen["create"], seen["stop"]
    changes = sum(here != before for before, here in pairwise(calls))
    print("  " + " > ".join(dict.fromkeys(calls)))
    yield _figure(
        "files from the request for a session to the create call",
        len(set(calls)),
        FILES_BAR,
    )
    yield _figure("changes of file on that way", changes, CHANGES_BAR)
    print("  " + " > ".join(stack))
    yield _figure(
        "frames of ours from the teardown hook to the stop call", len(stack), FRAMES_BAR
    )
    print(f"files among them: {len(set(stack))}")


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


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


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


def _profiled(root: Path) -> Mapping[str, list[str]]:
    """Run a test with a session of its own on the checkout's source, and return what its calls went through."""
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
        command = [sys.executable, "-m", "pytest", "-q", "-p", PROBE.stem]
        subprocess.run(
            command, cwd=suite, env=environment, check=True, stdout=subprocess.PIPE
        )
        seen: dict[str, list[str]] = json.loads(report.read_text())
        return seen


if __name__ == "__main__":
    sys.exit(main())
