"""Rows that the gate leaves to the night, below a row of the gate that takes the same way through the code."""

from collections.abc import Mapping
from typing import Final

COVERED: Final[Mapping[str, tuple[str, ...]]] = {
    # One handler for both signals and for each repetition. Each signal has a row of its own, alone and with workers.
    "Ctrl-C three times while the stop is slow": (
        "Ctrl-C twice in a test",
        "Ctrl-C twice inside stop",
    ),
    "Ctrl-C inside create": ("SIGTERM inside create",),
    "SIGTERM inside stop": ("Ctrl-C inside stop",),
    "SIGTERM while a shared session is idle": (
        "Ctrl-C while a shared session is idle",
    ),
    "Ctrl-C while the next device boots in advance": (
        "SIGTERM while the next device boots in advance",
    ),
    # The same interrupt of a setup, or of a test with the same devices.
    "Ctrl-C while the device boots": (
        "Ctrl-C in the setup of another fixture",
        "Ctrl-C while a boot is retried",
    ),
    "Ctrl-C while two devices boot": ("Ctrl-C while a test has two devices",),
    "Ctrl-C in a test": ("a thread of a test interrupts the main one",),
    "pytest.exit in a test": ("pytest.exit in the setup of another fixture",),
    # A shell that ends says nothing to its pytest; a signal for both is one for pytest.
    "SIGTERM of a shell that runs pytest and something after it, then SIGKILL of its process group": (
        "the shell that runs pytest is killed",
    ),
    "SIGTERM in a test": ("SIGTERM for a shell and the pytest that it runs",),
    # The reaper only learns that the run has ended: neither how, nor what it did.
    "SIGKILL of the whole process group": (
        "SIGKILL of pytest",
        "SIGSTOP in a test, then SIGKILL",
    ),
    "SIGKILL while two devices boot": ("SIGKILL while the device boots",),
    "SIGKILL inside create": ("create responds after SIGTERM and SIGKILL",),
    "SIGKILL inside stop": ("stop is slow to arrive, and SIGKILL meanwhile",),
    "SIGKILL while a shared session is idle": (
        "a test with a shared session ends its process",
    ),
    "a device_lease session, and SIGKILL": (
        "a device_lease session, and a test that ends its process",
    ),
    "os._exit in a test": ("os._exit in the teardown of another fixture",),
    "a CI job is cancelled: INT, TERM and KILL within 2 s": (
        "SIGTERM, and SIGKILL 0.1 s later",
    ),
    "SIGKILL of the process group with two workers": (
        "a CI job with two workers is cancelled: INT, TERM and KILL within 2 s",
    ),
    # Busy workers react sooner; each crash is handled like the first.
    "Ctrl-C with two workers whose tests sleep": ("Ctrl-C with two workers",),
    "SIGKILL of a worker, which is replaced": (
        "workers crash until the restart limit",
    ),
    "SIGSTOP for longer than the timeouts, then SIGCONT": (
        "SIGSTOP of all processes for 3 s, then SIGCONT, with two workers",
    ),
    # pytest ends in the same way, or our fixture has less to do.
    "an internal error while a report is created": (
        "an internal error while a result is shown",
    ),
    "-x": ("--maxfail=2",),
    "another fixture fails in its setup, after ours": (
        "another fixture fails in its setup, before ours",
    ),
    "another fixture fails in its teardown, before ours": (
        "another fixture fails in its teardown, after ours",
    ),
    "a child of multiprocessing ends": ("a forked child ends",),
    # The timer is paused for both methods; the harder one ends the process.
    "pytest-timeout (signal) while the device boots": (
        "pytest-timeout (thread) while the device boots",
    ),
    "pytest-timeout (thread) inside stop": ("pytest-timeout (signal) inside stop",),
    # A call that failed without a response: retried, or lost for good.
    "the network is down for 10 s at teardown": (
        "the network is down for 1 s at teardown",
        "the network is down for 30 s at teardown",
    ),
    "stop is reset twice before it takes effect": (
        "stop takes effect, then the connection is reset",
        "the network resets all connections for 3 s at teardown",
    ),
    "create takes effect, then the connection is reset": (
        "the connection is reset before create takes effect",
        "create returns the first bytes of a response",
    ),
    "create responds after its test has given up, before the end of the run": (
        "create responds 2 s after the run has given up",
    ),
    # A call has one limit, whether some bytes arrive or none.
    "create responds byte by byte": (
        "create takes effect and never responds",
        "stop responds byte by byte",
    ),
    "stop never responds, nor was it carried out": ("stop never responds",),
    # Responses of one class: `sessions/test_retry_policy` has the table of statuses.
    "create returns a gateway's page with 503, twice, during a deployment": (
        "create returns 503",
    ),
    "create returns a gateway's page with 404, twice": (
        "a firewall answers two create calls with 403 and its own page",
    ),
    "stop returns 500, three times": (
        "stop returns 429, twice",
        "stop returns 409 because the device still boots",
        "a firewall answers one stop with 403 and its own page",
    ),
    "stop returns 500 although it stopped the session, every time": (
        "stop returns 204",
    ),
    "stop returns a login page": ("stop returns bytes that are not text",),
    "the session reaches its limit in a test": ("the session fails in a test",),
    # The reaper reads the responses to create and stop alike; the run itself those to get.
    "create returns an endless body": (
        "stop returns an endless body",
        "stop returns 10 MB",
    ),
    "get returns an endless body": ("get returns 10 MB",),
    "create redirects forever": ("stop redirects twice",),
    # A ledger without a place, from the beginning or from a moment on.
    "the state directory can't be created": ("the state directory's path is a file",),
    "the file system has no locks": ("the file system has no inodes left",),
    "the disk is full": ("the disk becomes full in a test",),
    "the state directory becomes a file before the second create call": (
        "the state directory becomes a file during the run",
        "the state directory is removed during the run",
    ),
    "the machine's clock is set back by a day in a test": (
        "the machine's clock is set forward by a day in a test",
    ),
    # One sweep, with one or several sessions, by the next run or by the command.
    "a container is killed with two workers, in a suite that freezes uuid, random and the wall clock": (
        "a container is killed with two workers",
    ),
    "the next run after a killed container has a new access token of the account": (
        "`pytest-device stop` with a new access token of the account after a killed container",
    ),
    "the next run after a killed container has an access token of another account": (
        "`pytest-device stop` with an access token of another account after a killed container",
    ),
    "a ledger file is damaged": (
        "a container is killed, and its state directory is lost",
    ),
    "two concurrent runs share a state directory": (
        "five concurrent runs share a state directory",
    ),
    "a kept session, and the next run": ("a failed test's session is kept",),
    "the reaper is killed in a test": ("the reaper is killed in a test, and Ctrl-C",),
    "the reaper is disabled, and SIGKILL": (
        "the reaper is disabled, and pytest-timeout (thread)",
    ),
}
NIGHTLY: Final = frozenset(row for rows in COVERED.values() for row in rows)
