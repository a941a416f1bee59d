"""``pytest-device doctor``: the devices that sessions of the local service would get."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pytest_device.cli.doctor.devices import check_devices
from pytest_device.cli.doctor.local import check_exposure, check_users
from pytest_device.programs import cache_directory
from pytest_device.service.devices.browsers import BUILT_FOR, Pinned, hardware
from pytest_device.settings import Settings
from tests import forking
from tests.cli.running import run

Script = Callable[[str, str], None]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write an executable on the tests' PATH."""

    def write(name: str, text: str = "") -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return write


def found(directory: Path, **settings: object) -> dict[str, tuple[str, str, str]]:
    """Return status, text and fix of each finding."""
    environ = (
        {"PATH": f"{directory / 'bin'}:/usr/bin:/bin"}
        if settings
        else {"PATH": str(directory / "bin")}
    )
    # With a cache in this home.
    findings = check_devices(environ, directory, Settings(settings))
    return {one.name: (one.status, one.text, one.fix) for one in findings}


def test_every_kind_of_device_is_reported_in_order_of_preference(
    tmp_path: Path,
) -> None:
    assert list(found(tmp_path)) == [
        *("android: emulator", "android: chromium", "android: fake"),
        *("ios: simulator", "ios: chromium", "ios: fake"),
    ]


def test_with_real_devices_only_a_missing_one_is_a_warning(
    tmp_path: Path, script: Script
) -> None:
    script("adb", "echo 'List of devices attached'")
    script("emulator", "echo Phone_34")

    findings = found(tmp_path, local_real=True, avd="Phone_34")

    assert list(findings) == ["android: emulator", "ios: simulator"]
    assert findings["ios: simulator"][0] == "warn"
    assert findings["android: emulator"][1].startswith(
        "for agent-device, argent and preview sessions, Phone_34"
    )


def test_a_missing_device_that_is_named_is_a_warning(
    tmp_path: Path, script: Script
) -> None:
    script("adb", "echo 'List of devices attached'")
    script("emulator", "echo Phone_33")
    script("chromium", "")

    findings = found(tmp_path, avd="Phone_34")

    status, text, _ = findings["android: emulator"]
    assert status == "warn"
    assert "emulator -list-avds has no 'Phone_34': Phone_33" in text
    assert findings["android: chromium"][1].startswith("not used")
    assert findings["ios: chromium"][1].startswith("for ")


def test_a_browser_serves_sessions_of_every_type(
    tmp_path: Path, script: Script
) -> None:
    script("chromium", "")
    script("chromedriver", "")

    findings = found(tmp_path)

    programs = f"{tmp_path}/bin/chromium, {tmp_path}/bin/chromedriver"
    assert findings["ios: chromium"] == (
        "ok",
        f"for sessions of every type, {programs}",
        "",
    )
    assert (
        findings["ios: fake"][1]
        == "only for appium sessions with device_identifier='fake'"
    )


BROKEN = "echo 'no such library' >&2; exit 127"
OTHER = "echo ChromeDriver 150.0.1.2"


DOES_NOT_RUN = "chromedriver does not run: .*exit status 127: no such library"
DOES_NOT_MATCH = "chromedriver 150 on PATH does not match Chromium 156"


