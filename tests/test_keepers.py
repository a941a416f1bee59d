"""The files that keep the project going: workflows, pinned tools, and the script that raises them."""

import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.bare.blocks import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def pins() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pins", ROOT / ".ci/pins.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def jobs_of(workflow: Path) -> Mapping[str, Mapping[str, Any]]:
    jobs: Mapping[str, Mapping[str, Any]] = yaml.safe_load(workflow.read_text())["jobs"]
    return jobs


def steps_of(workflow: Path) -> Iterator[Mapping[str, Any]]:
    for job in jobs_of(workflow).values():
        yield from job.get("steps", [])


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_each_job_has_a_time_limit_and_no_more_rights_than_it_needs(
    workflow: Path,
) -> None:
    content = yaml.safe_load(workflow.read_text())

    assert content["permissions"] == {"contents": "read"}
    assert [
        name
        for name, job in content["jobs"].items()
        if "uses" not in job and "timeout-minutes" not in job
    ] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_the_environments_of_tox_that_a_workflow_runs_exist(workflow: Path) -> None:
    tox = (ROOT / "tox.ini").read_text()
    commands = " ".join(step.get("run", "") for step in steps_of(workflow))

    environments = ",".join(re.findall(r"tox -e (\S+)", commands)).split(",")
    # Those of a Python have no section: tox makes them from the factors of `[testenv]`.
    of_pythons = re.compile(r"py3(11|12|13|14)")

    assert [
        name
        for name in filter(None, environments)
        if f"[testenv:{name}]" not in tox and not of_pythons.fullmatch(name)
    ] == []
    assert "py3{11,12,13,14}-!lowest: " in tox


def test_the_gate_of_a_pull_request_is_the_script_that_contributors_run() -> None:
    steps = list(steps_of(ROOT / ".github/workflows/tests.yml"))

    assert steps[-1] == {"run": "bash .ci/run"}


def test_only_the_job_that_publishes_can_ask_for_an_identity() -> None:
    jobs = jobs_of(ROOT / ".github/workflows/release.yml")

    trusted = [name for name, job in jobs.items() if job.get("permissions")]

    assert trusted == ["publish"]
    assert set(jobs["publish"]["needs"]) == {"build", "test"}


def test_commits_are_checked_by_the_versions_of_the_tools_that_lint_has() -> None:
    pinned = re.findall(r'"([\w.-]+==[\w.]+)"', (ROOT / "pyproject.toml").read_text())
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]

    used = {
        tool
        for repository in hooks
        for hook in repository["hooks"]
        for tool in hook["additional_dependencies"]
    }

    assert used
    assert used <= set(pinned)


def test_raising_pins_changes_exact_versions_only_and_keeps_extras(
    pins: ModuleType,
) -> None:
    text = """lint = ["ruff==0.1", 'pyright[nodejs]==1.1', "pip-tools>=7.5", "mypy==2.0"]"""
    newest = {"ruff": "0.2", "pyright": "1.2", "mypy": "2.0"}

    raised, changes = pins.with_newest_tools(text, newest.__getitem__)

    assert raised == (
        """lint = ["ruff==0.2", 'pyright[nodejs]==1.2', "pip-tools>=7.5", "mypy==2.0"]"""
    )
    assert changes == {"ruff": ("0.1", "0.2"), "pyright": ("1.1", "1.2")}


def test_every_pinned_program_is_raised(pins: ModuleType) -> None:
    projects = {path.parent for path in ROOT.glob("src/**/package-lock.json")}
    requirements = set(ROOT.glob("src/**/requirements.txt"))

    assert projects
    assert projects <= set(pins.NPM_PROJECTS)
    assert requirements
    assert requirements <= set(pins.HASHED)
