"""An Android device through adb, which is replaced by recorded output."""

import asyncio
import os
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import AppState, Device
from pytest_device.service.devices.emulator import Emulator
from pytest_device.service.devices.found import Found
from tests.service.devices.recorded import Recorded

_Result = TypeVar("_Result")

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


@dataclass
class Phone:
    """A device and its adb."""

    adb: Recorded
    device: Emulator
    reported: list[str] = field(default_factory=list)

    def do(self, work: Coroutine[Any, Any, _Result], **answers: str) -> _Result:
        """Run an action with this adb output; ``_`` in a name stands for any character."""
        self.adb.answers(
            {
                f"-s {SERIAL} *{name.replace('_', '?')}*": printed
                for name, printed in answers.items()
            }
        )
        return asyncio.run(work)

    @property
    def asked(self) -> list[str]:
        return [command.removeprefix(f"-s {SERIAL} ") for command in self.adb.asked]


@pytest.fixture
def phone(tmp_path: Path) -> Generator[Phone]:
    adb = Recorded.made(tmp_path / "bin" / "adb")
    found = Found("emulator", program=adb.program, appium_home=tmp_path / ".appium")
    reported: list[str] = []
    lending = Emulator(SERIAL, found, environ=dict(os.environ), log=reported.append)
    yield Phone(adb, asyncio.run(lending.__aenter__()), reported)
    adb.answers({"*pm list*": f"{NOTES}\n{OTHER}", "*uninstall*": "Success"})
    asyncio.run(lending.__aexit__(None, None, None))


@pytest.fixture
def apk(tmp_path: Path) -> Path:
    path = tmp_path / "notes.apk"
    path.write_bytes(b"PK")
    return path


def test_it_is_known_by_its_serial_number(phone: Phone, tmp_path: Path) -> None:
    device: Device = phone.device

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
    phone: Phone, apk: Path
) -> None:
    # The list is longer once the file is there that the installation leaves.
    mark = apk.with_suffix(".done")
    phone.adb.answers({f"-s {SERIAL} install*": "Performing Streamed Install\nSuccess"})
    script = phone.adb.program.read_text()
    listing = f"*'pm list packages -f -3') echo '{OTHER}'; if [ -e '{mark}' ]; then echo '{NOTES}'; fi;;\n"
    script = script.replace('case "$*" in\n', f'case "$*" in\n{listing}').replace(
        "cat <<", f"touch '{mark}'; cat <<"
    )
    phone.adb.program.write_text(script)

    assert asyncio.run(phone.device.install(App(path=apk))) == "com.example.notes"
    assert f"install -r -g {apk}" in phone.asked


def test_an_app_with_a_known_package_is_not_searched_for(
    phone: Phone, apk: Path
) -> None:
    app = App(path=apk, application_id="com.example.notes")

    assert phone.do(phone.device.install(app), install="Success") == "com.example.notes"


def test_an_app_without_a_new_package_is_reported(phone: Phone, apk: Path) -> None:
    with pytest.raises(
        ControllerError, match=r"its package is unknown: new on emulator-5554 are none"
    ):
        phone.do(phone.device.install(App(path=apk)), install="Success", pm_list=OTHER)


@pytest.mark.parametrize(
    "printed",
    [
        "adb: failed to install notes.apk: Failure [INSTALL_FAILED_NO_MATCHING_ABIS: res=-113]",
        "!adb: failed to install notes.apk: Failure [INSTALL_FAILED_NO_MATCHING_ABIS: res=-113]",
    ],
)
def test_an_app_that_cannot_be_installed_is_reported_with_the_reason(
    phone: Phone, apk: Path, printed: str
) -> None:
    with pytest.raises(ControllerError, match="INSTALL_FAILED_NO_MATCHING_ABIS"):
        phone.do(phone.device.install(App(path=apk)), install=printed)


@pytest.mark.parametrize(
    "app", [App(url="https://example.com"), App(path=Path("/none.apk"))]
)
def test_anything_but_an_apk_is_refused(phone: Phone, app: App) -> None:
    with pytest.raises(ControllerError, match=r"needs an \.apk, not (https|/none)"):
        phone.do(phone.device.install(app))


