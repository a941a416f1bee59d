"""An Android device through adb, which is replaced by recorded output.

The device is asked itself: the service asks it on behalf of controllers, which would have to be started for each command.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import AppState
from tests.fakes.machine import EMULATOR, LISTED, FakeMachine
from tests.service.devices.program_device import ProgramDevice, lent

SERIAL = "emulator-5554"
NOTES = "package:/data/app/~~Zx1==/com.example.notes-aB3==/base.apk=com.example.notes"
OTHER = "package:/data/app/~~Qk2==/com.example.other-cD4==/base.apk=com.example.other"
RESUMED = """
  mLastPausedActivity: ActivityRecord{5d1c u0 com.android.launcher3/.Launcher t8}
  topResumedActivity=ActivityRecord{9c0d5a8 u0 com.example.notes/.MainActivity t12}
"""
DISPLAYS = "    init=1080x2400 420dpi cur={} app=1080x2274 rng=1080x1017-2400x2337\n"
STARTED = "Starting: Intent { act=android.intent.action.MAIN }\nStatus: ok\nComplete"
ACTIVITY = "priority=0 preferredOrder=0 match=0x108000\ncom.example.notes/.MainActivity"
PIXEL = "iVBORw0KGgo="


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """A machine with an emulator, and the user's driver for it."""
    machine = FakeMachine(tmp_path)
    machine.adb.answers({"devices -l": LISTED.format(EMULATOR)})
    machine.install_driver("appium-uiautomator2-driver")
    return machine


def lent_emulator(machine: FakeMachine) -> AbstractContextManager[ProgramDevice]:
    return lent(machine, machine.adb, f"-s {SERIAL} *{{}}*", "android")


@pytest.fixture
def emulator(machine: FakeMachine) -> Iterator[ProgramDevice]:
    with lent_emulator(machine) as emulator:
        yield emulator
        emulator.answers(pm_list=f"{NOTES}\n{OTHER}", uninstall="Success")


@pytest.fixture
def apk(tmp_path: Path) -> Path:
    path = tmp_path / "notes.apk"
    path.write_bytes(b"PK")
    return path


def test_it_is_known_by_its_serial_number(
    emulator: ProgramDevice, tmp_path: Path
) -> None:
    device = emulator.device

    assert (device.kind, device.name, device.platform) == (
        "emulator",
        SERIAL,
        "android",
    )
    assert device.tools.capabilities == {
        "platformName": "Android",
        "appium:automationName": "UiAutomator2",
        "appium:udid": SERIAL,
    }
    assert (device.tools.appium_home, device.tools.environ) == (
        tmp_path / ".appium",
        {"ANDROID_SERIAL": SERIAL},
    )


def test_an_installed_app_is_identified_by_the_new_package(
    emulator: ProgramDevice, apk: Path
) -> None:
    # The list is longer once the file is there that the installation leaves.
    mark = apk.with_suffix(".done")
    emulator.program.answers(
        {f"-s {SERIAL} install*": "Performing Streamed Install\nSuccess"}
    )
    script = emulator.program.path.read_text()
    listing = f"*'pm list packages -f -3') echo '{OTHER}'; if [ -e '{mark}' ]; then echo '{NOTES}'; fi;;\n"
    script = script.replace('case "$*" in\n', f'case "$*" in\n{listing}').replace(
        "cat <<", f"touch '{mark}'; cat <<"
    )
    emulator.program.path.write_text(script)

    installed = emulator.runner.run(emulator.device.install(App(path=apk)))

    assert installed == "com.example.notes"
    assert f"install -r -g {apk}" in emulator.asked


def test_an_app_with_a_known_package_is_not_searched_for(
    emulator: ProgramDevice, apk: Path
) -> None:
    app = App(path=apk, application_id="com.example.notes")

    assert (
        emulator.do(emulator.device.install(app), install="Success")
        == "com.example.notes"
    )


def test_an_app_without_a_new_package_is_reported(
    emulator: ProgramDevice, apk: Path
) -> None:
    with pytest.raises(
        ControllerError, match=r"its package is unknown: new on emulator-5554 are none"
    ):
        emulator.do(
            emulator.device.install(App(path=apk)), install="Success", pm_list=OTHER
        )


@pytest.mark.parametrize(
    "printed",
    [
        "adb: failed to install notes.apk: Failure [INSTALL_FAILED_NO_MATCHING_ABIS: res=-113]",
        "!adb: failed to install notes.apk: Failure [INSTALL_FAILED_NO_MATCHING_ABIS: res=-113]",
    ],
)
def test_an_app_that_cannot_be_installed_is_reported_with_the_reason(
    emulator: ProgramDevice, apk: Path, printed: str
) -> None:
    with pytest.raises(ControllerError, match="INSTALL_FAILED_NO_MATCHING_ABIS"):
        emulator.do(emulator.device.install(App(path=apk)), install=printed)


