"""The jobs with an emulator or a simulator do what their page says, with recorded programs of the SDKs."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
import yaml

from pytest_device.service.programs.toolchain import APPIUM
from tests.conftest import SLOW_TO_LOAD
from tests.docs_pages import DOCS, ROOT, blocks
from tests.fakes.programs import FakeProgram
from tests.test_docs_ci import without_installation

JOBS: Final = ROOT / "examples/ci"
PAGE: Final = DOCS / "ci/emulator.md"
SUITE: Final = """
import pytest

@pytest.mark.device(platform=["android", "ios"], type="web-preview-only")
def test_device(device_session, device_platform, record_property):
    record_property("platform", str(device_platform))
"""
UDID: Final = "5A1E0C9C-0000-4000-8000-0000000000AA"
SIMULATORS: Final = """{"devices": {"com.apple.CoreSimulator.SimRuntime.iOS-18-0": [
    {"udid": "%s", "name": "iPhone 16", "state": "%s"}
]}}"""

EMULATOR: Final = """#!/bin/sh
echo "$*" >>"$0.log"
case "$*" in
-accel-check) exit 0;;
-list-avds) cat "$0.avds" 2>/dev/null; exit 0;;
esac
touch "$0.up"
until ! [ -e "$0.up" ]; do sleep 0.05; done
"""
"""It runs until adb kills it; its AVDs are those that avdmanager has created."""
ADB: Final = r"""#!/bin/sh
echo "$*" >>"$0.log"
up={emulator}.up
case "$*" in
wait-for-device*) until [ -e "$up" ]; do sleep 0.05; done;;
devices*)
    echo 'List of devices attached'
    ! [ -e "$up" ] || echo 'emulator-5554          device product:sdk model:sdk device:emu64x';;