def test_an_app_is_launched_by_its_activity(phone: Phone) -> None:
    phone.do(
        phone.device.launch("com.example.notes"),
        resolve_activity=ACTIVITY,
        am_start=STARTED,
    )

    assert phone.asked[-1] == (
        "shell am start -W -a android.intent.action.MAIN -c android.intent.category.LAUNCHER "
        "-n com.example.notes/.MainActivity"
    )


def test_an_app_is_restarted_with_arguments_that_the_shell_does_not_interpret(
    phone: Phone,
) -> None:
    launch = phone.device.launch("com.example.notes", ["--es", "user", "Ann's $HOME"])

    phone.do(launch, resolve_activity=ACTIVITY, am_start=STARTED)

    assert phone.asked[-1].startswith("shell am start -W -S -a ")
    assert phone.asked[-1].endswith("""--es user 'Ann'"'"'s $HOME'""")


def test_a_missing_app_is_not_launched(phone: Phone) -> None:
    with pytest.raises(ControllerError, match=r"com\.example\.gone is not installed"):
        phone.do(
            phone.device.launch("com.example.gone"),
            resolve_activity="No activity found",
        )


def test_a_link_is_opened_in_the_named_app(phone: Phone) -> None:
    phone.do(
        phone.device.open_url("notes://item?a=1&b=2", "com.example.notes"),
        am_start=STARTED,
    )

    assert phone.asked == [
        "shell am start -W -a android.intent.action.VIEW -d 'notes://item?a=1&b=2' com.example.notes"
    ]


def test_a_link_that_no_app_opens_is_reported(phone: Phone) -> None:
    printed = "Starting: Intent { }\nError: Activity not started, unable to resolve Intent { dat=notes://item }"

    with pytest.raises(
        ControllerError,
        match="am start: Error: Activity not started, unable to resolve",
    ):
        phone.do(phone.device.open_url("notes://item"), am_start=printed)


def test_a_running_app_is_terminated(phone: Phone) -> None:
    assert phone.do(phone.device.terminate("com.example.notes"), pidof="4711") is True
    assert phone.asked[-1] == "shell am force-stop com.example.notes"


def test_an_app_that_is_not_running_is_not_terminated(phone: Phone) -> None:
    assert phone.do(phone.device.terminate("com.example.notes"), pidof="!") is False
    assert phone.asked == ["shell pidof com.example.notes"]


def test_an_installed_app_is_removed(phone: Phone) -> None:
    answers = {"pm_list": NOTES, "uninstall": "Success"}

    assert phone.do(phone.device.remove("com.example.notes"), **answers) is True
    assert phone.do(phone.device.remove("com.example.gone"), **answers) is False


def test_an_app_that_cannot_be_removed_is_reported(phone: Phone) -> None:
    with pytest.raises(ControllerError, match="cannot be removed: Failure"):
        phone.do(
            phone.device.remove("com.example.notes"),
            pm_list=NOTES,
            uninstall="Failure [DELETE_FAILED]",
        )


def test_an_apps_data_is_cleared(phone: Phone) -> None:
    phone.do(phone.device.clear("com.example.notes"), pm_clear="Success")

    assert phone.asked == ["shell pm clear com.example.notes"]


def test_data_that_cannot_be_cleared_is_reported(phone: Phone) -> None:
    with pytest.raises(
        ControllerError,
        match=r"the state of com\.example\.notes cannot be cleared: Failed",
    ):
        phone.do(phone.device.clear("com.example.notes"), pm_clear="Failed")


def install(phone: Phone, apk: Path, *names: str) -> None:
    for name in names:
        phone.do(
            phone.device.install(App(path=apk, application_id=name)), install="Success"
        )


def test_every_app_of_the_session_is_cleared(phone: Phone, apk: Path) -> None:
    install(phone, apk, "com.example.notes", "com.example.other", "com.example.notes")

    phone.do(phone.device.clear(), pm_clear="Success")

    assert phone.asked == [
        "shell pm clear com.example.other",
        "shell pm clear com.example.notes",
    ]


