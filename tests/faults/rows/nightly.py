"""Rows that the gate leaves to the night, below a row of the gate that takes the same way through the code."""

from collections.abc import Mapping
from typing import Final

COVERED: Final[Mapping[str, tuple[str, ...]]] = {
    # One handler for all signals and for each repetition. A run alone has a row for each signal; a coordinator only for
    # SIGTERM, which its workers get for any of them.
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
    "SIGTERM of the coordinator": (
        "SIGINT of the coordinator alone",
        "SIGHUP of the coordinator",
    ),
    # The end of a terminal is SIGHUP, and output that nobody reads.
    "SIGHUP in a test": ("the terminal is closed, its output with it",),
    # The stop comes before any teardown of the suite, whatever that does.
    "SIGTERM while a fixture waits for the end of the session": (
        "SIGTERM, and a fixture that fails in its teardown",
    ),
    # The same interrupt of a setup, or of a test with the same devices.
    "Ctrl-C while the device boots": (
        "Ctrl-C in the setup of another fixture",
        "Ctrl-C while a boot is retried",
    ),
    "Ctrl-C while two devices boot": (
        "Ctrl-C while a test has two devices",
        "SIGTERM inside the create call of the second device",
    ),
    "Ctrl-C in a test": (
        "a thread of a test interrupts the main one",
        "KeyboardInterrupt raised by a test",
    ),
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
    # A process that dies without Python's cleanup looks the same from outside.
    "a segmentation fault": ("an abort of a C library",),
    "a worker crashes and is not replaced": (
        "a segmentation fault in a worker",
        "pytest-timeout (thread) in a worker",
    ),
    # pytest-xdist kills a worker that does not end in time, whatever it waits for.
    "a worker's stop takes longer than pytest-xdist waits": (
        "a worker is suspended (SIGSTOP) during SIGTERM of the coordinator",
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
    "an internal error at the end of the run": (
        "an internal error while pytest shuts down",
    ),
    "-x": ("--maxfail=2",),
    "sys.exit in a test": (
        "sys.exit in a thread of a test",
        "a test is skipped after its session is ready",
    ),
    "another fixture fails in its setup, after ours": (
        "another fixture fails in its setup, before ours",
        "an internal error during the setup of a test",
    ),
    "another fixture fails in its teardown, before ours": (
        "another fixture fails in its teardown, after ours",
    ),
    "a child of multiprocessing ends": ("a forked child ends",),
    # Each worker stops its own sessions at its end. `plugin/test_hooks` has the hook without workers.
    "a worker's last stop returns 503 for a while": (
        "workers hold shared sessions until their end",
    ),
    "pytest_device_stopping raises at a worker's end": (
        "pytest_device_stopping raises",
    ),
    # `peers/test_reruns` has shared devices, and those that fail to start.
    "pytest-rerunfailures repeats a failed test": (
        "a test is repeated after its failure",
        "pytest-rerunfailures and a session that fails before it is ready",
    ),
    # The timer is paused for both methods; the harder one ends the process.
    "pytest-timeout (signal) while the device boots": (
        "pytest-timeout (thread) while the device boots",
    ),
    "pytest-timeout (thread) inside stop": ("pytest-timeout (signal) inside stop",),
    "pytest-timeout (signal) inside a test's own create call": (
        "pytest-timeout (thread) inside a test's own create call",
    ),
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
    # A poll that failed: repeated until the wait timeout. `sessions/test_retry_policy` has the statuses.
    "the network is down while the device boots": (
        "every response is cut in half while the device boots",
        "the device never boots",
    ),
    "get returns 500, five times": ("get returns a page of HTML, then 404",),
    "get returns 401 from now on": ("get returns 401, twice",),
    # A call has one limit, whether some bytes arrive or none.
    "create responds byte by byte": (
        "create takes effect and never responds",
        "stop responds byte by byte",
    ),
    "stop never responds, nor was it carried out": ("stop never responds",),
    # Responses of one class: `sessions/test_retry_policy` has the table of statuses.
    "create returns a gateway's page with 503, twice, during a deployment": (
        "create returns 503",
        "create returns 504 although it took effect",
        "two create calls lose their responses",
    ),
    "create returns 401 from the second call on": (
        "create returns 401, twice, to a token that has worked",
    ),
    "create returns a gateway's page with 404, twice": (
        "create returns 429, twice",
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
    "the service does not know the session for a while": (
        "an ingress returns its own page with 404 during a deployment",
        "stop returns 404 although it stopped the session",
    ),
    "stop returns a login page": (
        "stop returns bytes that are not text",
        "stop returns half of a response",
    ),
    "stop returns a session that still runs": (
        "stop returns another session's ID, twice",
    ),
    "negative durations and impossible times": (
        "the service's clock is a century ahead",
    ),
    "the session reaches its limit in a test": ("the session fails in a test",),
    # The reaper reads the responses to create and stop alike; the run itself those to get.
    "create returns an endless body": (
        "stop returns an endless body",
        "stop returns 10 MB",
        "create returns 10 MB",
    ),
    "get returns an endless body": (
        "get returns 10 MB",
        "get returns endless headers",
        "get responds byte by byte",
    ),
    # A response without a usable ID; `fuzz/test_replies` has the nesting.
    "create returns an invalid ID": ("create returns JSON 50,000 levels deep",),
    # `sessions/test_client` has the client of get, `sessions/test_reaper_http` that of create and stop.
    "create redirects forever": ("stop redirects twice", "get redirects forever"),
    # A ledger without a place, from the beginning or from a moment on.
    "the state directory can't be created": ("the state directory's path is a file",),
    "the file system has no locks": ("the file system has no inodes left",),
    "the disk is full": ("the disk becomes full in a test",),
    "the state directory becomes a file before the second create call": (
        "the state directory becomes a file during the run",
        "the state directory is removed during the run",
    ),
    "the disk is full, with --device-require-ledger": (
        "the state directory becomes a file before the second create call, with --device-require-ledger",
    ),
    "the machine's clock is set back by a day while the device boots": (
        "the machine's clock is set back by a day in a test",
        "the machine's clock is set forward by a day in a test",
    ),
    "the test suite freezes every clock": (
        "every clock jumps back by an hour in a test",
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
        "a run ends while another one holds its session",
    ),
    "a kept session, and the next run": ("a failed test's session is kept",),
    "the reaper is killed in a test": (
        "the reaper is killed in a test, and Ctrl-C",
        "the reaper is killed twice",
    ),
    "the reaper is disabled": ("the reaper is disabled, and SIGTERM",),
    "the reaper is disabled, and SIGKILL": (
        "the reaper is disabled, and pytest-timeout (thread)",
    ),
}
NIGHTLY: Final = frozenset(row for rows in COVERED.values() for row in rows)
