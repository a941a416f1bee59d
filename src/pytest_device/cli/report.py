"""``pytest-device report``: one page, or other formats, of the runs in report directories."""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZipFile

from pytest_device.cli.command import Command
from pytest_device.cli.masked import print_annotations
from pytest_device.cli.page import show
from pytest_device.cli.toolbox import show_progress, toolbox
from pytest_device.errors import ConfigError
from pytest_device.escape import escaped
from pytest_device.options import Options
from pytest_device.programs import passed_on
from pytest_device.regular_files import open_inside

PAGE: Final = "page"
_PAGE_TITLE: Final = b"<title>Playwright Test Report</title>"
_MAX_HEAD: Final = 4096
"""Bytes of a page in which its title is."""
FORMATS: Final = ("html", "junit", "github", "perfetto", "json")
"""Reporters of Playwright that the command offers."""
_FILES: Final = {
    "junit": "report.junit.xml",
    "perfetto": "report.perfetto.json",
    "json": "report.json",
}
DATA_FILE: Final = "report.device-run.json"
"""The data of all runs, merged: what ``device-run.json`` says of each."""
_DAMAGED: Final = "is not a report, or is damaged"
MERGE_SECONDS: Final = 600.0
"""Limit for one merge: 2,000 tests take two seconds."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    default = os.environ.get(Options.report.variable) or Options.report.default
    parser.add_argument(
        "directories",
        nargs="*",
        type=Path,
        default=[Path(default)],
        metavar="DIR",
        help=f"directories of reports: of shards, machines or days (default: {default})",
    )
    parser.add_argument(
        "--format",
        default="html",
        metavar="FORMATS",
        help=f"comma-separated: {', '.join(FORMATS)} (default: html)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="directory for the results (default: the first DIR)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        help="port of the page on this machine (default: a free one)",
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="write the files, serve and open no page",
    )


def _run(parsed: argparse.Namespace) -> int:
    # What users can get wrong, before anything is installed or written.
    formats = _formats(parsed.format)
    output: Path = (parsed.output or parsed.directories[0]).absolute()
    if "html" in formats:
        _check_page(output / PAGE)

    blobs = list(_blobs(parsed.directories))
    if not blobs:
        names = ", ".join(str(directory) for directory in parsed.directories)
        raise ConfigError(
            f"no report in {names}: a run with devices writes one, unless {Options.report.flag} is off"
        )

    with TemporaryDirectory(prefix="pytest-device-report-") as temporary:
        directory = Path(temporary)
        copies = directory / "blobs"
        copies.mkdir()
        for number, blob in enumerate(blobs):
            _copy(blob, copies / f"{number:05d}.zip")
        _merge(directory, copies, formats, output)

    for format_name in formats:
        if format_name in _FILES:
            print(output / _FILES[format_name])

    if "json" in formats:
        _write_data(parsed.directories, output / DATA_FILE)
    if "html" in formats:
        _open(output / PAGE, parsed)

    return 0


def _copy(blob: Path, target: Path) -> None:
    """Copy a blob without what leads to other files; print that a damaged one is left out."""
    from pytest_device.report.blob import UNREADABLE
    from pytest_device.report.foreign import copy_as_text

    try:
        copy_as_text(blob, target)
    # JSON may be nested too deeply.
    except (*UNREADABLE, RecursionError):
        target.unlink(missing_ok=True)
        print(escaped(f"left out: {blob} {_DAMAGED}"), file=sys.stderr)


def _formats(text: str) -> list[str]:
    formats = [word.strip() for word in text.split(",")]
    for name in formats:
        if name not in FORMATS:
            raise ConfigError(
                f"--format={text}: unknown format {name!r}; the formats are {', '.join(FORMATS)}"
            )

    return formats


def _check_page(page: Path) -> None:
    """Raise ConfigError unless a directory is free, or has the page of an earlier report: Playwright deletes it first."""
    if not page.exists() or (page.is_dir() and not any(page.iterdir())):
        return

    try:
        with open_inside("index.html", page) as file:
            is_report = _PAGE_TITLE in file.read(_MAX_HEAD)
    except OSError:
        is_report = False

    if not is_report:
        raise ConfigError(
            f"{page} has other files, which the page would replace: choose another directory with --output"
        )


def _blobs(directories: Sequence[Path]) -> Iterator[Path]:
    """Yield the blobs of all directories; write those of killed runs, and print what is left out."""
    from pytest_device.report.directory import complete_killed

    for directory in directories:
        if not directory.is_dir():
            raise ConfigError(f"{directory} is not a directory")

        for problem in complete_killed(directory):
            print(escaped(problem), file=sys.stderr)

        for blob in sorted(directory.glob("*.zip")):
            problem = _problem_of(blob)
            if problem:
                print(escaped(f"left out: {blob} {problem}"), file=sys.stderr)
            else:
                yield blob


def _problem_of(blob: Path) -> str:
    """Return why a file cannot be merged, empty if it can."""
    from pytest_device.report.blob import BLOB_VERSION, UNREADABLE, metadata_of

    try:
        version = metadata_of(blob).get("version")
        with open_inside(blob.name, blob.parent) as file, ZipFile(file) as archive:
            is_damaged = archive.testzip() is not None
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except UNREADABLE:
        return _DAMAGED

    if is_damaged:
        return "is damaged"
    if not isinstance(version, int) or version > BLOB_VERSION:
        return (
            f"has version {version} of the format, written by a newer release: "
            f"this one reads versions up to {BLOB_VERSION}"
        )

    return ""


def _write_data(directories: Sequence[Path], path: Path) -> None:
    """Merge what the runs report as data, if they do; print what is left out."""
    from pytest_device.report.directory import DATA
    from pytest_device.report.merged import merge_data, parse_data

    files: list[Path] = []
    for directory in directories:
        files += sorted(directory.glob(f"{DATA}*.json"))

    runs: list[Mapping[str, Any]] = []
    for file in files:
        try:
            with open_inside(file.name, file.parent) as content:
                runs.append(parse_data(content.read().decode()))
        except (OSError, ValueError) as error:
            print(escaped(f"left out: {file}: {error}"), file=sys.stderr)

    if runs:
        text = json.dumps(merge_data(runs), indent=2)
        path.unlink(missing_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
        print(path)


def _merge(directory: Path, blobs: Path, formats: Sequence[str], output: Path) -> None:
    """Let Playwright merge the blobs, with files of its own in a directory. Raises ConfigError with its message."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        # An earlier result may be a link, which would be followed.
        for name in _FILES.keys() & formats:
            (output / _FILES[name]).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{output} cannot be a directory ({error.strerror}): choose another one with --output"
        ) from None

    # Playwright quotes the files of its test directory; the lines at a failure are in the report.
    empty = directory / "tests"
    empty.mkdir()
    config = directory / "merge.config.cjs"
    text = f"module.exports = {{ testDir: {json.dumps(str(empty))} }};\n"
    config.write_text(text, encoding="utf-8")
    node, script = _playwright(formats)
    command: list[str | Path] = [node, script, "merge-reports", "--config", config]
    command += ["--reporter", ",".join(formats), blobs]
    try:
        process = subprocess.run(  # noqa: S603  # programs that this package has installed
            command,
            cwd=empty,
            env={**passed_on(os.environ), **_outputs(output)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MERGE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"Playwright did not merge the reports within {MERGE_SECONDS:.0f} s: merge fewer directories at once"
        ) from None

    print_annotations(process.stdout.splitlines())

    if process.returncode:
        printed = (process.stderr or process.stdout).strip()
        reason = printed.partition("\n")[0]
        raise ConfigError(f"Playwright could not merge the reports: {reason}")


def _outputs(output: Path) -> Mapping[str, str]:
    """Return the variables by which Playwright's reporters get their paths."""
    variables = {
        "PLAYWRIGHT_HTML_OUTPUT_DIR": str(output / PAGE),
        "PLAYWRIGHT_HTML_OPEN": "never",
    }
    for format_name, file_name in _FILES.items():
        variable = f"PLAYWRIGHT_{format_name.upper()}_OUTPUT_FILE"
        variables[variable] = str(output / file_name)

    return variables


def _playwright(formats: Sequence[str]) -> tuple[Path, Path]:
    """Return Node.js and Playwright's script, installed in the cache if missing.

    Raises ConfigError with the cause, and the command that does the same by hand.
    """
    by_hand = f"npx playwright merge-reports --reporter={','.join(formats)} DIR"

    try:
        with toolbox() as programs:
            from pytest_device.service.programs.toolchain import PLAYWRIGHT

            playwright = asyncio.run(programs.get(PLAYWRIGHT, show_progress))
    except ImportError:
        raise ConfigError(
            f"merging needs pip install 'pytest-device[local]', or run: {by_hand}"
        ) from None
    except ConfigError as error:
        raise ConfigError(
            f"{error}\nOr run, where Node.js is installed: {by_hand}"
        ) from None

    return playwright.node, playwright.script


def _open(page: Path, parsed: argparse.Namespace) -> None:
    print(page / "index.html")
    if not parsed.no_browser:
        show(page, parsed.port)


REPORT: Final = Command(
    "report",
    "open one page of the runs in report directories",
    "Merge the reports of runs, shards, machines or days, and open the page with tests,\n"
    "attempts, traces and devices. Playwright creates the page: it is installed in\n"
    "the cache on first use.",
    {
        "report": "open the report of the last run",
        "report shard-1 shard-2": "open one report of two shards",
        "report --format junit,github": "write a JUnit file, print annotations",
    },
    {0: "done", 2: "no report, no Playwright, or usage error"},
    _add_options,
    _run,
)
