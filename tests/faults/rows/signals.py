"""Rows: signals to the run from people, terminals and CI services."""

import os
import subprocess
import sys
from typing import Final

from tests.faults import processes
from tests.faults.acts import (
    HUP,
    INT,
    KILL,
    QUIT,
    TERM,
    at_once,
    in_test,
    sends,
    sends_group,
    slow,
    touches,
)
from tests.faults.row import NOBODY, Row
from tests.faults.row_environment import LEAN, RowEnvironment
from tests.faults.suites import HOLDS, suite

_LOGIN: Final = "import os, sys; os.login_tty(0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
"""Makes the terminal on standard input the controlling terminal."""
_WAITS: Final = "reached()\nwhile not (DIRECTORY / 'go').exists(): time.sleep(0.05)"
_PYTEST: Final = ("-m", "pytest", *LEAN)


def _on_a_terminal(env: RowEnvironment) -> None:
    """Start the run on its own terminal and close it during a test."""
    env.write_suite()
    ours, theirs = os.openpty()
    try:
        env.launch(
            [sys.executable, "-c", _LOGIN, *_PYTEST], stdin=theirs, process_group=None
        )
        os.close(theirs)
        env.wait_reached()
    finally:
        env.strike()
        os.close(ours)


def _into_a_pipe(env: RowEnvironment) -> None:
    """Start the run with a pipe whose reader exits during a test."""
    run = env.start("-v", stdout=subprocess.PIPE)
    assert run.stdout
    with run.stdout:
        env.wait_reached()
    env.strike()
    touches("go")(env)


def _under_a_shell(env: RowEnvironment) -> None:
    env.write_suite()
    env.launch(["bash", "-c", f"{sys.executable} {' '.join(_PYTEST)}; echo and so on"])


_WAITS_AT_THE_END: Final = """
    @pytest.fixture
    def waits_at_the_end(device_session, device_client):
        yield
        end = time.monotonic() + 60
        while device_client.get(device_session.id).status != "stopped":
            if time.monotonic() > end: os._exit(3)
            time.sleep(0.05)
    """
_FAILS_AT_THE_END: Final = """
    @pytest.fixture
    def fails_at_the_end(device_session):
        yield
        raise OSError("the device is gone")
    """


def _as_a_program(env: RowEnvironment) -> None:
    """Start pytest by its interpreter: the system shows a fork with the environment variables of the first process."""
    env.start(executable=sys.executable)


def _kill_the_job(env: RowEnvironment) -> None:
    env.strike()
    for process in env.processes():
        if processes.has_variable(process, "FAULT_DIRECTORY"):
            process.kill()


def _killed_into_a_pipe(env: RowEnvironment) -> None:
    """Kill a run while its stop can't be sent, and check that its output ends with it."""
    run = env.start(stdout=subprocess.PIPE)
    assert run.stdout
    with run.stdout as output:
        os.set_blocking(output.fileno(), False)  # it takes no keywords
        env.wait_reached()
        env.send(KILL)
        env.wait_for(lambda: _has_ended(output.fileno()), "the end of the output", 2.0)


def _has_ended(pipe: int) -> bool:
    try:
        while os.read(pipe, 65536):
            pass
    except BlockingIOError:
        return False
    return True


