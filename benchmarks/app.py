"""Cost of the app's project: to load, to scan, to match, and to check with mypy.

``python benchmarks/app.py`` prints the figures and fails if one exceeds its bound.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pytest_device.app import Routes, load_project
from pytest_device.app.routes.declarations import python_module

KEYS: Final = 200
FILES: Final = 20_000
MATCHES: Final = 10_000
TYPED: Final = 1_000
LOAD, SCAN, MATCH, MYPY = (
    f"load a project of {KEYS} keys",
    f"scan {FILES:,} routes",
    f"match {MATCHES:,} URLs",
    f"mypy over {TYPED:,} routes",
)
BOUNDS: Final = {LOAD: 0.020, SCAN: 1.0, MATCH: 2.0}
"""Seconds of the processor."""


def main() -> int:
    """Print the figures; return 1 if one exceeds its bound."""
    with tempfile.TemporaryDirectory() as directory:
        figures = dict(_figures(Path(directory)))
    for name, seconds in figures.items():
        bound = f"   (at most {BOUNDS[name] * 1000:g} ms)" if name in BOUNDS else ""
        print(f"{name:28} {seconds * 1000:8.1f} ms{bound}")
    return int(any(figures[name] > bound for name, bound in BOUNDS.items()))


def _figures(root: Path) -> list[tuple[str, float]]:
    _write_project(root)
    names = _write_routes(root / "app")
    routes = Routes.scan(root / "app")
    urls = [
        f"/{name.replace('[id]', '7').replace('(tabs)/', '')}"
        for name in names[:MATCHES]
    ]
    assert routes.match(urls[0])  # builds what matching needs

    def match() -> None:
        assert all(routes.match(url) for url in urls)

    return [
        (LOAD, _best(lambda: load_project(root, environ={}))),
        (SCAN, _best(lambda: Routes.scan(root / "app"), times=3)),
        (MATCH, _best(match, times=3)),
        (MYPY, _mypy(root)),
    ]


def _write_project(root: Path) -> None:
    (root / "package.json").write_text(
        json.dumps({"name": "app", "dependencies": {"vendor": "^57.0.0"}})
    )
    extra = {f"key{index}": {"value": index, "text": "x" * 20} for index in range(KEYS)}
    (root / "app.json").write_text(
        json.dumps({"vendor": {"scheme": "app", "extra": extra}}, indent=2)
    )


def _write_routes(directory: Path) -> list[str]:
    """Write nested, grouped and dynamic routes; return their names."""
    shapes = (
        "section{0}/page{1}",
        "(tabs)/tab{0}/view{1}",
        "item{0}/[id]/part{1}",
        "deep{0}/a/b/c/d/leaf{1}",
    )
    names = [shapes[index % 4].format(index // 80, index) for index in range(FILES)]
    for name in names:
        path = directory / f"{name}.tsx"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return names


def _best(run: Callable[[], object], times: int = 10) -> float:
    seconds: list[float] = []
    for _ in range(times):
        started = time.process_time()
        run()
        seconds.append(time.process_time() - started)
    return min(seconds)


def _mypy(root: Path) -> float:
    """Return how long mypy takes, without a cache, for the module of 1,000 routes and as many links."""
    files = [
        f"r{index}/[id{index % 50}].tsx" if index % 2 else f"r{index}.tsx"
        for index in range(TYPED)
    ]
    linkable = Routes.of_files(files).linkable
    (root / "app_routes.py").write_text(python_module(linkable, "."))
    links = [
        f'device_link("{name}", {json.dumps({one.name: "1" for one in parameters})})\n'
        for name, parameters in linkable.items()
        if parameters
    ]
    (root / "use.py").write_text(
        f"from app_routes import device_link\n{''.join(links)}"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--cache-dir",
        str(root / ".mypy"),
        "use.py",
    ]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