def test_the_states_of_apps_are_reported(phone: Phone, apk: Path) -> None:
    install(phone, apk, "com.example.notes", "com.example.other", "com.example.third")

    states = phone.do(
        phone.device.apps(),
        dumpsys_activity=RESUMED,
        pidof_com_example_other="1",
        pidof="!",
    )

    assert states == {
        "com.example.notes": AppState.FOREGROUND,
        "com.example.other": AppState.BACKGROUND,
        "com.example.third": AppState.NOT_RUNNING,
    }


def test_a_screenshot_is_decoded_from_base64(phone: Phone) -> None:
    assert (
        phone.do(phone.device.screenshot(), exec_out=f"{PIXEL[:8]}\n{PIXEL[8:]}")
        == b"\x89PNG\r\n\x1a\n"
    )


def test_an_invalid_screenshot_is_reported(phone: Phone) -> None:
    with pytest.raises(
        ControllerError,
        match="no screenshot of emulator-5554: sh: base64: inaccessible",
    ):
        phone.do(
            phone.device.screenshot(), exec_out="sh: base64: inaccessible or not found"
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
    phone: Phone, size: str, x: float, y: float, point: str
) -> None:
    phone.do(phone.device.tap(x, y), dumpsys_window=DISPLAYS.format(size))

    assert phone.asked[-1] == f"shell input tap {point}"


@pytest.mark.parametrize(
    ("size", "orientation"), [("1080x2400", "PORTRAIT"), ("2400x1080", "LANDSCAPE")]
)
def test_the_orientation_follows_from_the_screen_size(
    phone: Phone, size: str, orientation: str
) -> None:
    assert (
        phone.do(phone.device.orientation(), dumpsys_window=DISPLAYS.format(size))
        == orientation
    )


def test_a_screen_without_a_size_is_reported(phone: Phone) -> None:
    with pytest.raises(ControllerError, match="does not report the size"):
        phone.do(phone.device.orientation(), dumpsys_window="nothing")


def test_the_screen_is_rotated_and_stays_so(phone: Phone) -> None:
    phone.do(phone.device.rotate("LANDSCAPE"))

    assert phone.asked == [
        "shell settings put system accelerometer_rotation 0",
        "shell settings put system user_rotation 1",
    ]


def test_its_end_is_noticed(phone: Phone) -> None:
    reported = phone.do(
        phone.device.ended(), get_state="!error: device 'emulator-5554' not found"
    )

    assert reported == "adb no longer reaches emulator-5554"


def commands_at_release(phone: Phone, **answers: str) -> list[str]:
    """Borrow a device of the same adb, install an app, rotate it, release it; return the last commands."""
    found, reported = Found("emulator", program=phone.adb.program), list[str]()

    async def scenario() -> None:
        async with Emulator(
            SERIAL, found, environ=dict(os.environ), log=reported.append
        ) as device:
            phone.adb.answers({"*install*": "Success"})
            await device.install(
                App(path=phone.adb.program, application_id="com.example.notes")
            )
            await device.rotate("LANDSCAPE")
            phone.adb.answers(
                {
                    f"*{name.replace('_', '?')}*": printed
                    for name, printed in answers.items()
                }
            )

    asyncio.run(scenario())
    phone.reported.extend(reported)
    return phone.asked


def test_a_device_is_released_in_its_original_state(phone: Phone) -> None:
    asked = commands_at_release(phone, pm_list=NOTES, uninstall="Success")

    assert "uninstall com.example.notes" in asked
    assert asked[-1] == "shell settings put system accelerometer_rotation 1"
    assert "shell settings put system user_rotation 0" in asked


def test_a_device_that_cannot_be_cleaned_is_reported(phone: Phone) -> None:
    commands_at_release(phone, pm_list="!error: device offline")

    [line] = phone.reported
    assert line.startswith("apps of the session may remain on emulator-5554: adb shell")
    assert "device offline" in line
