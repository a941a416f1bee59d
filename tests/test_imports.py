"""Import cost, and layering rules that import contracts can't express."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import pytest_device

pytestmark = pytest.mark.every_python

SRC = Path(__file__).parent.parent / "src" / "pytest_device"
MODULES = sorted(SRC.rglob("*.py"))
HEAVY = {
    "appium",
    "filelock",
    "httpx",
    "psutil",
    "pydantic",
    "starlette",
    "uvicorn",
    "xdist",
    # Brought by those.
    "anyio",
    "asyncio",
    "selenium",
    "trio",
}
IN_EVERY_RUN = {
    "pytest_device",
    "pytest_device.options",
    "pytest_device.plugin",
    "pytest_device.secret_registry",
    *(
        f"pytest_device.plugin.{name}"
        for name in ("fixtures", "hookspecs", "options", "selection", "services")
    ),
}
"""Our modules that a run without a device loads: each costs every run of every suite."""
(PLUGIN,) = (point.value for point in entry_points(group="pytest11", name="device"))


@pytest.mark.parametrize("module", ["pytest_device", PLUGIN])
def test_importing_loads_no_heavy_module(module: str, tmp_path: Path) -> None:
    loaded = python("-c", IMPORT_AND_REPORT_MODULES, module, cwd=tmp_path)

    assert module in loaded
    assert heavy(loaded) == set()


def test_a_run_without_a_device_loads_no_heavy_module(tmp_path: Path) -> None:
    tmp_path.joinpath("conftest.py").write_text(REPORT_MODULES_AT_THE_END)
    tmp_path.joinpath("test_trivial.py").write_text("def test_trivial(): pass")

    loaded = python("-m", "pytest", "-qq", "--no-summary", "-p", PLUGIN, cwd=tmp_path)

    assert PLUGIN in loaded
    assert heavy(loaded) == set()
    assert {
        name for name in loaded if name.partition(".")[0] == "pytest_device"
    } == IN_EVERY_RUN


def test_a_distributed_run_without_a_device_loads_no_heavy_module_in_any_process(
    tmp_path: Path,
) -> None:
    tmp_path.joinpath("conftest.py").write_text(WRITE_MODULES_AT_THE_END)
    tmp_path.joinpath("test_trivial.py").write_text("def test_trivial(): pass")

    python(
        "-m",
        "pytest",
        "-s",
        "-qq",
        "-p",
        "xdist.plugin",
        "-p",
        PLUGIN,
        "-n1",
        cwd=tmp_path,
    )

    controller, worker = (
        json.loads(path.read_text()) for path in sorted(tmp_path.glob("modules-*"))
    )
    assert PLUGIN in controller
    assert PLUGIN in worker
    # What pytest-xdist itself brings, with the part of it that some releases borrow from the standard library.
    allowed = {"xdist", "asyncio"}
    assert heavy(controller) | heavy(worker) <= allowed


@pytest.mark.parametrize("module", ["pytest_device", PLUGIN])
def test_importing_changes_nothing_in_the_process(module: str, tmp_path: Path) -> None:
    assert python("-c", IMPORT_AND_REPORT_CHANGES, module, cwd=tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


def first_line(module: Path) -> str:
    return (ast.get_docstring(tree_of(module)) or "").partition("\n")[0]


def test_each_module_starts_with_one_sentence() -> None:
    assert [module for module in MODULES if not first_line(module).endswith(".")] == []


@pytest.mark.parametrize(
    "name", ["errors", "redact", "secret_registry", "settings", "spec"]
)
def test_the_base_layer_uses_only_the_standard_library(name: str) -> None:
    foreign = {
        root
        for root in imports(SRC / f"{name}.py")
        if root not in sys.stdlib_module_names
    }

    assert foreign <= {"pytest_device"}


SYSTEM_MODULES = {"ctypes", "fcntl", "msvcrt", "pwd", "resource", "termios", "winreg"}
SYSTEM_NAMES = {
    "os.name",
    "os.fork",
    "os.forkpty",
    "os.killpg",
    "os.getsid",
    "os.setsid",
    "os.geteuid",
    "os.getuid",
    "os.getegid",
    "os.getgid",
    "os.set_blocking",
    "os.pidfd_open",
    "os.posix_spawn",
    "os.uname",
    "sys.platform",
    "sys.getwindowsversion",
    "signal.pthread_kill",
    "signal.SIGKILL",
    "signal.SIGHUP",
    "platform.system",
    "socket.send_fds",
    "socket.recv_fds",
}
SYSTEM_PATHS = ("/proc", "/bin/sh", "/Applications")


def test_only_the_package_of_the_system_asks_which_system_it_is() -> None:
    modules = [
        module
        for module in MODULES
        # Scripts that pip runs are no part of the package's code.
        if module.name != "install.py" and SRC / "platforms" not in module.parents
    ]

    assert len(modules) > 300
    assert [
        f"{module.relative_to(SRC)}, {found}"
        for module in modules
        for found in asks_the_system(tree_of(module))
    ] == []


@pytest.mark.parametrize(
    "line",
    [
        "import sys; sys.platform == 'win32'",
        "from sys import platform",
        "from os import killpg as end",
        "import os as system; system.name",
        "import os; getattr(os, 'fork')()",
        "import os; hasattr(os, 'geteuid')",
        "def f():\n    import fcntl",
        "from ctypes import CDLL",
        "open(f'/proc/{pid}/stat')",
        "COMMAND = ('/bin/sh', '-c')",
    ],
)
def test_each_way_to_ask_for_the_system_is_noticed(line: str) -> None:
    assert [*asks_the_system(ast.parse(line))] != []


def test_a_docstring_may_name_what_a_system_has() -> None:
    assert [
        *asks_the_system(ast.parse('"""Reads /proc/net/tcp."""\nos.getpid()'))
    ] == []


def asks_the_system(tree: ast.Module) -> Iterator[str]:
    """Yield what a module uses that only the package of the system may use."""
    modules: dict[str, str] = {}
    docstrings = set[int]()
    nodes = [*ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))

    for node in nodes:
        if id(node) in docstrings:
            continue
        for name in uses(node, modules):
            if name in SYSTEM_MODULES | SYSTEM_NAMES or name.startswith(SYSTEM_PATHS):
                yield f"line {getattr(node, 'lineno', 0)}: {name}"


def uses(node: ast.AST, modules: dict[str, str]) -> Iterator[str]:
    """Yield the modules, their attributes and the texts in a node; ``modules`` are the names of modules."""
    match node:
        case ast.Import(names=names):
            yield from (each.name.partition(".")[0] for each in names)
        case ast.ImportFrom(module=str(name), names=names):
            yield name.partition(".")[0]
            yield from (f"{name}.{each.name}" for each in names)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            yield f"{modules.get(name, '')}.{attribute}"
        case ast.Call(
            func=ast.Name(id="getattr" | "hasattr"),
            args=[ast.Name(id=name), ast.Constant(value=str(attribute)), *_],
        ):
            yield f"{modules.get(name, '')}.{attribute}"
        case ast.Constant(value=str(text)):
            yield text
        case _:
            return


def test_type_checkers_and_run_time_see_the_same_public_names() -> None:
    typed = {
        alias.name: node.module
        for node in ast.walk(ast.parse((SRC / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom)
        and node.module
        and node.module.startswith("pytest_device.")
        for alias in node.names
    }

    assert typed.keys() == set(dir(pytest_device)) - vars(pytest_device).keys()
    for name, module in typed.items():
        assert getattr(pytest_device, name) is getattr(import_module(module), name)


def test_public_errors_are_shown_with_their_import_name() -> None:
    errors = [
        getattr(pytest_device, name)
        for name in dir(pytest_device)
        if name.endswith("Error")
    ]

    assert len(errors) > 20
    assert {error.__module__ for error in errors} == {"pytest_device"}


def heavy(modules: list[str]) -> set[str]:
    return HEAVY & {module.partition(".")[0] for module in modules}


def imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.Import():
                yield from (alias.name.partition(".")[0] for alias in node.names)
            case ast.ImportFrom(module=str(name)):
                yield name.partition(".")[0]


def python(*args: str, cwd: Path) -> list[str]:
    """Run a fresh interpreter without plugin autoloading; return the list that it prints last."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST_")
    }
    done = subprocess.run(
        [sys.executable, "-B", *args],
        cwd=cwd,
        env={
            **inherited,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_DEBUG_TEMPROOT": str(cwd),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    *_, last_line = done.stdout.splitlines()
    found: list[str] = json.loads(last_line)
    return found


IMPORT_AND_REPORT_MODULES = """
import importlib, json, sys
import pytest

before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(json.dumps(sorted(set(sys.modules) - before)))
"""

REPORT_MODULES_AT_THE_END = """
import json, sys

def pytest_unconfigure():
    print(json.dumps(sorted(sys.modules)))
"""

WRITE_MODULES_AT_THE_END = """
import json, os, pathlib, sys

def pytest_unconfigure(config):
    name = os.environ.get("PYTEST_XDIST_WORKER", "controller")
    pathlib.Path(f"modules-{name}").write_text(json.dumps(sorted(sys.modules)))
    if name == "controller":
        print("[]")
"""

IMPORT_AND_REPORT_CHANGES = """
import atexit, importlib, json, os, signal, sys, threading, warnings
import pytest

def state():
    return {
        "environment": dict(os.environ),
        "exception hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook),
        "exit handlers": atexit._ncallbacks(),
        "signal handlers": [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        "sys.path": list(sys.path),
        "threads": threading.active_count(),
        "warning filters": list(warnings.filters),
    }

before = state()
importlib.import_module(sys.argv[1])
after = state()
print(json.dumps([name for name in before if before[name] != after[name]]))
"""
