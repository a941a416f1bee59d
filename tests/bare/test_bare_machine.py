"""The README's first command and a first suite on a machine with Python alone; again without a network."""

import re
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.bare.bare_machine import BareMachine
from tests.bare.blocks import ROOT, commands_of_readme

# Everything is installed for a user who has nothing.
pytestmark = pytest.mark.timeout(1500)
EXAMPLES = commands_of_readme("python3 -m venv")[0]
AGAIN = EXAMPLES.rpartition(" && ")[2]
"""The part that is left to do a second time."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Generator[BareMachine]:
    directory = tmp_path_factory.mktemp("bare")
    try:
        yield BareMachine(directory)
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def clone(machine: BareMachine) -> Path:
    """A fresh clone of the last commit, in which the README's first command has been run."""
    clone = machine.directory / "clone"
    machine.run(
        f"git -c safe.directory='*' clone -q '{ROOT}' '{clone}'", machine.directory
    )
    assert_all_passed(machine.run(EXAMPLES, clone))
    return clone


def assert_all_passed(output: str) -> None:
    summary = output.split("= devices =")[1]
    assert re.search(r" passed(, \d+ deselected)? in ", summary)
    assert "skipped" not in summary
    assert "stopped (confirmed)" in summary


# The fixture has run all of them, with a network.
@pytest.mark.nightly
def test_all_examples_pass_again_without_a_network(
    machine: BareMachine, clone: Path
) -> None:
    assert_all_passed(machine.run(AGAIN, clone, online=False))


def test_the_examples_pass_and_the_suite_of_init_without_a_network_as_its_ci_jobs_run_it(
    machine: BareMachine, clone: Path
) -> None:
    programs = clone / ".venv" / "bin"
    suite = machine.directory / "suite"

    machine.run(
        f"'{programs}/pytest-device' init '{suite}'", machine.directory, online=False
    )
    jobs = [
        (suite / name).read_text()
        for name in (".github/workflows/device-tests.yml", ".gitlab-ci.yml")
    ]
    (command,) = {*re.findall(r"exec pytest .+", "".join(jobs))}

    assert " 4 passed in " in machine.run(
        f"PATH='{programs}':$PATH; {command}", suite, online=False
    )
