"""Rows: what is taken from the device of a failed test, and its trace, when the device or the machine fails."""

from typing import Final

from tests.faults.acts import KILL, at_once, in_test, sends, service_fault
from tests.faults.row import Act, Row
from tests.faults.row_environment import RowEnvironment
from tests.faults.suites import files, suite

_GO: Final = "while not (DIRECTORY / 'go').exists(): time.sleep(0.05)"
_FAILS: Final = files(
    f"""
    @pytest.mark.device(platform="android")
    def test_fails(device_agent_device):
        reached()
        {_GO}
        assert False
    """
)
_DIED: Final = "no screenshot.png of the device: the agent-device daemon "
_HANGS_SECONDS: Final = 600.0
"""Longer than the evidence of a test may take."""

_FULL: Final = suite(
    """
    import resource
    from pytest_device import device_step
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    reached()
    try:
        with device_step("the disk is full"): pass
        assert False
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    """
)
_STEPS: Final = suite(
    """
    from pytest_device import device_step
    with device_step("last words"): hold()
    """
)
_MAKES_THE_TRACE: Final = suite(
    """
    import zipfile
    (trace,) = pathlib.Path().glob("device-artifacts/*/trace.zip")
    with zipfile.ZipFile(trace) as archive:
        assert b"last words" in archive.read("test.trace")
    """
)


def _controller(effect: str, **options: float) -> Act:
    """Strike the controller of a test that goes on to fail."""
    strike = service_fault("controller", effect, times=None, **options)

    def act(env: RowEnvironment) -> None:
        env.strike()
        strike(env)
        (env.directory / "go").touch()

    return act


def _runs_again(env: RowEnvironment) -> None:
    """Run a test that finds the trace of the killed one, once its processes are gone."""
    env.wait_for(lambda: env.run.poll() is not None, "the killed run to exit")
    env.again(suite=_MAKES_THE_TRACE)


ROWS: Final = (
    Row(
        "the device dies while evidence is collected",
        "A line says what is missing; the test keeps its error.",
        _FAILS,
        when=in_test,
        fault=_controller("dead"),
        reported=_DIED,
        status=1,
    ),
    Row(
        "the controller hangs while evidence is collected",
        "Bounded: after 20 s the controller is asked nothing more; the test keeps its error.",
        _FAILS,
        when=in_test,
        fault=_controller("delay", seconds=_HANGS_SECONDS),
        reported=_DIED,
        status=1,
        limit=75.0,
    ),
    Row(
        "the disk is full while a trace is written",
        "The trace is left out, and a line says so; the test keeps its error.",
        _FULL,
        reported="cannot save artifacts",
        status=1,
    ),
    Row(
        "SIGKILL in the middle of a traced test",
        "Stopped by the reaper; the next run makes the trace from the lines that were written.",
        _STEPS,
        when=in_test,
        fault=at_once(sends(KILL), _runs_again),
        sessions=2,
    ),
)
