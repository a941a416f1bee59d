"""The files that keep the project going: workflows, pinned tools, and the script that raises them."""

import configparser
import importlib.util
import re
from collections.abc import Mapping, Sequence
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


def rows_of(job: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    """Return the rows of a job's matrix; one that fits all if it has none."""
    rows: Sequence[Mapping[str, str]] = (
        job.get("strategy", {}).get("matrix", {}).get("include", [{"environment": ""}])
    )
    return rows


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


@pytest.fixture(scope="module")
def tox() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "tox.ini")
    return parser


OF_A_PYTHON = re.compile(r"py3(11|12|13|14)")
"""The environments that have no section: tox makes them of `[testenv]`."""


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_the_environments_of_tox_that_a_workflow_runs_exist(
    workflow: Path, tox: configparser.ConfigParser
) -> None:
    commands = " ".join(
        step.get("run", "").replace("${{ matrix.environment }}", row["environment"])
        for job in jobs_of(workflow).values()
        for row in rows_of(job)
        for step in job.get("steps", [])
    )

    environments = ",".join(re.findall(r"tox -e (\S+)", commands)).split(",")

    assert [
        name
        for name in filter(None, environments)
        if f"testenv:{name}" not in tox and not OF_A_PYTHON.fullmatch(name)
    ] == []
    assert "py3{11,12,13,14}: " in tox["testenv"]["commands"]


def test_the_environments_of_the_gate_run_on_the_python_that_runs_tox(
    tox: configparser.ConfigParser,
) -> None:
    names = re.split(r",\s*", tox["tox"]["env_list"])
    sections = [tox[f"testenv:{name}"] for name in names if f"testenv:{name}" in tox]

    assert len(sections) > 1
    # A factor such as `py313` or `3.13` names a Python, too.
    assert [name for name in names if re.search(r"(^|-)(py)?\d", name)] == []
    assert [
        (section.name, key)
        for section in (tox["testenv"], *sections)
        for key in section
        if re.fullmatch("base_?python|default_base_python", key)
    ] == []
    assert tox["testenv"]["set_env"] == "UV_PYTHON_DOWNLOADS = never"


def test_a_workflow_gives_an_environment_of_a_python_that_python() -> None:
    jobs = jobs_of(ROOT / ".github/workflows/tests.yml")
    rows = rows_of(jobs["pythons"])

    for row in rows:
        assert row["environment"] == f"py{row['python'].replace('.', '')}"
    # The gate runs on the lowest one.
    gate = {step["uses"]: step for step in jobs["gate"]["steps"] if "uses" in step}
    lowest = gate["actions/setup-python@v5"]["with"]["python-version"]
    versions = re.findall(r'Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert {lowest, *(row["python"] for row in rows)} >= {*versions}
    assert f'requires-python = ">={lowest}"' in (ROOT / "pyproject.toml").read_text()


def test_the_gate_of_a_pull_request_is_the_script_that_contributors_run() -> None:
    jobs = jobs_of(ROOT / ".github/workflows/tests.yml")

    assert jobs["gate"]["steps"][-1] == {"run": "bash .ci/run"}


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
