"""The jobs on the pages about CI do what the pages say: run the suite, with and without the token, and be cancelled."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from pytest_device.plugin.output.exit_status import INFRASTRUCTURE_ONLY
from pytest_device.testing import FaultyService
from tests.conftest import SLOW_TO_LOAD
from tests.docs_pages import DOCS, blocks
from tests.waiting import eventually

CI = DOCS / "ci"
SUITE = """
import pytest

@pytest.mark.device(platform="android")
def test_android(device_session): pass

@pytest.mark.device(platform="ios")
def test_ios(device_session): pass

def test_plain(): pass

def test_simple(): pass
"""
DEVICES = {"test_android", "test_ios"}
PLAIN = {"test_plain", "test_simple"}


def account(service: FaultyService) -> dict[str, str]:
    """Return the variables that replace those of the account on a page."""
    return {"DEVICE_URL": service.url, "DEVICE_APP_ID": service.app_id}


class Job:
    """A job's project on a machine: runs its scripts as the CI service does."""

    def __init__(self, directory: Path, service: FaultyService) -> None:
        self.directory = directory
        self.service = service
        self.bin = Path(sys.prefix, "bin")
        (directory / "test_it.py").write_text(SUITE)
        (directory / ".venv").symlink_to(sys.prefix)

    def record(self) -> None:
        """Let the jobs' programs print their commands instead of running them."""
        self.bin = self.directory / "recording" / "bin"
        self.bin.mkdir(parents=True)
        for name in ("pytest", "pytest-device"):
            (self.bin / name).write_text(
                '#!/bin/bash\nprintf "%q " "${0##*/}" "$@"; echo\n'
            )
            (self.bin / name).chmod(0o755)
        (self.directory / ".venv").unlink()
        (self.directory / ".venv").symlink_to(self.bin.parent)

    def start(self, script: str, variables: Mapping[str, str]) -> subprocess.Popen[str]:
        """Start a script; the running service replaces the account on the page."""
        own = {
            "HOME": str(self.directory),
            "CI": "true",
            "DEVICE_POLL_INTERVAL_SECONDS": "0.05",
        }
        own["PYTEST_ADDOPTS"] = " ".join(f"-p no:{name}" for name in SLOW_TO_LOAD)
        environ = {
            **os.environ,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            **own,
            **variables,
        }
        assert account(self.service).keys() <= variables.keys()
        return subprocess.Popen(
            ["bash", "-e", "-c", without_installation(script)],
            cwd=self.directory,
            env=environ | account(self.service),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, script: str, variables: Mapping[str, str]) -> str:
        """Run a script, which must succeed, and return its output."""
        process = self.start(script, variables)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
        return output

    def commands(
        self, scripts: Iterable[str], variables: Mapping[str, str]
    ) -> list[list[str]]:
        """Return the commands that scripts run, after ``record``."""
        return [
            shlex.split(line)
            for script in scripts
            for line in self.run(script, variables).splitlines()
        ]

    def tests(self) -> set[str]:
        """Return the names of the tests in the report, which all have passed."""
        (suite,) = ET.parse(self.directory / "artifacts" / "junit.xml").getroot()
        assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
            "0",
            "0",
            "0",
        )
        return {str(case.get("name")) for case in suite.iter("testcase")}


@pytest.fixture
def job(service: FaultyService, tmp_path: Path) -> Job:
    return Job(tmp_path, service)


def without_installation(script: str) -> str:
    return "\n".join(
        line
        for line in script.splitlines()
        if "pip install" not in line and " -m venv " not in line
    )


def only_block(page: str, language: str) -> str:
    (block,) = blocks(CI / page, language)
    return block


def github(token: str, shard: int = 1) -> tuple[dict[str, str], list[str]]:
    """Return the variables and the scripts of a job."""
    values = {"secrets.DEVICE_TOKEN": token, "matrix.shard": str(shard)}
    text = re.sub(
        r"\$\{\{ (.*?) \}\}",
        lambda place: values[place[1]],
        only_block("github.md", "yaml"),
    )
    job: dict[str, Any] = yaml.safe_load(text)["jobs"]["device-tests"]
    assert shard in job["strategy"]["matrix"]["shard"]
    return {name: value or "" for name, value in job["env"].items()}, [
        step["run"] for step in job["steps"] if "run" in step
    ]


