"""An iOS simulator through simctl, which is replaced by recorded output."""

import asyncio
import os
import plistlib
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.availability import Availability
from pytest_device.service.devices.base import AppState, Device
from pytest_device.service.devices.simulator import Simulator
from tests.fakes.programs import FakeProgram
from tests.service.devices.program_device import ProgramDevice

UDID = "6A2D4A9C-70D1-4B5C-9D43-0C2B7B1B2E11"
NOTES = "com.example.notes"
RUNNING = (
    "PID\tStatus\tLabel\n"
    "4711\t0\tUIKitApplication:com.example.notes[7a1b][rb-legacy]\n"
    "-\t0\tUIKitApplication:com.example.other[9c2d][rb-legacy]\n"
    "812\t0\tcom.apple.SpringBoard\n"
)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "Notes.app"
    path.mkdir()
    (path / "Info.plist").write_bytes(
        plistlib.dumps({"CFBundleIdentifier": NOTES}, fmt=plistlib.FMT_BINARY)
    )
    return path


@pytest.fixture
def simulator(tmp_path: Path) -> Generator[ProgramDevice[Simulator]]:
    xcrun = FakeProgram.made(tmp_path / "bin" / "xcrun")
    availability, reported = (
        Availability("simulator", program=xcrun.path, appium_home=tmp_path / ".appium"),
        list[str](),
    )
    (tmp_path / "Library/Developer/Xcode/DerivedData/WebDriverAgent-abc").mkdir(
        parents=True
    )
    environ = {**os.environ, "HOME": str(tmp_path)}
    lending = Simulator(
        UDID, availability, environ=environ, directory=tmp_path, log=reported.append
    )
    yield ProgramDevice(
        xcrun, asyncio.run(lending.__aenter__()), "simctl {}*", reported
    )
    xcrun.answers({})
    asyncio.run(lending.__aexit__(None, None, None))


def install(simulator: ProgramDevice[Simulator], app: Path) -> str:
    return simulator.do(simulator.device.install(App(path=app)))


def test_the_first_build_of_web_driver_agent_has_a_limit_of_its_own(
    simulator: ProgramDevice[Simulator], tmp_path: Path
) -> None:
    (tmp_path / "Library/Developer/Xcode/DerivedData/WebDriverAgent-abc").rmdir()
    availability = Availability(
        "simulator", program=simulator.program.path, appium_home=tmp_path / ".appium"
    )

    async def scenario() -> object:
        async with Simulator(
            UDID,
            availability,
            environ={"HOME": str(tmp_path)},
            directory=tmp_path,
            log=simulator.reported.append,
        ) as device:
            return device.tools.capabilities["appium:wdaLaunchTimeout"]

    assert asyncio.run(scenario()) == 480_000
    assert "appium:wdaLaunchTimeout" not in simulator.device.tools.capabilities


def test_it_is_known_by_its_udid(
    simulator: ProgramDevice[Simulator], tmp_path: Path
) -> None:
    device: Device = simulator.device

    assert (device.kind, device.name, device.platform) == ("simulator", UDID, "ios")
    assert device.tools.capabilities == {
        "platformName": "iOS",
        "appium:automationName": "XCUITest",
        "appium:udid": UDID,
    }
    assert device.tools.appium_home == tmp_path / ".appium"


def test_an_app_is_installed_under_the_id_in_its_info_plist(
    simulator: ProgramDevice[Simulator], app: Path
) -> None:
    assert install(simulator, app) == NOTES
    assert simulator.program.asked == [f"simctl install {UDID} {app}"]


@pytest.mark.parametrize(
    "info", [b"", b"no property list", plistlib.dumps({"CFBundleName": "Notes"})]
)
def test_an_app_without_an_id_is_refused(
    simulator: ProgramDevice[Simulator], app: Path, info: bytes
) -> None:
    (app / "Info.plist").write_bytes(info)

    with pytest.raises(ControllerError, match=r"Notes\.app has an invalid Info\.plist"):
        install(simulator, app)


@pytest.mark.parametrize(
    "app", [App(url="https://example.com"), App(path=Path("/none.app"))]
)
def test_anything_but_an_app_is_refused(
    simulator: ProgramDevice[Simulator], app: App
) -> None:
    with pytest.raises(
        ControllerError, match=r"needs an \.app directory, not (https|/none)"
    ):
        simulator.do(simulator.device.install(app))


def test_an_app_that_cannot_be_installed_is_reported_with_the_reason(
    simulator: ProgramDevice[Simulator],
    app: Path,
) -> None:
    with pytest.raises(
        ControllerError,
        match=r"xcrun simctl install .*: .* Failed to find matching arch",
    ):
        simulator.do(
            simulator.device.install(App(path=app)),
            install="!Failed to find matching arch for input file",
        )


def test_without_arguments_an_app_is_brought_to_the_front_and_with_them_restarted(
    simulator: ProgramDevice[Simulator],
) -> None:
    simulator.do(simulator.device.launch(NOTES))
    assert simulator.program.asked == [f"simctl launch {UDID} {NOTES}"]

    simulator.do(simulator.device.launch(NOTES, ["-user", "Ann"]))
    assert simulator.program.asked == [
        f"simctl launch --terminate-running-process {UDID} {NOTES} -user Ann"
    ]


