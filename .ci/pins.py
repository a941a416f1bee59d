"""Raise every pinned program, with its hashes, and print what changed: ``tox -e pins``.

Raised are the npm projects and Python packages of the local service, the npm projects of the tests, and the tools that
``pyproject.toml`` and ``.pre-commit-config.yaml`` pin with ``==``. The lowest supported versions in ``tox.ini`` stay: they
are a promise to users. Nothing is committed. Read the changes, run ``tox -p auto``, then commit.

Two pins follow another one: chromedriver has the major version of Chromium, and agent-browser is the version that
agent-device starts.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PROGRAMS: Final = ROOT / "src/pytest_device/service/programs"
SECONDS: Final = 600

NPM_PROJECTS: Final = (
    *sorted(path.parent for path in PROGRAMS.glob("npm/*/package.json")),
    ROOT / "tests/app/typescript",
    ROOT / "tests/auth/foreign",
    ROOT / "examples/native",
)
HASHED: Final = sorted(PROGRAMS.glob("pip/*/requirements.txt"))
PINNED_TOOLS: Final = (ROOT / "pyproject.toml", ROOT / ".pre-commit-config.yaml")

# A tool with or without extras: `"ruff==0.17.5"`, `"pyright[nodejs]==1.1.414"`
TOOL: Final = re.compile(r"""(["'])([\w.-]+)(\[[\w,-]+\])?==([\w.]+)\1""")

# agent-device names the version of agent-browser in its compiled source.
BROWSER_OF_AGENT_DEVICE: Final = re.compile(r"=`(\d+\.\d+\.\d+)`,\w+=`agent-browser`")

# Major versions that the product supports; others need a change of its code first.
WITHIN: Final = {"appium": "3", "typescript": "5"}


@dataclass(frozen=True, slots=True)
class Change:
    """A pin that was raised."""

    file: Path
    package: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}: {self.package} {self.old} -> {self.new}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dry-run", action="store_true", help="print the changes, write nothing"
    )
    write = not parser.parse_args().dry_run

    changes = [
        *(
            change
            for folder in NPM_PROJECTS
            for change in raise_npm(folder, write=write)
        ),
        *(change for file in HASHED for change in raise_hashed(file, write=write)),
        *(change for file in PINNED_TOOLS for change in raise_tools(file, write=write)),
    ]

    for change in changes:
        print(change)
    if not changes:
        print("every pin is the newest version")
        return 0

    print_mentions(changes)
    return 0


def raise_npm(folder: Path, *, write: bool) -> Iterator[Change]:
    """Raise the dependencies of an npm project, and make its lock file anew without addresses of a registry."""
    manifest = folder / "package.json"
    content = json.loads(manifest.read_text())
    dependencies: dict[str, str] = content["dependencies"]

    changes = []
    for package, old in dependencies.items():
        new = newest_npm(package, dependencies)
        if new != old:
            changes.append(Change(manifest, package, old, new))
            dependencies[package] = new

    if changes and write:
        manifest.write_text(json.dumps(content, indent=2) + "\n")
        (folder / "package-lock.json").unlink(missing_ok=True)
        run(
            *("npm", "install", "--package-lock-only", "--ignore-scripts"),
            *("--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"),
            folder=folder,
        )
        remove_unused_fields(folder / "package-lock.json")
    yield from changes


def remove_unused_fields(lock_file: Path) -> None:
    """Remove what no installation reads, and what makes a change of a lock file hard to read."""
    content = json.loads(lock_file.read_text())
    for package in content["packages"].values():
        package.pop("funding", None)
        package.pop("license", None)
    lock_file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def newest_npm(package: str, dependencies: Mapping[str, str]) -> str:
    """Return the newest version of a package that the product can use; dependencies before it are raised already."""
    if package == "agent-browser":
        return browser_of_agent_device(newest_npm("agent-device", dependencies))
    if major := WITHIN.get(package):
        versions = json.loads(
            run("npm", "view", f"{package}@{major}", "version", "--json")
        )
        # npm lists them in ascending order; a single version is no list.
        newest: str = versions[-1] if isinstance(versions, list) else versions
        return newest
    return run("npm", "view", package, "version").strip()