*'emu avd name') printf 'ci\r\nOK\r\n';;
*sys.boot_completed) ! [ -e "$up" ] || echo 1;;
*'emu kill') rm "$up";;
esac
"""
XCRUN: Final = r"""#!/bin/sh
echo "$*" >>"$0.log"
case "$*" in
'simctl list devices '*-j) if [ -e "$0.up" ]; then cat "$0.booted"; else cat "$0.shutdown"; fi;;
'simctl bootstatus '*) touch "$0.up";;
'simctl shutdown '*) rm -f "$0.up";;
esac
"""


class CiMachine:
    """A machine of a CI service: an SDK, and the commands of the system, with recorded answers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sdk = directory / "sdk"
        self.emulator = self._script(self.sdk / "emulator/emulator", EMULATOR)
        adb = ADB.format(emulator=self.emulator)
        self._script(self.sdk / "platform-tools/adb", adb)

        tools = self.sdk / "cmdline-tools/latest/bin"
        self.sdkmanager = FakeProgram.made(tools / "sdkmanager")
        created = f'#!/bin/sh\necho "$*" >>"$0.log"\necho ci >{self.emulator}.avds\n'
        self.avdmanager = self._script(tools / "avdmanager", created)

        self.bin = directory / "bin"
        for name in ("sudo", "npx"):
            FakeProgram.made(self.bin / name)
        self.xcrun = self._script(self.bin / "xcrun", XCRUN)
        for state in ("Booted", "Shutdown"):
            Path(f"{self.xcrun}.{state.lower()}").write_text(SIMULATORS % (UDID, state))

        (directory / "test_it.py").write_text(SUITE)
        (directory / ".venv").symlink_to(sys.prefix)

    def _script(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run(self, scripts: Sequence[str], variables: Mapping[str, str]) -> str:
        """Run the scripts of a job, which must all succeed; return their output."""
        path = [str(self.bin), str(Path(sys.prefix, "bin")), os.environ["PATH"]]
        environ = {
            **os.environ,
            **variables,
            "PATH": os.pathsep.join(path),
            "HOME": str(self.directory),
            "USER": "runner",
            "ANDROID_HOME": str(self.sdk),
            "CI": "true",
            "DEVICE_POLL_INTERVAL_SECONDS": "0.05",
            "PYTEST_ADDOPTS": " ".join(f"-p no:{name}" for name in SLOW_TO_LOAD),
        }
        output = ""
        for script in scripts:
            ended = subprocess.run(
                ["bash", "-e", "-c", without_installation(script)],
                cwd=self.directory,
                env=environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=120,
            )
            output += ended.stdout
            assert ended.returncode == 0, output
        return output

    @property
    def emulator_starts(self) -> list[str]:
        """The emulator's arguments, without questions about it."""
        return [call for call in calls_of(self.emulator) if call.startswith("-avd ")]

    def platforms(self) -> list[str]:
        """Return the platforms of the tests that have passed."""
        (suite,) = ET.parse(self.directory / "artifacts/junit.xml").getroot()
        failed = [suite.get(name) for name in ("failures", "errors", "skipped")]
        assert failed == ["0", "0", "0"]
        return [
            str(entry.get("value"))
            for entry in suite.iter("property")
            if entry.get("name") == "platform"
        ]


def calls_of(program: Path) -> list[str]:
    return Path(f"{program}.log").read_text().splitlines()


@pytest.fixture
def runner(tmp_path: Path) -> CiMachine:
    return CiMachine(tmp_path)


def github(name: str, directory: Path) -> dict[str, Any]:
    text = (JOBS / name).read_text()
    text = text.replace("${{ github.workspace }}", str(directory))
    (job,) = yaml.safe_load(text)["jobs"].values()
    return dict(job)


def scripts_of(job: Mapping[str, Any], *, is_cached: bool) -> list[str]:
    missed = "steps.avd.outputs.cache-hit != 'true'"
    steps = [step for step in job["steps"] if "run" in step]
    assert {step["if"] for step in steps if "if" in step} <= {missed}
    return [step["run"] for step in steps if not (is_cached and "if" in step)]


def test_the_page_shows_the_jobs() -> None:
    files = ["github-emulator.yml", "github-simulator.yml", "gitlab-emulator.yml"]

    assert sorted(path.name for path in JOBS.iterdir()) == files
    assert blocks(PAGE, "yaml") == [(JOBS / name).read_text() for name in files]


def test_the_jobs_install_a_driver_for_the_appium_of_the_local_service() -> None:
    versions = re.findall(r"appium@(\S+) driver install", PAGE.read_text())

    assert versions == [APPIUM.version] * 3


def test_the_github_job_creates_the_emulator_and_tests_on_it(runner: CiMachine) -> None:
    job = github("github-emulator.yml", runner.directory)

    runner.run(scripts_of(job, is_cached=False), job["env"])

    assert runner.platforms() == ["android"]
    image = job["env"]["SYSTEM_IMAGE"]
    assert runner.sdkmanager.asked == [f"emulator platform-tools {image}"]
    assert calls_of(runner.avdmanager) == [
        f"create avd --name ci --package {image} --device pixel_6"
    ]
    saving, testing = runner.emulator_starts
    assert "-no-snapshot-save" not in saving
    assert testing.startswith("-avd ci -port 5554 ")
    assert "-no-snapshot-save" in testing


@pytest.mark.nightly
def test_with_the_emulator_from_the_cache_the_github_job_only_tests(
    runner: CiMachine,
) -> None:
    Path(f"{runner.emulator}.avds").write_text("ci\n")
    job = github("github-emulator.yml", runner.directory)

    runner.run(scripts_of(job, is_cached=True), job["env"])

    assert runner.platforms() == ["android"]
    (testing,) = runner.emulator_starts
    assert testing.startswith("-avd ci -port 5554 ")


def test_the_github_job_boots_the_simulator_and_tests_on_it(runner: CiMachine) -> None:
    job = github("github-simulator.yml", runner.directory)

    runner.run(scripts_of(job, is_cached=False), job["env"])

    assert runner.platforms() == ["ios"]
    calls = calls_of(runner.xcrun)
    assert f"simctl bootstatus {UDID} -b" in calls
    assert calls[-1] == f"simctl shutdown {UDID}"


@pytest.mark.nightly
def test_the_gitlab_job_tests_on_the_emulator_of_its_image(runner: CiMachine) -> None:
    Path(f"{runner.emulator}.avds").write_text("ci\n")
    text = (JOBS / "gitlab-emulator.yml").read_text()
    (job,) = yaml.safe_load(
        text.replace("$CI_PROJECT_DIR", str(runner.directory))
    ).values()

    runner.run(["\n".join(job["script"])], job["variables"])

    assert runner.platforms() == ["android"]
    (testing,) = runner.emulator_starts
    assert testing.startswith("-avd ci -port 5554 ")
