"""An iOS simulator through simctl, which is replaced by recorded output."""

import asyncio
import os
import plistlib
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import AppState, Device
from pytest_device.service.devices.found import Found
from pytest_device.service.devices.simulator import Simulator
from tests.service.devices.recorded import Recorded

_Result = TypeVar("_Result")

UDID = "6A2D4A9C-70D1-4B5C-9D43-0C2B7B1B2E11"
NOTES = "com.example.notes"
RUNNING = (
    "PID\tStatus\tLabel\n"
    "4711\t0\tUIKitApplication:com.example.notes[7a1b][rb-legacy]\n"
    "-\t0\tUIKitApplication:com.example.other[9c2d][rb-legacy]\n"
    "812\t0\tcom.apple.SpringBoard\n"
)


@dataclass
class Phone:
    """A simulator and its xcrun."""

    xcrun: Recorded
    device: Simulator
    app: Path
    reported: list[str] = field(default_factory=list)

    def do(self, work: Coroutine[Any, Any, _Result], **answers: str) -> _Result:
        """Run an action with this output of a simctl command."""
        self.xcrun.answers(
            {f"simctl {name}*": printed for name, printed in answers.items()}
        )
        return asyncio.run(work)

    def install(self) -> str:
        return self.do(self.device.install(App(path=self.app)))

    @property
    def asked(self) -> list[str]:
        return self.xcrun.asked


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "Notes.app"
    path.mkdir()
    (path / "Info.plist").write_bytes(
        plistlib.dumps({"CFBundleIdentifier": NOTES}, fmt=plistlib.FMT_BINARY)
    )
    return path


@pytest.fixture
def phone(tmp_path: Path, app: Path) -> Generator[Phone]:
    xcrun = Recorded.made(tmp_path / "bin" / "xcrun")
    found, reported = (
        Found("simulator", program=xcrun.program, appium_home=tmp_path / ".appium"),
        list[str](),
    )
    (tmp_path / "Library/Developer/Xcode/DerivedData/WebDriverAgent-abc").mkdir(
        parents=True
    )
    environ = {**os.environ, "HOME": str(tmp_path)}
    lending = Simulator(
        UDID, found, environ=environ, directory=tmp_path, log=reported.append
    )
    yield Phone(xcrun, asyncio.run(lending.__aenter__()), app, reported)
    xcrun.answers({})
    asyncio.run(lending.__aexit__(None, None, None))


def test_the_first_build_of_web_driver_agent_has_a_limit_of_its_own(
    phone: Phone, tmp_path: Path
) -> None:
    (tmp_path / "Library/Developer/Xcode/DerivedData/WebDriverAgent-abc").rmdir()
    found = Found(
        "simulator", program=phone.xcrun.program, appium_home=tmp_path / ".appium"
    )

    async def scenario() -> object:
        async with Simulator(
            UDID,
            found,
            environ={"HOME": str(tmp_path)},
            directory=tmp_path,
            log=phone.reported.append,
        ) as device:
            return device.tools.capabilities["appium:wdaLaunchTimeout"]

    assert asyncio.run(scenario()) == 480_000
    assert "appium:wdaLaunchTimeout" not in phone.device.tools.capabilities


def test_it_is_known_by_its_udid(phone: Phone, tmp_path: Path) -> None:
    device: Device = phone.device

    assert (device.kind, device.name, device.platform) == ("simulator", UDID, "ios")
    assert device.tools.capabilities == {
        "platformName": "iOS",
        "appium:automationName": "XCUITest",
        "appium:udid": UDID,
    }
    assert device.tools.appium_home == tmp_path / ".appium"


def test_an_app_is_installed_under_the_id_in_its_info_plist(phone: Phone) -> None:
    assert phone.install() == NOTES
    assert phone.asked == [f"simctl install {UDID} {phone.app}"]


@pytest.mark.parametrize(
    "info", [b"", b"no property list", plistlib.dumps({"CFBundleName": "Notes"})]
)
def test_an_app_without_an_id_is_refused(phone: Phone, info: bytes) -> None:
    (phone.app / "Info.plist").write_bytes(info)

    with pytest.raises(ControllerError, match=r"Notes\.app has an invalid Info\.plist"):
        phone.install()


@pytest.mark.parametrize(
    "app", [App(url="https://example.com"), App(path=Path("/none.app"))]
)
def test_anything_but_an_app_is_refused(phone: Phone, app: App) -> None:
    with pytest.raises(
        ControllerError, match=r"needs an \.app directory, not (https|/none)"
    ):
        phone.do(phone.device.install(app))


def test_an_app_that_cannot_be_installed_is_reported_with_the_reason(
    phone: Phone,
) -> None:
    with pytest.raises(
        ControllerError,
        match=r"xcrun simctl install .*: .* Failed to find matching arch",
    ):
        phone.do(
            phone.device.install(App(path=phone.app)),
            install="!Failed to find matching arch for input file",
        )