def browser_of_agent_device(version: str) -> str:
    """Return the version of agent-browser that a version of agent-device starts."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run("npm", "pack", "--loglevel=error", f"agent-device@{version}", folder=folder)
        archive = next(folder.glob("*.tgz"))
        source = run(
            "tar", "-xOf", str(archive), "package/dist/src/agent-browser-tool.js"
        )

    match = BROWSER_OF_AGENT_DEVICE.search(source)
    if not match:
        sys.exit(
            f"agent-device {version} doesn't name its agent-browser as before: look it up"
        )
    return match[1]


def raise_hashed(file: Path, *, write: bool) -> Iterator[Change]:
    """Raise the package of a requirements file that pins it by hash."""
    text = file.read_text()
    package, old = text.split(" ", 1)[0].split("==")

    constraint = package
    if package == "chromedriver-py":
        manifest = json.loads((PROGRAMS / "npm/chromium/package.json").read_text())
        major = manifest["dependencies"]["@sparticuz/chromium"].split(".")[0]
        constraint = f"{package}=={major}.*"

    pinned = run(
        *(sys.executable, "-m", "piptools", "compile", "--quiet", "--generate-hashes"),
        *("--strip-extras", "--no-header", "--no-annotate", "--no-emit-index-url"),
        *("--no-emit-find-links", "--no-emit-trusted-host", "--output-file", "-", "-"),
        given=constraint,
    )
    # The options of pip that the machine sets are printed before the packages.
    pinned = pinned[pinned.index(f"{package}==") :]
    new = pinned.split(" ", 1)[0].removeprefix(f"{package}==")

    if new != old:
        if write:
            file.write_text(pinned)
        yield Change(file, package, old, new)


def raise_tools(file: Path, *, write: bool) -> Iterator[Change]:
    """Raise the tools that a file pins with ``==``."""
    text = file.read_text()
    raised, changes = with_newest_tools(text, newest_python)

    if changes and write:
        file.write_text(raised)
    for package, (old, new) in changes.items():
        yield Change(file, package, old, new)


def with_newest_tools(
    text: str, newest: Callable[[str], str]
) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return a text with its quoted ``package==version`` raised, and the old and new version of each that changed."""
    changes: dict[str, tuple[str, str]] = {}

    def raised(match: re.Match[str]) -> str:
        quote, package, extras, old = match.groups(default="")
        new = newest(package)
        if new != old:
            changes[package] = (old, new)
        return f"{quote}{package}{extras}=={new}{quote}"

    return TOOL.sub(raised, text), changes


def newest_python(package: str) -> str:
    """Return the newest release of a Python package that this Python can install."""
    output = run(sys.executable, "-m", "pip", "index", "versions", package)
    match = re.match(r"\S+ \((.+?)\)", output)
    if not match:
        sys.exit(f"pip names no version of {package}: {output[:200]!r}")
    return match[1]


def print_mentions(changes: list[Change]) -> None:
    """Print the lines that still name an old version of a program: code, tests and pages that describe it."""
    for change in changes:
        if change.file in PINNED_TOOLS:
            continue  # their versions stand nowhere else
        lines = subprocess.run(
            (
                *("git", "grep", "--fixed-strings", "--line-number", change.old, "--"),
                *("src", "tests", "docs", ":!*package.json", ":!*package-lock.json"),
            ),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,  # no line at all is an exit status of 1
            timeout=SECONDS,
        ).stdout
        for line in lines.splitlines():
            print(f"still {change.old} ({change.package}): {line[:120]}")


def run(*command: str, folder: Path = ROOT, given: str = "") -> str:
    """Run a program and return its output. If it fails, exit with what it printed."""
    completed = subprocess.run(
        command,
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        check=False,  # its warnings are worth printing only if it fails
        timeout=SECONDS,
    )
    if completed.returncode != 0:
        sys.exit(f"{' '.join(command)}: {completed.stderr or completed.stdout}")
    return completed.stdout


if __name__ == "__main__":
    sys.exit(main())