def gitlab(token: str, directory: Path) -> tuple[dict[str, str], list[str]]:
    (job,) = yaml.safe_load(only_block("gitlab.md", "yaml")).values()
    given = {
        "CI_PROJECT_DIR": str(directory),
        "CI_NODE_INDEX": "1",
        "CI_NODE_TOTAL": str(job["parallel"]),
    }
    variables = {
        name: re.sub(r"\$(\w+)", lambda place: given[place[1]], value)
        for name, value in job["variables"].items()
    }
    return {**variables, "DEVICE_TOKEN": token}, [
        "\n".join(job["script"]),
        "\n".join(job["after_script"]),
    ]


def jenkins(stage: str, token: str) -> tuple[dict[str, str], list[str]]:
    text = only_block("jenkins.md", "groovy")
    assert text.count("{") == text.count("}")
    variables = dict(re.findall(r"(DEVICE_\w+) = '(.*)'", text))
    (steps,) = re.findall(
        rf"^        stage\('{stage}'\) {{\n(.*?)^        }}",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    if "DEVICE_TOKEN = credentials('device-token')" in steps:
        variables["DEVICE_TOKEN"] = token
    return variables, re.findall(r"sh '(.*)'", steps)


def test_all_pages_run_the_same_commands(job: Job, service: FaultyService) -> None:
    job.record()

    for token, stage in ((service.token, "Device tests"), ("", "Tests of a fork")):
        variables, scripts = jenkins(stage, token)
        commands = job.commands(scripts, variables)
        for shard in (1, 2):
            variables, scripts = github(token, shard)
            assert variables["DEVICE_SHARD"] == f"{shard}/2"
            assert job.commands(scripts, variables) == commands
        variables, scripts = gitlab(token, job.directory)
        assert variables["DEVICE_SHARD"] == "1/2"
        assert job.commands(scripts, variables) == commands
        assert [program for program, *_ in commands] == (
            ["pytest", "pytest-device"] if token else ["pytest"]
        )


def test_the_github_job_runs_the_tests_of_its_shard_without_a_device_for_a_fork(
    job: Job, service: FaultyService
) -> None:
    variables, scripts = github("", shard=2)

    output = "".join(job.run(script, variables) for script in scripts)

    assert "device shard 2/2: " in output
    assert job.tests() < PLAIN
    assert service.sessions() == []


@pytest.mark.nightly
def test_a_cancelled_github_job_stops_its_sessions(
    job: Job, service: FaultyService
) -> None:
    (job.directory / "test_it.py").write_text(
        SUITE.replace(": pass", ": __import__('time').sleep(600)", 2)
    )
    variables, (*_, test, stop) = github(service.token)
    summary = job.directory / "summary.md"
    of_job = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    with job.start(test, variables | of_job) as process:
        assert eventually(lambda: service.statuses() == ["in-progress"])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    assert service.statuses() == ["stopped"]
    assert "nothing to stop" in job.run(stop, variables)
    heading, _, sentence, *_ = summary.read_text().splitlines()
    assert heading.startswith("### Device tests (shard 1&#47;2): ")
    assert sentence == "The run was interrupted."
    assert list((job.directory / "artifacts" / "report").glob("*.zip"))


def test_the_github_job_keeps_the_artifacts_of_failed_tests_too() -> None:
    assert steps_after_failure("github.md") == {"pytest-device", "upload-artifact"}


def steps_after_failure(page: str) -> set[str]:
    """Return what the job of a page does even if its tests failed."""
    steps = yaml.safe_load(only_block(page, "yaml"))["jobs"]["device-tests"]["steps"]
    texts = [
        str(step.get("uses") or step.get("run"))
        for step in steps
        if step.get("if") == "always()"
    ]
    return {
        name
        for name in ("pytest-device", "upload-artifact")
        if any(name in text for text in texts)
    }


def test_the_other_jobs_keep_the_artifacts_of_failed_tests_too() -> None:
    (gitlab_job,) = yaml.safe_load(only_block("gitlab.md", "yaml")).values()
    kept = gitlab_job["artifacts"]
    assert (kept["when"], kept["paths"]) == ("always", ["artifacts"])
    assert kept["reports"] == {"junit": "artifacts/junit.xml"}
    assert gitlab_job["retry"] == {"max": 1, "exit_codes": INFRASTRUCTURE_ONLY}

    pipeline = only_block("jenkins.md", "groovy")
    always = pipeline.rpartition("always {")[2]
    assert "archiveArtifacts artifacts: 'artifacts/**'" in always
    assert "junit 'artifacts/junit.xml'" in always


@pytest.mark.nightly
def test_the_gitlab_job_runs_its_shard(job: Job, service: FaultyService) -> None:
    variables, scripts = gitlab(service.token, job.directory)

    output = "".join(job.run(script, variables) for script in scripts)

    assert "device shard 1/2: " in output
    assert f"nothing to stop in {job.directory}" in output
    assert service.statuses() == ["stopped"]


def kubernetes(token: str, directory: Path) -> tuple[dict[str, str], str]:
    """Return the variables and the script of the first pod."""
    spec = yaml.safe_load(only_block("kubernetes.md", "yaml"))["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["shareProcessNamespace"]
    assert container["command"] == ["sh", "-c"]

    variables = {one["name"]: one.get("value", "") for one in container["env"]}
    del variables["DEVICE_SLOTS_URL"]
    given = {"HOME": str(directory), "DEVICE_TOKEN": token, "SHARD_INDEX": "0"}
    script = "\n".join(container["args"])
    assert f"DEVICE_SHARD=$((SHARD_INDEX + 1))/{spec['completions']}\n" in script
    return variables | given, script


def test_a_pod_of_the_kubernetes_job_runs_pytest_alone(
    job: Job, service: FaultyService
) -> None:
    job.record()
    variables, script = kubernetes(service.token, job.directory)

    ((program, *arguments),) = job.commands([script], variables)

    assert program == "pytest"
    assert arguments[:2] == ["-n", "2"]
    assert f"--device-report={job.directory}/artifacts/report" in arguments


@pytest.mark.nightly
def test_a_pod_of_the_kubernetes_job_runs_its_shard(
    job: Job, service: FaultyService
) -> None:
    variables, script = kubernetes(service.token, job.directory)

    output = job.run(script, variables)

    assert "device shard 1/4: 1 of 4" in output
    assert len(job.tests()) == 1
    assert list((job.directory / "artifacts" / "report").glob("*.zip"))
    assert set(service.statuses()) == {"stopped"}


@pytest.mark.nightly
def test_the_jenkins_pipeline_runs_the_suite(job: Job, service: FaultyService) -> None:
    variables, scripts = jenkins("Device tests", service.token)

    output = "".join(job.run(script, variables) for script in scripts)

    assert "nothing to stop" in output
    assert list((job.directory / "artifacts" / "report").glob("*.zip"))
    assert job.tests() == DEVICES | PLAIN
    assert service.statuses() == ["stopped", "stopped"]


@pytest.mark.nightly
def test_the_jenkins_pipeline_runs_the_tests_without_a_device_for_a_fork(
    job: Job, service: FaultyService
) -> None:
    variables, scripts = jenkins("Tests of a fork", service.token)

    for script in scripts:
        job.run(script, variables)

    assert job.tests() == PLAIN
    assert service.sessions() == []


def test_without_the_token_a_run_with_device_tests_ends_as_documented(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, service: FaultyService
) -> None:
    service.reset()
    pytester.makepyfile(SUITE)
    variables, _ = github("")
    for name, value in {**variables, **account(service)}.items():
        monkeypatch.setenv(name, value)

    result = pytester.runpytest_subprocess()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert only_block("index.md", "text") in result.stderr.str()
    assert service.requests() == []