def test_a_link_is_opened(simulator: ProgramDevice[Simulator]) -> None:
    simulator.do(simulator.device.open_url("notes://item?a=1", NOTES))

    assert simulator.program.asked == [f"simctl openurl {UDID} notes://item?a=1"]


def test_a_running_app_is_terminated(simulator: ProgramDevice[Simulator]) -> None:
    assert simulator.do(simulator.device.terminate(NOTES), spawn=RUNNING) is True
    assert simulator.program.asked == [
        f"simctl spawn {UDID} launchctl list",
        f"simctl terminate {UDID} {NOTES}",
    ]


def test_an_app_that_is_not_running_is_not_terminated(
    simulator: ProgramDevice[Simulator],
) -> None:
    assert (
        simulator.do(simulator.device.terminate("com.example.other"), spawn=RUNNING)
        is False
    )
    assert len(simulator.program.asked) == 1


def test_an_installed_app_is_removed(simulator: ProgramDevice[Simulator]) -> None:
    assert (
        simulator.do(
            simulator.device.remove(NOTES), get_app_container="/Users/someone/Notes.app"
        )
        is True
    )
    assert simulator.program.asked[-1] == f"simctl uninstall {UDID} {NOTES}"
    assert (
        simulator.do(
            simulator.device.remove(NOTES),
            get_app_container="!No such file or directory",
        )
        is False
    )


def test_an_apps_state_is_cleared_by_reinstalling_it(
    simulator: ProgramDevice[Simulator], app: Path
) -> None:
    install(simulator, app)

    simulator.do(simulator.device.clear())

    assert [line.split()[1] for line in simulator.program.asked] == [
        "get_app_container",
        "uninstall",
        "install",
    ]


def test_the_state_of_other_apps_is_not_touched(
    simulator: ProgramDevice[Simulator],
) -> None:
    with pytest.raises(ControllerError, match="this session did not install it"):
        simulator.do(simulator.device.clear("com.apple.Maps"))
    assert simulator.program.asked == []


def test_the_states_of_apps_are_reported(
    simulator: ProgramDevice[Simulator], app: Path
) -> None:
    install(simulator, app)
    assert simulator.do(simulator.device.apps(), spawn="PID\tStatus\tLabel\n") == {
        NOTES: AppState.NOT_RUNNING
    }
    assert simulator.do(simulator.device.apps(), spawn=RUNNING) == {
        NOTES: AppState.BACKGROUND
    }

    simulator.do(simulator.device.launch(NOTES))

    assert simulator.do(simulator.device.apps(), spawn=RUNNING) == {
        NOTES: AppState.FOREGROUND
    }


def test_a_screenshot_is_the_file_that_simctl_writes(
    simulator: ProgramDevice[Simulator], tmp_path: Path
) -> None:
    (tmp_path / "screen.jpeg").write_bytes(b"\xff\xd8")

    assert simulator.do(simulator.device.screenshot()) == b"\xff\xd8"
    assert simulator.program.asked == [
        f"simctl io {UDID} screenshot --type=jpeg {tmp_path / 'screen.jpeg'}"
    ]


def test_a_missing_screenshot_is_reported(simulator: ProgramDevice[Simulator]) -> None:
    with pytest.raises(
        ControllerError, match=r"no screenshot of .*: No such file or directory"
    ):
        simulator.do(simulator.device.screenshot())


@pytest.mark.parametrize(
    "ask",
    [
        lambda device: device.tap(0.5, 0.5),
        lambda device: device.orientation(),
        lambda device: device.rotate("LANDSCAPE"),
    ],
)
def test_actions_without_a_simctl_command_are_refused(
    simulator: ProgramDevice[Simulator],
    ask: Callable[[Device], Coroutine[Any, Any, Any]],
) -> None:
    with pytest.raises(ControllerError, match="simctl has no command for it"):
        simulator.do(ask(simulator.device))


def test_its_end_is_noticed(simulator: ProgramDevice[Simulator]) -> None:
    reported = simulator.do(
        simulator.device.ended(), spawn="!Unable to lookup in current state: Shutdown"
    )

    assert reported == f"the simulator {UDID} was shut down"


def commands_at_release(
    simulator: ProgramDevice[Simulator], app: Path, **answers: str
) -> list[str]:
    """Borrow a simulator of the same xcrun, install the app, release it; return the last commands."""
    availability = Availability("simulator", program=simulator.program.path)

    async def scenario() -> None:
        lending = Simulator(
            UDID,
            availability,
            environ=dict(os.environ),
            directory=app.parent,
            log=simulator.reported.append,
        )
        async with lending as device:
            await device.install(App(path=app))
            simulator.program.answers(
                {f"simctl {name}*": printed for name, printed in answers.items()}
            )

    asyncio.run(scenario())
    return simulator.program.asked


def test_a_simulator_is_released_without_the_app(
    simulator: ProgramDevice[Simulator], app: Path
) -> None:
    assert commands_at_release(simulator, app)[-1] == f"simctl uninstall {UDID} {NOTES}"


def test_a_simulator_that_cannot_be_cleaned_is_reported(
    simulator: ProgramDevice[Simulator], app: Path
) -> None:
    commands_at_release(simulator, app, uninstall="!Invalid device state")

    [line] = simulator.reported
    assert line.startswith(
        f"apps of the session may remain on {UDID}: xcrun simctl uninstall"
    )