@pytest.mark.parametrize(
    "app", [App(url="https://example.com"), App(path=Path("/none.apk"))]
)
def test_anything_but_an_apk_is_refused(emulator: ProgramDevice, app: App) -> None:
    with pytest.raises(ControllerError, match=r"needs an \.apk, not (https|/none)"):
        emulator.do(emulator.device.install(app))


def test_an_app_is_launched_by_its_activity(emulator: ProgramDevice) -> None:
    emulator.do(
        emulator.device.launch("com.example.notes"),
        resolve_activity=ACTIVITY,
        am_start=STARTED,
    )

    assert emulator.asked[-1] == (
        "shell am start -W -a android.intent.action.MAIN -c android.intent.category.LAUNCHER "
        "-n com.example.notes/.MainActivity"
    )


def test_an_app_is_restarted_with_arguments_that_the_shell_does_not_interpret(
    emulator: ProgramDevice,
) -> None:
    launch = emulator.device.launch(
        "com.example.notes", ["--es", "user", "Ann's $HOME"]
    )

    emulator.do(launch, resolve_activity=ACTIVITY, am_start=STARTED)

    assert emulator.asked[-1].startswith("shell am start -W -S -a ")
    assert emulator.asked[-1].endswith("""--es user 'Ann'"'"'s $HOME'""")


def test_a_missing_app_is_not_launched(emulator: ProgramDevice) -> None:
    with pytest.raises(ControllerError, match=r"com\.example\.gone is not installed"):
        emulator.do(
            emulator.device.launch("com.example.gone"),
            resolve_activity="No activity found",
        )


def test_a_link_is_opened_in_the_named_app(emulator: ProgramDevice) -> None:
    emulator.do(
        emulator.device.open_url("notes://item?a=1&b=2", "com.example.notes"),
        am_start=STARTED,
    )

    assert emulator.asked == [
        "shell am start -W -a android.intent.action.VIEW -d 'notes://item?a=1&b=2' com.example.notes"
    ]


def test_a_link_that_no_app_opens_is_reported(
    emulator: ProgramDevice,
) -> None:
    printed = "Starting: Intent { }\nError: Activity not started, unable to resolve Intent { dat=notes://item }"

    with pytest.raises(
        ControllerError,
        match="am start: Error: Activity not started, unable to resolve",
    ):
        emulator.do(emulator.device.open_url("notes://item"), am_start=printed)


def test_a_running_app_is_terminated(emulator: ProgramDevice) -> None:
    assert (
        emulator.do(emulator.device.terminate("com.example.notes"), pidof="4711")
        is True
    )
    assert emulator.asked[-1] == "shell am force-stop com.example.notes"


def test_an_app_that_is_not_running_is_not_terminated(
    emulator: ProgramDevice,
) -> None:
    assert (
        emulator.do(emulator.device.terminate("com.example.notes"), pidof="!") is False
    )
    assert emulator.asked == ["shell pidof com.example.notes"]


def test_an_installed_app_is_removed(emulator: ProgramDevice) -> None:
    answers = {"pm_list": NOTES, "uninstall": "Success"}

    assert emulator.do(emulator.device.remove("com.example.notes"), **answers) is True
    assert emulator.do(emulator.device.remove("com.example.gone"), **answers) is False


def test_an_app_that_cannot_be_removed_is_reported(
    emulator: ProgramDevice,
) -> None:
    with pytest.raises(ControllerError, match="cannot be removed: Failure"):
        emulator.do(
            emulator.device.remove("com.example.notes"),
            pm_list=NOTES,
            uninstall="Failure [DELETE_FAILED]",
        )


def test_an_apps_data_is_cleared(emulator: ProgramDevice) -> None:
    emulator.do(emulator.device.clear("com.example.notes"), pm_clear="Success")

    assert emulator.asked == ["shell pm clear com.example.notes"]


def test_data_that_cannot_be_cleared_is_reported(
    emulator: ProgramDevice,
) -> None:
    with pytest.raises(
        ControllerError,
        match=r"the state of com\.example\.notes cannot be cleared: Failed",
    ):
        emulator.do(emulator.device.clear("com.example.notes"), pm_clear="Failed")


def install(emulator: ProgramDevice, apk: Path, *names: str) -> None:
    for name in names:
        emulator.do(
            emulator.device.install(App(path=apk, application_id=name)),
            install="Success",
        )


