"""``pytest-device init``: write a small suite to start from."""

import argparse
import os
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Final

from pytest_device.cli.command import Command
from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.spec import SessionType

_SHARED: Final = {
    ".github/workflows/device-tests.yml": "suite/.github/workflows/device-tests.yml",
    ".gitlab-ci.yml": "suite/.gitlab-ci.yml",
}
_BUILD: Final = "builds/9c0f4a52-6c0e-4f4e-8a52-0e5c2f7f3b10"
_IGNORED: Final = (".gitignore", "suite/gitignore")
"""A file that a repository may have already: it is then left as it is. As a template, it must not hide others from git."""

SUITES: Final[Mapping[SessionType, Mapping[str, str]]] = {
    SessionType.APPIUM: {
        "test_sign_in.py": "suite/test_sign_in.py",
        "conftest.py": "suite/conftest.py",
        "pytest.ini": "suite/pytest.ini",
        "app/index.html": "suite/app/index.html",
        **_SHARED,
    },
    SessionType.AGENT_DEVICE: {
        "test_sign_in.py": "agent_suite/test_sign_in.py",
        "pytest.ini": "agent_suite/pytest.ini",
        f"{_BUILD}/build.json": f"agent_suite/{_BUILD}/build.json",
        # Not that of the other suite: agent-device finds headings and controls, but no paragraphs.
        f"{_BUILD}/app/index.html": f"agent_suite/{_BUILD}/app/index.html",
        **_SHARED,
    },
}
"""The files of a suite by session type, each with its template in this package."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type",
        choices=[str(session_type) for session_type in SUITES],
        default=str(SessionType.APPIUM),
        help="what the tests drive the device with (default: appium)",
    )
    parser.add_argument(
        "directory",
        nargs="?",
        default=".",
        metavar="DIR",
        help="target directory, created if missing (default: .)",
    )


def _run(parsed: argparse.Namespace) -> int:
    directory = Path(parsed.directory)
    templates = dict(SUITES[SessionType(parsed.type)])
    # Broken links, too: writing would create what they point to.
    existing = [name for name in templates if os.path.lexists(directory / name)]
    if existing:
        raise ConfigError(
            f"nothing was written: {directory} already has {', '.join(existing)}; name another directory"
        )

    ignored, template = _IGNORED
    if not os.path.lexists(directory / ignored):
        templates[ignored] = template

    try:
        _write(directory, templates)
    except OSError as error:
        path = error.filename or directory
        raise ConfigError(
            f"nothing was written: {path}: {error.strerror}; name another directory"
        ) from None

    for name in templates:
        print(f"wrote {directory / name}")
    if ignored not in templates:
        print(f"left {directory / ignored} as it is")

    command = "pytest"
    if directory != Path():
        command = SYSTEM.shell.line(directory, command)

    print(f"\nRun the tests: {command}")
    return 0


def _write(directory: Path, templates: Mapping[str, str]) -> None:
    """Write all files, or none."""
    with ExitStack() as undo:
        for name, template in templates.items():
            path = directory / name
            missing = [parent for parent in path.parents if not parent.is_dir()]
            for parent in reversed(missing):
                parent.mkdir()
                undo.callback(parent.rmdir)

            # Not one that another process has created since.
            with path.open("xb") as file:
                undo.callback(path.unlink)
                file.write(files("pytest_device.cli").joinpath(template).read_bytes())

        undo.pop_all()


INIT: Final = Command(
    name="init",
    summary="write a small suite to start from",
    description="""\
Write two tests, a small app, an ini file, and a job for GitHub and for GitLab. The
tests run on this machine; comments say which lines to change for an account and
for a native app. No file is overwritten.""",
    examples={
        "init": "in this directory",
        "init e2e": "in a directory of its own",
        "init --type agent-device": "driven by agent-device instead of Appium",
    },
    statuses={
        0: "the suite was written",
        2: "nothing was written: a file exists or can't be written, or usage error",
    },
    add_options=_add_options,
    run=_run,
)
