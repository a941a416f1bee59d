"""What only Windows has: job objects that end a run, and the pipe of a browser."""

import pytest

from tests.platforms.suite import Suite
from tests.platforms.test_runs import STOP_SECONDS
from tests.waiting import eventually

pytestmark = pytest.mark.parametrize(
    "python",
    [pytest.param("windows", marks=pytest.mark.windows)],
    indirect=True,
)

STAYS = """
import pathlib, time

import pytest

@pytest.mark.device(platform="android")
def test_it(device_session):
    pathlib.Path("ready").touch()
    time.sleep(600)
"""
PASSES = """
import pytest

@pytest.mark.device(platform="android")
def test_it(device_session):
    assert device_session.id
"""

IN_A_JOB = """
import ctypes, pathlib, subprocess, sys, time

from pytest_device.platforms import windows

allows_leaving, ends = sys.argv[1:]
kernel = windows._kernel
job = kernel.CreateJobObjectW(None, None)
limits = windows._JobLimits()
limits.basic.flags = 0x2000 | (0x800 if allows_leaving == "yes" else 0)
assert kernel.SetInformationJobObject(job, 9, ctypes.byref(limits), ctypes.sizeof(limits))

run = subprocess.Popen([sys.executable, "-m", "pytest"])
assert kernel.AssignProcessToJobObject(job, int(run._handle))
while not pathlib.Path("ready").exists():
    assert run.poll() is None
    time.sleep(0.1)

if ends == "job":
    kernel.CloseHandle(job)
else:
    run.kill()
    # The end of this process closes the job, too: not before the reaper is done.
    counts = (ctypes.c_uint32 * 12)()
    while kernel.QueryInformationJobObject(
        ctypes.c_void_p(job), 1, ctypes.byref(counts), ctypes.sizeof(counts), None
    ) and counts[10]:
        time.sleep(0.1)
run.wait()
"""
"""A CI service: runs pytest in a job object that ends its processes once it is closed."""

BROWSER = """
import os, msvcrt, sys

numbers = sys.argv[-1].removeprefix("--remote-debugging-io-pipes=").split(",")
commands, answers = (msvcrt.open_osfhandle(int(number), 0) for number in numbers)
print("a line for the log", file=sys.stderr, flush=True)
while command := os.read(commands, 100):
    os.write(answers, b"answer to " + command)
"""
WITH_A_BROWSER = """
import subprocess, sys
from pytest_device.platforms import SYSTEM

with subprocess.Popen(
    SYSTEM.browser_command([sys.executable, "browser.py"]),
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    bufsize=0,
    creationflags=SYSTEM.creation_flags,
) as browser:
    browser.stdin.write(b"a command")
    print(browser.stdout.read(100).decode())
    if sys.argv[1] == "pipe":
        browser.stdin.close()
    else:
        browser.kill()
    print(browser.stderr.read().decode())
    browser.wait()
    print("group:", SYSTEM.has_group(browser.pid))
"""


@pytest.mark.parametrize(
    ("allows_leaving", "ends"), [("yes", "job"), ("no", "process")]
)
def test_the_reaper_survives_the_end_of_a_run_in_a_job_object(
    suite: Suite, allows_leaving: str, ends: str
) -> None:
    suite.write("test_it.py", STAYS)

    run = suite.python("-c", IN_A_JOB, allows_leaving, ends)

    assert eventually(lambda: suite.service.statuses() == ["stopped"], STOP_SECONDS), (
        run.output
    )
    is_warned = "the reaper process is in the job object" in run.output
    assert is_warned == (allows_leaving == "no")


def test_a_job_object_that_nothing_may_leave_ends_the_reaper_and_the_next_run_stops_its_session(
    suite: Suite,
) -> None:
    suite.write("test_it.py", STAYS)

    run = suite.python("-c", IN_A_JOB, "no", "job")

    assert "the next run stops the sessions that are left" in run.output
    assert suite.service.statuses() == ["in-progress"]
    suite.write("test_it.py", PASSES)
    assert suite.pytest().status == 0
    assert suite.service.statuses() == ["stopped", "stopped"]


@pytest.mark.parametrize("end", ["pipe", "process"])
def test_a_browser_has_its_debugging_pipe_and_ends_with_it(
    suite: Suite, end: str
) -> None:
    suite.write("browser.py", BROWSER)

    run = suite.python("-c", WITH_A_BROWSER, end)

    assert run.status == 0, run.output
    lines = [line for line in run.output.splitlines() if line.strip()]
    assert lines == ["answer to a command", "a line for the log", "group: False"]


@pytest.mark.parametrize(
    ("shell", "quote"),
    [({"PROMPT": "$P$G"}, '"'), ({}, "'")],
    ids=["cmd.exe", "PowerShell"],
)
def test_a_failure_names_the_command_that_opens_its_trace_for_the_users_shell(
    suite: Suite, shell: dict[str, str], quote: str
) -> None:
    suite.write("test_it.py", PASSES.replace("device_session.id", "not device_session"))

    run = suite.pytest("--device-artifacts-dir=the traces", **shell)

    assert run.status == 1, run.output
    (line,) = [line for line in run.output.splitlines() if line.startswith("open it: ")]
    path = line.removeprefix("open it: pytest-device trace open ")
    assert path.startswith(f"{quote}the traces\\")
    assert path.endswith(f"\\trace.zip{quote}")
