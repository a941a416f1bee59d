"""What the command line says about the system, in words of that system."""

import re

import pytest

from tests.platforms.suite import Suite
from tests.platforms.test_runs import TWO_PLATFORMS

WINDOWS = pytest.mark.windows
ARM64 = pytest.mark.arm64


@pytest.mark.parametrize(
    ("python", "line"),
    [
        pytest.param(
            "windows", r"Windows \(AMD64\): supported in part; ", marks=WINDOWS
        ),
        pytest.param("arm64", r"Linux \(aarch64\): supported", marks=ARM64),
        pytest.param(
            "macos_like",
            r"macOS \(\w+\): supported in part; ",
            marks=pytest.mark.nightly,
        ),
    ],
    indirect=["python"],
)
def test_doctor_says_how_far_the_system_is_supported(suite: Suite, line: str) -> None:
    assert re.search(line, suite.command("doctor").output)


@pytest.mark.parametrize("python", [pytest.param("arm64", marks=ARM64)], indirect=True)
def test_on_arm_the_packages_of_the_distribution_are_named(suite: Suite) -> None:
    suite.write("test_it.py", TWO_PLATFORMS)

    run = suite.pytest("--device-local", PATH="")

    (line,) = [line for line in run.output.splitlines() if "ERROR" in line]
    assert "no Chromium is on PATH, chromedriver is not on PATH" in line
    assert line.endswith(": apt-get install chromium chromium-driver")


@pytest.mark.parametrize(
    "python", [pytest.param("windows", marks=WINDOWS)], indirect=True
)
@pytest.mark.parametrize(
    ("environ", "line"),
    [
        ({"PROMPT": "$P$G"}, 'cd /d "my suite" && pytest'),
        ({}, "cd 'my suite'; pytest"),
    ],
    ids=["cmd.exe", "PowerShell"],
)
def test_init_prints_a_line_for_the_users_shell(
    suite: Suite, environ: dict[str, str], line: str
) -> None:
    init = suite.command("init", "my suite", **environ)

    assert init.output.strip().splitlines()[-1] == f"Run the tests: {line}"
