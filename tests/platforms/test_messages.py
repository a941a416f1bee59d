"""What the command line says about the system, in words of that system."""

import pytest

from tests.platforms.suite import Suite
from tests.platforms.test_runs import TWO_PLATFORMS

WINDOWS = pytest.param("windows", marks=pytest.mark.windows)
ARM64 = pytest.param("arm64", marks=pytest.mark.arm64)


@pytest.mark.parametrize("python", [WINDOWS], indirect=True)
def test_doctor_says_how_far_windows_is_supported(suite: Suite) -> None:
    assert "Windows (AMD64): supported in part; " in suite.command("doctor").output


@pytest.mark.parametrize("python", [ARM64], indirect=True)
def test_doctor_names_the_processor(suite: Suite) -> None:
    assert "Linux (aarch64): supported" in suite.command("doctor").output


@pytest.mark.parametrize("python", [ARM64], indirect=True)
def test_on_arm_the_packages_of_the_distribution_are_named(suite: Suite) -> None:
    suite.write("test_it.py", TWO_PLATFORMS)

    run = suite.pytest("--device-local", PATH="")

    (line,) = [line for line in run.output.splitlines() if "ERROR" in line]
    assert "no Chromium is on PATH, chromedriver is not on PATH" in line
    assert line.endswith(": apt-get install chromium chromium-driver")


@pytest.mark.parametrize("python", [WINDOWS], indirect=True)
@pytest.mark.parametrize(
    ("environ", "line"),
    [
        ({"PROMPT": "$P$G"}, 'cd /d "my suite" && pytest --device-local'),
        ({}, "cd 'my suite'; pytest --device-local"),
    ],
    ids=["cmd.exe", "PowerShell"],
)
def test_init_prints_a_line_for_the_users_shell(
    suite: Suite, environ: dict[str, str], line: str
) -> None:
    init = suite.command("init", "my suite", **environ)

    assert init.output.strip().splitlines()[-1] == f"Run the tests: {line}"
