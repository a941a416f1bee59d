"""Rows: the ways in which pytest ends, and failures of other fixtures."""

from typing import Final

from tests.faults.acts import INT, TERM, in_test, sends
from tests.faults.row import NOBODY, Promise, Row, stopped
from tests.faults.suites import PASSES, files, many, suite


def _hook(signature: str) -> str:
    return f"def {signature}:\n    raise RuntimeError('a hook of the suite')"


_INTERNAL_ERROR: Final = 3
_THEIRS: Final = """
@pytest.fixture
def theirs({given}):
    {setup}
    yield
    {teardown}
"""
ROWS: Final = (
    Row(
        "-x",
        "Stopped with the failure.",
        many(3, "assert n != 0"),
        options=("-x",),
        status=1,
    ),
    Row(
        "--maxfail=2",
        "Each session is stopped.",
        many(4, "assert False"),
        options=("--maxfail=2",),
        reported=stopped(2),
        sessions=2,
        status=1,
    ),
    Row(
        "pytest.exit in a test",
        "Stopped before the run ends.",
        suite("pytest.exit('enough', 7)"),
        status=7,
    ),
    Row(
        "pytest.exit in the setup of another fixture",
        "The same.",
        suite(
            before=_THEIRS.format(
                given="device_session", setup="pytest.exit('no', 7)", teardown=""
            ),
            given=", theirs",
        ),
        status=7,
    ),
    Row(
        "KeyboardInterrupt raised by a test",
        "Like Ctrl-C.",
        suite("raise KeyboardInterrupt"),
        status=2,
    ),
    Row(
        "an internal error during the setup of a test",
        "pytest aborts the run; the session is stopped.",
        suite(
            conftest="""
            @pytest.hookimpl(wrapper=True)
            def pytest_runtest_setup(item):
                yield
                raise SystemError("a hook of the suite")
            """
        ),
        reported=r"1 stopped \(confirmed\)",
        status=1,
    ),
    Row(
        "an internal error while a report is created",
        "The same.",
        suite(conftest=_hook("pytest_runtest_makereport(item, call)")),
        status=_INTERNAL_ERROR,
    ),
    Row(
        "an internal error while a result is shown",
        "The same.",
        suite(conftest=_hook("pytest_runtest_logreport(report)")),
        status=_INTERNAL_ERROR,
    ),
    Row(
        "an internal error at the end of the run",
        "The same.",
        suite(conftest=_hook("pytest_sessionfinish(session)")),
        reported=NOBODY,
    ),
    Row(
        "an internal error while pytest shuts down",
        "The same.",
        suite(conftest=_hook("pytest_unconfigure(config)")),
    ),
    Row(
        "a usage error",
        "Nothing is created before all settings are validated.",
        files(
            """
            @pytest.mark.device(platform="android")
            def test_one(device_session): pass

            @pytest.mark.device(platform="amiga")
            def test_two(device_session): pass
            """
        ),
        promise=Promise.NONE,
        reported="platform",
        sessions=0,
        status=4,
    ),
    Row(
        "an error while tests are collected",
        "Nothing is created.",
        files(
            '@pytest.mark.device(platform="android")\ndef test_one(device_session): pass\nraise ValueError("here")'
        ),
        promise=Promise.NONE,
        reported="ValueError: here",
        sessions=0,
        status=2,
    ),
    Row(
        "another fixture fails in its setup, before ours",
        "Either nothing is created, or the session is stopped.",
        suite(
            before=_THEIRS.format(given="", setup="raise ValueError", teardown=""),
            given=", theirs",
        ),
        reported="1 error",
        sessions=0,
        status=1,
    ),
    Row(
        "another fixture fails in its setup, after ours",
        "Stopped.",
        suite(
            before=_THEIRS.format(
                given="device_session", setup="raise ValueError", teardown=""
            ),
            given=", theirs",
        ),
        status=1,
    ),
    Row(
        "another fixture fails in its teardown, before ours",
        "Stopped.",
        suite(
            before=_THEIRS.format(
                given="device_session", setup="", teardown="raise ValueError"
            ),
            given=", theirs",
        ),
        status=1,
    ),
    Row(
        "another fixture fails in its teardown, after ours",
        "Stopped.",
        suite(
            before=_THEIRS.format(given="", setup="", teardown="raise ValueError"),
            marks='@pytest.mark.usefixtures("theirs")',
        ),
        status=1,
    ),
    Row(
        "another fixture hangs in its teardown, and SIGTERM",
        "The signal ends that fixture; then ours stops the session.",
        suite(
            before=_THEIRS.format(given="device_session", setup="", teardown="hold()"),
            given=", theirs",
        ),
        when=in_test,
        fault=sends(TERM),
        status=143,
    ),
    Row(
        "Ctrl-C in the setup of another fixture",
        "Stopped.",
        suite(
            before=_THEIRS.format(given="device_session", setup="hold()", teardown=""),
            given=", theirs",
        ),
        when=in_test,
        fault=sends(INT),
        status=2,
    ),
    Row(
        "a test is skipped after its session is ready",
        "Stopped.",
        suite("pytest.skip('not today')"),
        status=0,
    ),
    Row(
        "output capturing and the terminal reporter are disabled",
        "Stopped, without any output.",
        PASSES,
        options=("-s", "-p", "no:terminal"),
        reported=NOBODY,
        status=0,
    ),
)