ROWS: Final = (
    Row(
        "SIGTERM of a shell that runs pytest and something after it, then SIGKILL of its process group",
        "pytest gets no signal: `exec pytest` would replace the shell. The reaper stops the session.",
        HOLDS,
        start=_under_a_shell,
        when=in_test,
        # The shell may have ended.
        fault=at_once(sends(TERM), lambda env: env.send_group(KILL)),
        reported=NOBODY,
    ),
    Row(
        "Ctrl-C in a test",
        "Stopped; the receipt confirms it.",
        HOLDS,
        when=in_test,
        fault=sends(INT),
        status=2,
    ),
    Row(
        "Ctrl-C twice in a test",
        "The second Ctrl-C doesn't prevent the stop.",
        HOLDS,
        when=in_test,
        fault=sends(INT, INT, pause=0.05),
    ),
    Row(
        "Ctrl-C three times while the stop is slow",
        "The extra Ctrl-C is recorded; the stop continues.",
        HOLDS,
        arm=slow("stop"),
        when=in_test,
        fault=sends(INT, INT, INT),
    ),
    Row(
        "Ctrl-C six times while the stop is slow",
        "The fourth ends the run at once, without a receipt. The reaper stops the session.",
        HOLDS,
        arm=slow("stop", 4.0),
        when=in_test,
        fault=sends(*[INT] * 6),
        reported=NOBODY,
    ),
    Row(
        "SIGTERM in a test",
        "Like Ctrl-C, with the exit code that shells expect.",
        HOLDS,
        when=in_test,
        fault=sends(TERM),
        status=143,
    ),
    Row(
        "SIGTERM while a fixture waits for the end of the session",
        "The stop call doesn't wait for the teardown of the tests.",
        suite("hold()", given=", waits_at_the_end", conftest=_WAITS_AT_THE_END),
        when=in_test,
        fault=sends(TERM),
        status=143,
    ),
    Row(
        "SIGTERM, and a fixture that fails in its teardown",
        "The receipt still confirms the stop.",
        suite("hold()", given=", fails_at_the_end", conftest=_FAILS_AT_THE_END),
        when=in_test,
        fault=sends(TERM),
    ),
    Row(
        "SIGHUP in a test",
        "Like SIGTERM.",
        HOLDS,
        when=in_test,
        fault=sends(HUP),
        status=129,
    ),
    Row(
        "SIGHUP under nohup",
        "An ignored signal stays ignored: the run continues to its end.",
        suite(_WAITS, conftest="signal.signal(signal.SIGHUP, signal.SIG_IGN)"),
        when=in_test,
        fault=at_once(sends(HUP), touches("go")),
        status=0,
    ),
    Row(
        "SIGTERM in a test that catches every exception",
        "The test may continue for a while; the session ends with it.",
        suite("try: hold()\nexcept BaseException: pass"),
        when=in_test,
        fault=sends(TERM),
        status=143,
    ),
    Row(
        "SIGQUIT in a test",
        "The run dies at once without output; the session is still stopped.",
        HOLDS,
        when=in_test,
        fault=sends(QUIT),
        reported=NOBODY,
        status=-3,
    ),
    Row(
        "SIGKILL of pytest",
        "The reaper stops the session within seconds.",
        HOLDS,
        when=in_test,
        fault=sends(KILL),
        reported=NOBODY,
        status=-9,
    ),
    Row(
        "SIGKILL of the whole process group",
        "The same: the reaper runs in a process session of its own.",
        HOLDS,
        when=in_test,
        fault=sends_group(KILL),
        reported=NOBODY,
        status=-9,
    ),
    Row(
        "SIGKILL of pytest while another process reads its output",
        "The reaper doesn't keep the output open: a CI step that reads it ends with the run.",
        HOLDS,
        arm=slow("stop", 3.0),
        start=_killed_into_a_pipe,
        reported=NOBODY,
        status=-9,
    ),
    Row(
        "a CI job is cancelled: INT, TERM and KILL within 2 s",
        "Stopped, however far the run gets.",
        HOLDS,
        arm=slow("stop", 3.0),
        when=in_test,
        fault=sends_group(INT, TERM, KILL, pause=0.9),
        reported=NOBODY,
    ),
    Row(
        "SIGTERM, and SIGKILL 0.1 s later",
        "The same with hardly any time.",
        HOLDS,
        when=in_test,
        fault=sends_group(TERM, KILL, pause=0.1),
        reported=NOBODY,
    ),
    Row(
        "CI kills every process with the job's environment variable",
        "The reaper doesn't have the variable. A CI service that ends a whole container is another row.",
        HOLDS,
        start=_as_a_program,
        when=in_test,
        fault=_kill_the_job,
        reported=NOBODY,
        status=-9,
    ),
    Row(
        "the shell that runs pytest is killed",
        "pytest doesn't notice and runs to its end.",
        suite(_WAITS),
        start=_under_a_shell,
        when=in_test,
        fault=at_once(sends(KILL), touches("go")),
    ),
    Row(
        "SIGTERM for a shell and the pytest that it runs",
        "Like SIGTERM for pytest alone.",
        HOLDS,
        start=_under_a_shell,
        when=in_test,
        fault=sends_group(TERM),
    ),
    Row(
        "the terminal is closed, its output with it",
        "Stopped; nobody can read the receipt.",
        HOLDS,
        start=_on_a_terminal,
        reported=NOBODY,
    ),
    Row(
        "the reader of the output exits (`pytest | head`)",
        "Stopped; output into the closed pipe is lost.",
        suite(_WAITS),
        start=_into_a_pipe,
        reported=NOBODY,
    ),
)
