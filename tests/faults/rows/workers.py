"""Rows: pytest-xdist, its coordinator and its workers."""

from typing import Final

from tests.faults.acts import (
    CONT,
    HUP,
    INT,
    KILL,
    SLOW_SECONDS,
    STOP,
    TERM,
    at_once,
    in_test,
    in_two_tests,
    inside,
    network_strikes,
    sends,
    sends_group,
    sends_worker,
    slow,
    trick,
    waits,
)
from tests.faults.network import late
from tests.faults.row import NOBODY, NONE_KEPT_OR_UNKNOWN, Row, stopped
from tests.faults.suites import HOLDS, PASSES, many, suite

_ONE: Final = ("-n1",)
_TWO: Final = ("-n2",)
_HOLD_TWO: Final = many(2, "hold()")
_DIES_ONCE: Final = """
died = DIRECTORY / "died"
if not died.exists():
    died.touch()
    reached()
    {how}
"""
ROWS: Final = (
    Row(
        "SIGKILL of a worker, which is replaced",
        "Its session is stopped; the run continues with another worker.",
        suite(
            _DIES_ONCE.format(how="hold()"),
            marks='@pytest.mark.parametrize("n", range(2))',
            given=", n",
        ),
        options=_ONE,
        fault=sends_worker(KILL),
        reported=stopped(2),
        sessions=2,
        status=1,
    ),
    Row(
        "a worker crashes and is not replaced",
        "Stopped.",
        suite("reached()\nos._exit(3)"),
        options=(*_ONE, "--max-worker-restart=0"),
        status=1,
    ),
    Row(
        "workers crash until the restart limit",
        "All sessions of all workers are stopped.",
        many(4, "reached()\nos._exit(3)"),
        options=(*_ONE, "--max-worker-restart=1"),
        reported=stopped(2),
        sessions=2,
        status=1,
    ),
    Row(
        "a segmentation fault in a worker",
        "Stopped.",
        suite("reached()\nctypes.string_at(0)"),
        options=(*_ONE, "--max-worker-restart=0"),
        status=1,
    ),
    Row(
        "SIGKILL of a worker inside create",
        "Stopped; the receipt may lack a session that no test report mentions.",
        PASSES,
        options=(*_ONE, "--max-worker-restart=0"),
        network=True,
        arm=trick("create", late(SLOW_SECONDS)),
        when=network_strikes,
        fault=lambda env: env.send_to(env.worker(), KILL),
        reported="crashed",
        status=1,
    ),
    Row(
        "SIGTERM of a worker",
        "The worker ends gracefully and its session is stopped; the run continues or ends.",
        HOLDS,
        options=(*_ONE, "--max-worker-restart=0"),
        fault=sends_worker(TERM),
    ),
    Row(
        "Ctrl-C with two workers",
        "Both sessions are stopped and in the receipt.",
        _HOLD_TWO,
        options=_TWO,
        when=in_two_tests,
        fault=sends_group(INT),
        reported=stopped(2),
        sessions=2,
        status=2,
    ),
    Row(
        "Ctrl-C with two workers whose tests sleep",
        "The same: their main threads notice, although a second signal follows the first one.",
        many(2, "reached()\ntime.sleep(60)"),
        options=_TWO,
        when=in_two_tests,
        fault=sends_group(INT),
        reported=stopped(2),
        sessions=2,
        status=2,
    ),
    Row(
        "SIGINT of the coordinator alone",
        "The same.",
        _HOLD_TWO,
        options=_TWO,
        when=in_two_tests,
        fault=sends(INT),
        reported=stopped(2),
        sessions=2,
        status=2,
    ),
    Row(
        "SIGTERM of the coordinator",
        "It forwards the signal to its workers.",
        _HOLD_TWO,
        options=_TWO,
        when=in_two_tests,
        fault=sends(TERM),
        reported=stopped(2),
        sessions=2,
        status=143,
    ),
    Row(
        "SIGHUP of the coordinator",
        "The same.",
        _HOLD_TWO,
        options=_TWO,
        when=in_two_tests,
        fault=sends(HUP),
        reported=stopped(2),
        sessions=2,
        status=129,
    ),
    Row(
        "SIGKILL of the coordinator",
        "Stopped at once, although the workers continue for a while.",
        _HOLD_TWO,
        options=_TWO,
        when=in_two_tests,
        fault=sends(KILL),
        reported=NOBODY,
        sessions=2,
        status=-9,
    ),
    Row(
        "SIGKILL of the process group with two workers",
        "Stopped: each worker has its own reaper.",
        _HOLD_TWO,
        options=_TWO,
        when=in_two_tests,
        fault=sends_group(KILL),
        reported=NOBODY,
        sessions=2,
        status=-9,
    ),
    Row(
        "a CI job with two workers is cancelled: INT, TERM and KILL within 2 s",
        "Stopped, however far the run gets.",
        _HOLD_TWO,
        options=_TWO,
        arm=slow("stop", 3.0),
        when=in_two_tests,
        fault=sends_group(INT, TERM, KILL, pause=0.9),
        reported=NOBODY,
        sessions=2,
    ),
    Row(
        "a worker's stop takes longer than pytest-xdist waits",
        "The worker is killed after about 10 s; its session is stopped and the run reports it.",
        PASSES,
        options=_ONE,
        arm=slow("stop", 13.0),
        when=inside("stop"),
        fault=sends(INT),
        reported=r"stopped \(confirmed\)",
        limit=40,
    ),
    Row(
        "a worker is suspended (SIGSTOP) during SIGTERM of the coordinator",
        "The coordinator kills it; its session is stopped.",
        HOLDS,
        options=_ONE,
        when=in_test,
        fault=at_once(sends_worker(STOP), sends(TERM), waits(13.0)),
        reported=NOBODY,
        limit=40,
    ),
    Row(
        "SIGSTOP of all processes for 3 s, then SIGCONT, with two workers",
        "The run continues as if nothing had happened.",
        many(2, "hold(1)"),
        options=_TWO,
        when=in_two_tests,
        fault=at_once(sends_group(STOP), waits(3.0), sends_group(CONT)),
        reported=stopped(2),
        sessions=2,
        status=0,
    ),
    Row(
        "-x with two workers",
        "The other worker's session is stopped too.",
        many(6, "time.sleep(0.2)\nassert n"),
        options=(*_TWO, "-x"),
        reported=rf"(\d) created, \1 stopped \(confirmed\){NONE_KEPT_OR_UNKNOWN}",
        status=2,
    ),
    Row(
        "an internal error in a worker",
        "Stopped.",
        suite(
            conftest="""
            def pytest_runtest_logreport(report):
                if "PYTEST_XDIST_WORKER" in os.environ: raise RuntimeError("a hook of the suite")
            """
        ),
        options=_ONE,
        reported=NOBODY,
    ),
)