@pytest.mark.parametrize(
    ("driver", "problem", "has_pinned"),
    [
        pytest.param(BROKEN, DOES_NOT_RUN, True, id="broken"),
        pytest.param(OTHER, DOES_NOT_MATCH, True, id="of another version"),
        # One is enough: which problem a driver has does not depend on it.
        pytest.param(
            *(OTHER, DOES_NOT_MATCH, False),
            id="of another version, no pinned one",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_why_a_chromedriver_is_not_used_is_reported(
    tmp_path: Path, script: Script, driver: str, problem: str, *, has_pinned: bool
) -> None:
    # The pinned browser takes the place of one without a chromedriver, where it is for the processor.
    before = [] if has_pinned else [shutil.which("setarch") or "", "i686"]
    if not all(before):
        pytest.skip("setarch is missing")
    script("chromium", "echo Chromium 156.0.1.2")
    script("chromedriver", driver)

    environ = {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path)}
    reported = run(
        *("doctor", "--json"), cwd=tmp_path, before=before, DEVICE_LOCAL="1", **environ
    )

    (finding,) = [
        finding
        for finding in json.loads(reported.stdout)["findings"]
        if finding["name"] == "ios: chromium"
    ]
    assert finding["status"] == "warn"
    assert re.search(problem, finding["text"])
    assert "install" in finding["fix"]


@pytest.mark.skipif(
    hardware() != BUILT_FOR, reason="the pinned browser is not for this system"
)
def test_without_a_browser_the_planned_installation_is_reported(tmp_path: Path) -> None:
    status, text, fix = found(tmp_path)["android: chromium"]

    assert status == "warn"
    assert text == (
        "for sessions of every type: the first session that needs a browser installs "
        "Chromium 153.0.0 and chromedriver 153.0.8010.52 (at most 120 MB to download, 240 MB on disk)"
    )
    assert fix.startswith("run a session once with network access, or ")
    assert not (tmp_path / ".cache").exists()


@pytest.mark.skipif(
    hardware() != BUILT_FOR, reason="the pinned browser is not for this system"
)
def test_the_installed_browser_is_named_and_a_chromium_without_chromedriver_serves_other_session_types(
    tmp_path: Path, script: Script
) -> None:
    script("chromium", "")
    pinned = Pinned(cache_directory({}, tmp_path))
    for program in (pinned.program, pinned.chromedriver):
        program.parent.mkdir(parents=True)
        program.touch()

    status, text, _ = found(tmp_path)["ios: chromium"]

    about = f"Chromium 153.0.0, installed by pytest-device; {tmp_path}/bin/chromium is not used: "
    browsers = f"{tmp_path}/bin/chromium; {pinned.program}, {pinned.chromedriver} ({about}chromedriver is not on PATH)"
    assert (status, text) == ("ok", f"for sessions of every type, {browsers}")


@pytest.mark.nightly
def test_on_another_processor_the_command_to_install_a_browser_is_reported(
    tmp_path: Path,
) -> None:
    other = shutil.which("setarch") or pytest.skip("setarch is missing")
    (tmp_path / "bin").mkdir()

    environ = {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path)}
    reported = run(
        "doctor",
        "--json",
        cwd=tmp_path,
        before=(other, "i686"),
        DEVICE_LOCAL="1",
        **environ,
    )

    [one] = [
        one
        for one in json.loads(reported.stdout)["findings"]
        if one["name"] == "android: chromium"
    ]
    assert (one["status"], one["text"]) == (
        "warn",
        "not used: no Chromium is on PATH, chromedriver is not on PATH",
    )
    assert "install" in one["fix"]


def test_a_real_device_without_its_appium_driver_serves_other_session_types(
    tmp_path: Path, script: Script
) -> None:
    script("adb", "echo 'emulator-5554 device'")
    script("chromium", "")
    script("chromedriver", "")

    findings = found(tmp_path)

    status, text, _ = findings["android: emulator"]
    assert status == "ok"
    assert text.startswith(
        "for agent-device, argent and preview sessions, emulator-5554: appium-uiautomator2-driver"
    )
    assert text.endswith("(to use it: appium driver install uiautomator2)")
    assert findings["android: chromium"][1].startswith("for appium sessions, ")


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, dict[str, str]]:
    """The findings of one command, by name; the last one of a name."""
    directory = str(tmp_path_factory.mktemp("examined"))
    environ = {"XDG_STATE_HOME": directory, "XDG_CACHE_HOME": directory}
    with pytest.MonkeyPatch.context() as patch:
        # As the fixture of each test does.
        patch.setattr(subprocess, "Popen", forking.Popen)
        report = run(
            *("doctor", "--json"), cwd=Path(directory), DEVICE_LOCAL="1", **environ
        )
    findings = json.loads(report.stdout)["findings"]
    return {finding["name"]: finding for finding in findings}


def test_the_command_reports_the_devices(
    examined: Mapping[str, dict[str, str]],
) -> None:
    names = examined.keys()
    assert {"android: chromium", "ios: chromium", "agent-device", "argent"} <= names


def test_as_root_the_missing_sandbox_is_reported_with_the_fix() -> None:
    root, other = (
        [one for one in check_exposure("", is_root=is_root) if one.name == "sandbox"]
        for is_root in (True, False)
    )

    assert [(one.status, one.fix.partition(":")[0]) for one in root] == [
        ("warn", "run pytest as another user, for example")
    ]
    assert "--no-sandbox" in root[0].text
    assert other == []


def test_a_system_that_refuses_namespaces_is_reported_with_its_reason() -> None:
    (refused,) = check_exposure("Operation not permitted")

    assert (refused.name, refused.status) == ("ports", "warn")
    assert refused.text.endswith("no network namespace (Operation not permitted)")
    assert [one.status for one in check_exposure("")] == ["ok"]
    assert [
        one.status
        for one in check_exposure("Operation not permitted", is_required=True)
    ] == ["fail"]


def test_a_system_that_does_not_show_who_connects_is_reported_with_the_fix() -> None:
    hidden = check_users(is_shown=False, unknown=[])
    in_part = check_users(is_shown=True, unknown=["::ffff:127.0.0.1"])

    assert (
        (hidden.name, hidden.status)
        == (in_part.name, in_part.status)
        == ("users", "warn")
    )
    assert "other users of the machine can open session pages" in hidden.text
    assert "over ::ffff:127.0.0.1" in in_part.text
    assert check_users(is_shown=True, unknown=[]).status == "ok"


@pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="this system does not show who connects"
)
def test_connections_of_this_user_are_recognized_over_each_way(
    examined: Mapping[str, dict[str, str]],
) -> None:
    users = examined["users"]

    assert (users["status"], users["text"]) == (
        "ok",
        "connections of other users of this machine are refused",
    )