def test_every_app_of_the_session_is_cleared(
    emulator: ProgramDevice, apk: Path
) -> None:
    install(
        emulator, apk, "com.example.notes", "com.example.other", "com.example.notes"
    )

    emulator.do(emulator.device.clear(), pm_clear="Success")

    assert emulator.asked == [
        "shell pm clear com.example.other",
        "shell pm clear com.example.notes",
    ]


def test_the_states_of_apps_are_reported(emulator: ProgramDevice, apk: Path) -> None:
    install(
        emulator, apk, "com.example.notes", "com.example.other", "com.example.third"
    )

    states = emulator.do(
        emulator.device.apps(),
        dumpsys_activity=RESUMED,
        pidof_com_example_other="1",
        pidof="!",
    )

    assert states == {
        "com.example.notes": AppState.FOREGROUND,
        "com.example.other": AppState.BACKGROUND,
        "com.example.third": AppState.NOT_RUNNING,
    }


def test_a_screenshot_is_decoded_from_base64(emulator: ProgramDevice) -> None:
    assert (
        emulator.do(emulator.device.screenshot(), exec_out=f"{PIXEL[:8]}\n{PIXEL[8:]}")
        == b"\x89PNG\r\n\x1a\n"
    )


def test_an_invalid_screenshot_is_reported(emulator: ProgramDevice) -> None:
    with pytest.raises(
        ControllerError,
        match="no screenshot of emulator-5554: sh: base64: inaccessible",
    ):
        emulator.do(
            emulator.device.screenshot(),
            exec_out="sh: base64: inaccessible or not found",
        )


@pytest.mark.parametrize(
    ("size", "x", "y", "point"),
    [
        ("1080x2400", 0.5, 0.5, "540 1200"),
        ("2400x1080", 1, 1, "2399 1079"),
        ("1080x2400", 0, 0, "0 0"),
    ],
)
def test_a_touch_is_scaled_to_the_screen(
    emulator: ProgramDevice, size: str, x: float, y: float, point: str
) -> None:
    emulator.do(emulator.device.tap(x, y), dumpsys_window=DISPLAYS.format(size))

    assert emulator.asked[-1] == f"shell input tap {point}"


@pytest.mark.parametrize(
    ("size", "orientation"), [("1080x2400", "PORTRAIT"), ("2400x1080", "LANDSCAPE")]
)
def test_the_orientation_follows_from_the_screen_size(
    emulator: ProgramDevice, size: str, orientation: str
) -> None:
    assert (
        emulator.do(emulator.device.orientation(), dumpsys_window=DISPLAYS.format(size))
        == orientation
    )


def test_a_screen_without_a_size_is_reported(emulator: ProgramDevice) -> None:
    with pytest.raises(ControllerError, match="does not report the size"):
        emulator.do(emulator.device.orientation(), dumpsys_window="nothing")


def test_the_screen_is_rotated_and_stays_so(emulator: ProgramDevice) -> None:
    emulator.do(emulator.device.rotate("LANDSCAPE"))

    assert emulator.asked == [
        "shell settings put system accelerometer_rotation 0",
        "shell settings put system user_rotation 1",
    ]


def test_its_end_is_noticed(emulator: ProgramDevice) -> None:
    reported = emulator.do(
        emulator.device.ended(), get_state="!error: device 'emulator-5554' not found"
    )

    assert reported == "adb no longer reaches emulator-5554"


def commands_at_release(
    machine: FakeMachine, apk: Path, **answers: str
) -> Sequence[str]:
    """Lend the emulator, install an app, rotate the screen, end the session; return the last commands."""
    app = App(path=apk, application_id="com.example.notes")
    with lent_emulator(machine) as emulator:
        emulator.do(emulator.device.install(app), install="Success")
        emulator.do(emulator.device.rotate("LANDSCAPE"))
        emulator.answers(**answers)
    return emulator.asked


def test_a_device_is_released_in_its_original_state(
    machine: FakeMachine, apk: Path
) -> None:
    asked = commands_at_release(machine, apk, pm_list=NOTES, uninstall="Success")

    assert "uninstall com.example.notes" in asked
    assert asked[-1] == "shell settings put system accelerometer_rotation 1"
    assert "shell settings put system user_rotation 0" in asked


def test_a_device_that_cannot_be_cleaned_is_reported(
    machine: FakeMachine, apk: Path
) -> None:
    commands_at_release(machine, apk, pm_list="!error: device offline")

    line = machine.reported[-1]
    assert line.startswith("apps of the session may remain on emulator-5554: adb shell")
    assert "device offline" in line