def test_without_arguments_an_app_is_brought_to_the_front_and_with_them_restarted(
    phone: Phone,
) -> None:
    phone.do(phone.device.launch(NOTES))
    assert phone.asked == [f"simctl launch {UDID} {NOTES}"]

    phone.do(phone.device.launch(NOTES, ["-user", "Ann"]))
    assert phone.asked == [
        f"simctl launch --terminate-running-process {UDID} {NOTES} -user Ann"
    ]


def test_a_link_is_opened(phone: Phone) -> None:
    phone.do(phone.device.open_url("notes://item?a=1", NOTES))

    assert phone.asked == [f"simctl openurl {UDID} notes://item?a=1"]


def test_a_running_app_is_terminated(phone: Phone) -> None:
    assert phone.do(phone.device.terminate(NOTES), spawn=RUNNING) is True
    assert phone.asked == [
        f"simctl spawn {UDID} launchctl list",
        f"simctl terminate {UDID} {NOTES}",
    ]


def test_an_app_that_is_not_running_is_not_terminated(phone: Phone) -> None:
    assert phone.do(phone.device.terminate("com.example.other"), spawn=RUNNING) is False
    assert len(phone.asked) == 1


def test_an_installed_app_is_removed(phone: Phone) -> None:
    assert (
        phone.do(
            phone.device.remove(NOTES), get_app_container="/Users/someone/Notes.app"
        )
        is True
    )
    assert phone.asked[-1] == f"simctl uninstall {UDID} {NOTES}"
    assert (
        phone.do(
            phone.device.remove(NOTES), get_app_container="!No such file or directory"
        )
        is False
    )


def test_an_apps_state_is_cleared_by_reinstalling_it(phone: Phone) -> None:
    phone.install()

    phone.do(phone.device.clear())

    assert [line.split()[1] for line in phone.asked] == [
        "get_app_container",
        "uninstall",
        "install",
    ]


def test_the_state_of_other_apps_is_not_touched(phone: Phone) -> None:
    with pytest.raises(ControllerError, match="this session did not install it"):
        phone.do(phone.device.clear("com.apple.Maps"))
    assert phone.asked == []


def test_the_states_of_apps_are_reported(phone: Phone) -> None:
    phone.install()
    assert phone.do(phone.device.apps(), spawn="PID\tStatus\tLabel\n") == {
        NOTES: AppState.NOT_RUNNING
    }
    assert phone.do(phone.device.apps(), spawn=RUNNING) == {NOTES: AppState.BACKGROUND}

    phone.do(phone.device.launch(NOTES))

    assert phone.do(phone.device.apps(), spawn=RUNNING) == {NOTES: AppState.FOREGROUND}


def test_a_screenshot_is_the_file_that_simctl_writes(
    phone: Phone, tmp_path: Path
) -> None:
    (tmp_path / "screen.jpeg").write_bytes(b"\xff\xd8")

    assert phone.do(phone.device.screenshot()) == b"\xff\xd8"
    assert phone.asked == [
        f"simctl io {UDID} screenshot --type=jpeg {tmp_path / 'screen.jpeg'}"
    ]


def test_a_missing_screenshot_is_reported(phone: Phone) -> None:
    with pytest.raises(
        ControllerError, match=r"no screenshot of .*: No such file or directory"
    ):
        phone.do(phone.device.screenshot())


@pytest.mark.parametrize(
    "ask",
    [
        lambda device: device.tap(0.5, 0.5),
        lambda device: device.orientation(),
        lambda device: device.rotate("LANDSCAPE"),
    ],
)
def test_actions_without_a_simctl_command_are_refused(
    phone: Phone, ask: Callable[[Device], Coroutine[Any, Any, Any]]
) -> None:
    with pytest.raises(ControllerError, match="simctl has no command for it"):
        phone.do(ask(phone.device))


def test_its_end_is_noticed(phone: Phone) -> None:
    reported = phone.do(
        phone.device.ended(), spawn="!Unable to lookup in current state: Shutdown"
    )

    assert reported == f"the simulator {UDID} was shut down"


def commands_at_release(phone: Phone, tmp_path: Path, **answers: str) -> list[str]:
    """Borrow a simulator of the same xcrun, install the app, release it; return the last commands."""
    found = Found("simulator", program=phone.xcrun.program)

    async def scenario() -> None:
        lending = Simulator(
            UDID,
            found,
            environ=dict(os.environ),
            directory=tmp_path,
            log=phone.reported.append,
        )
        async with lending as device:
            await device.install(App(path=phone.app))
            phone.xcrun.answers(
                {f"simctl {name}*": printed for name, printed in answers.items()}
            )

    asyncio.run(scenario())
    return phone.asked


def test_a_simulator_is_released_without_the_app(phone: Phone, tmp_path: Path) -> None:
    assert (
        commands_at_release(phone, tmp_path)[-1] == f"simctl uninstall {UDID} {NOTES}"
    )


def test_a_simulator_that_cannot_be_cleaned_is_reported(
    phone: Phone, tmp_path: Path
) -> None:
    commands_at_release(phone, tmp_path, uninstall="!Invalid device state")

    [line] = phone.reported
    assert line.startswith(
        f"apps of the session may remain on {UDID}: xcrun simctl uninstall"
    )
