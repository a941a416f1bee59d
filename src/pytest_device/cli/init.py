"""``pytest-device init``: write a small suite to start from."""

import argparse
import os
import shlex
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Final

from pytest_device.cli.command import Command
from pytest_device.errors import ConfigError

FILES: Final = (
    *("test_sign_in.py", "conftest.py", "pytest.ini", "app/index.html"),
    *(".github/workflows/device-tests.yml", ".gitlab-ci.yml"),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        nargs="?",
        default=".",
        metavar="DIR",
        help="target directory, created if missing (default: .)",
    )


def _run(parsed: argparse.Namespace) -> int:
    directory = Path(parsed.directory)
    if existing := [name for name in FILES if os.path.lexists(directory / name)]:
        raise ConfigError(
            f"nothing was written: {directory} already has {', '.join(existing)}; name another directory"
        )
    try:
        _write(directory)
    except OSError as error:
        place = error.filename or directory
        raise ConfigError(
            f"nothing was written: {place}: {error.strerror}; name another directory"
        ) from None
    for name in FILES:
        print(f"wrote {directory / name}")
    changing = "" if directory == Path() else f"cd {shlex.quote(str(directory))} && "
    print(f"\nRun the tests: {changing}pytest --device-local")
    return 0


def _write(directory: Path) -> None:
    """Write all files, or none."""
    with ExitStack() as undo:
        for name in FILES:
            path = directory / name
            missing = [parent for parent in path.parents if not parent.is_dir()]
            for parent in reversed(missing):
                parent.mkdir()
                undo.callback(parent.rmdir)
            with path.open("xb") as file:
                undo.callback(path.unlink)
                file.write(
                    files("pytest_device.cli").joinpath("suite", name).read_bytes()
                )
        undo.pop_all()


INIT: Final = Command(
    name="init",
    summary="write a small suite to start from",
    description="""\
Write two tests, a small app, an ini file, and a job for GitHub and for GitLab. The
tests run on this machine; comments say which lines to change for an account and
for a native app. No file is overwritten.""",
    examples={"init": "in this directory", "init e2e": "in a directory of its own"},
    statuses={
        0: "the suite was written",
        2: "nothing was written: a file exists or can't be written, or usage error",
    },
    add_options=_add_options,
    run=_run,
)
