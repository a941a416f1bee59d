"""``pytest-device trace``: open the traces of tests, and list them."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import Final

from pytest_device.cli.command import Command, group
from pytest_device.cli.page import show
from pytest_device.cli.toolbox import show_progress, toolbox
from pytest_device.errors import ConfigError
from pytest_device.escape import escaped
from pytest_device.options import Options
from pytest_device.trace import reader
from pytest_device.trace.viewer import VIEWER, installed_viewers

_STATUSES: Final = {
    0: "done",
    2: "no trace, a file that is not a trace, no viewer, or usage error",
}


def _add_path(
    parser: argparse.ArgumentParser,
    help: str = "a trace.zip, or a directory: the newest trace in it",  # noqa: A002  # argparse's name
) -> None:
    default = (
        os.environ.get(Options.artifacts_dir.variable) or Options.artifacts_dir.default
    )
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        default=Path(default),
        metavar="PATH",
        help=f"{help} (default: {default})",
    )


def _add_list_options(parser: argparse.ArgumentParser) -> None:
    _add_path(parser, "directory of traces, or a trace.zip")


def _add_open_options(parser: argparse.ArgumentParser) -> None:
    _add_path(parser)
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        help="port of the viewer on this machine (default: a free one)",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the URL, open no browser"
    )


def _open(parsed: argparse.Namespace) -> int:
    trace = reader.newest_in(parsed.path)
    # So that no viewer is installed and opened for a file that is not a trace.
    reader.read(trace)

    show(
        _viewer(),
        parsed.port,
        trace=trace,
        title=f"{trace}: ",
        opens_browser=not parsed.no_browser,
    )
    return 0


def _viewer() -> Path:
    """Return the directory of a viewer: an installed one, else that of the cache, installed there once.

    Raises ConfigError with the cause and the fix.
    """
    for viewer in installed_viewers(Path.cwd()):
        return viewer

    try:
        with toolbox() as programs:
            from pytest_device.service.programs.toolchain import PLAYWRIGHT

            playwright = asyncio.run(programs.get(PLAYWRIGHT, show_progress))
    except ImportError as error:
        raise ConfigError(
            f"no viewer is installed, and installing one needs pip install 'pytest-device[local]' ({error}); "
            "`pip install playwright` brings one, too"
        ) from None

    return playwright.package("playwright-core") / VIEWER


def _list(parsed: argparse.Namespace) -> int:
    traces = reader.traces_in(parsed.path)
    for path in traces:
        # One that cannot be read must not hide the others.
        try:
            trace = reader.read(path)
        except ConfigError as error:
            print(escaped(f"unreadable  {error}"))
            continue

        size = path.stat().st_size / 1024
        line = (
            f"{trace.state:12}{trace.began:%Y-%m-%d %H:%M:%S} {size:7.0f} KB  "
            f"{trace.title}"
        )
        print(escaped(f"{line}\n       {path}"))

    if not traces:
        print(f"no traces in {parsed.path}")

    return 0


OPEN: Final = Command(
    name="open",
    summary="open a trace in Playwright's trace viewer",
    description="""\
Open a trace in Playwright's trace viewer, which runs on this machine until Ctrl-C.
The viewer is that of an installed Playwright; without one, it is installed in the
cache on first use.""",
    examples={
        "trace open": "the newest trace in the artifacts directory",
        "trace open PATH/trace.zip": "this trace",
    },
    statuses=_STATUSES,
    add_options=_add_open_options,
    run=_open,
)
LIST: Final = Command(
    name="list",
    summary="list traces, the newest first",
    description="List the traces below a directory, the newest first. Traces of killed runs are completed.",
    examples={"trace list": "those in the artifacts directory"},
    statuses={0: "done, also without traces", 2: "no such path, or usage error"},
    add_options=_add_list_options,
    run=_list,
)
TRACE: Final = group(
    "trace",
    (OPEN, LIST),
    summary="open and list the traces of tests",
    description="Open and list the traces that runs keep of failed tests.",
    examples={"trace open": "open the newest trace", "trace list": "list all"},
    statuses=_STATUSES,
)
