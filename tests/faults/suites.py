"""The small suites that the rows run, most of them one test with a session."""

from collections.abc import Mapping
from textwrap import dedent, indent
from typing import Final

_HEAD: Final = '''
import atexit, ctypes, os, pathlib, signal, subprocess, sys, threading, time
import pytest

DIRECTORY = pathlib.Path(os.environ["FAULT_DIRECTORY"])

def reached():
    """Report that this process has reached its moment."""
    (DIRECTORY / f"reached-{os.getpid()}").touch()

def hold(seconds=60):
    reached()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        time.sleep(0.05)
'''


def suite(
    body: str = "pass",
    *,
    before: str = "",
    marks: str = "",
    given: str = "",
    conftest: str = "",
) -> Mapping[str, str]:
    """Return the files of a suite with one device test.

    ``before`` precedes the test, ``marks`` adds decorators, ``given`` adds arguments.
    """
    test = dedent(
        """
        {before}
        {marks}
        @pytest.mark.device(platform="android")
        def test_driven(device_session{given}):
        {body}
        """
    ).format(
        before=dedent(before),
        marks=dedent(marks),
        given=given,
        body=indent(dedent(body).strip(), "    "),
    )
    return files(test, conftest=conftest)


def files(tests: str, *, conftest: str = "") -> Mapping[str, str]:
    """Return the files of a suite with these tests."""
    written = {"test_it.py": _HEAD + dedent(tests)}
    return written | ({"conftest.py": _HEAD + dedent(conftest)} if conftest else {})


HOLDS: Final = suite("hold()")
PASSES: Final = suite()


def many(count: int, body: str) -> Mapping[str, str]:
    """Return a suite of ``count`` identical tests, each with its own session and its number as ``n``."""
    return suite(
        body, marks=f'@pytest.mark.parametrize("n", range({count}))', given=", n"
    )
