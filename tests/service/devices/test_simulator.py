"""An iOS simulator through simctl, which is replaced by recorded output.

The device is asked itself: the service asks it on behalf of controllers, which would have to be started for each command.
"""

import json
import plistlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import AppState, Device
from tests.fakes.machine import FakeMachine
from tests.service.devices.program_device import ProgramDevice, lent

UDID = "6A2D4A9C-70D1-4B5C-9D43-0C2B7B1B2E11"
NOTES = "com.example.notes"
BOOTED = json.dumps(
    {
        "devices": {
            "com.apple.CoreSimulator.SimRuntime.iOS-18-0": [
                {"udid": UDID, "name": "iPhone 16", "state": "Booted"}
            ]
        }
    }
)
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
def machine(tmp_path: Path) -> FakeMachine:
    """A machine with a booted simulator, the user's driver for it, and an earlier build of WebDriverAgent."""
    machine = FakeMachine(tmp_path)
    machine.xcrun.answers({"simctl list devices booted -j": BOOTED})
    machine.install_driver("appium-xcuitest-driver")
    wda_build(machine).mkdir(parents=True)
    return machine


def wda_build(machine: FakeMachine) -> Path:
    derived = machine.directory / "Library/Developer/Xcode/DerivedData"
    return derived / "WebDriverAgent-abc"


def lent_simulator(machine: FakeMachine) -> AbstractContextManager[ProgramDevice]:
    return lent(machine, machine.xcrun, "simctl {}*", "ios")


@pytest.fixture
def simulator(machine: FakeMachine) -> Iterator[ProgramDevice]:
    with lent_simulator(machine) as simulator:
        yield simulator
        simulator.answers()


def install(simulator: ProgramDevice, app: Path) -> str:
    return simulator.do(simulator.device.install(App(path=app)))


def test_the_first_build_of_web_driver_agent_has_a_limit_of_its_own(
    machine: FakeMachine,
) -> None:
    wda_build(machine).rmdir()

    with lent_simulator(machine) as simulator:
        capabilities = simulator.device.tools.capabilities

    assert capabilities["appium:wdaLaunchTimeout"] == 480_000


def test_it_is_known_by_its_udid(simulator: ProgramDevice, tmp_path: Path) -> None:
    device = simulator.device

    assert (device.kind, device.name, device.platform) == ("simulator", UDID, "ios")
    assert device.tools.capabilities == {
        "platformName": "iOS",
        "appium:automationName": "XCUITest",
        "appium:udid": UDID,
    }
    assert device.tools.appium_home == tmp_path / ".appium"


def test_an_app_is_installed_under_the_id_in_its_info_plist(
    simulator: ProgramDevice, app: Path
) -> None:
    assert install(simulator, app) == NOTES
    assert simulator.program.asked == [f"simctl install {UDID} {app}"]


@pytest.mark.parametrize(
    "info", [b"", b"no property list", plistlib.dumps({"CFBundleName": "Notes"})]
)
def test_an_app_without_an_id_is_refused(
    simulator: ProgramDevice, app: Path, info: bytes
) -> None:
    (app / "Info.plist").write_bytes(info)

    with pytest.raises(ControllerError, match=r"Notes\.app has an invalid Info\.plist"):
        install(simulator, app)


@pytest.mark.parametrize(
    "app", [App(url="https://example.com"), App(path=Path("/none.app"))]
)
def test_anything_but_an_app_is_refused(simulator: ProgramDevice, app: App) -> None:
    with pytest.raises(
        ControllerError, match=r"needs an \.app directory, not (https|/none)"
    ):
        simulator.do(simulator.device.install(app))


def test_an_app_that_cannot_be_installed_is_reported_with_the_reason(
    simulator: ProgramDevice,
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
    simulator: ProgramDevice,
) -> None:
    simulator.do(simulator.device.launch(NOTES))
    assert simulator.program.asked == [f"simctl launch {UDID} {NOTES}"]

    simulator.do(simulator.device.launch(NOTES, ["-user", "Ann"]))
    assert simulator.program.asked == [
        f"simctl launch --terminate-running-process {UDID} {NOTES} -user Ann"
    ]


def test_a_link_is_opened(simulator: ProgramDevice) -> None:
    simulator.do(simulator.device.open_url("notes://item?a=1", NOTES))

    assert simulator.program.asked == [f"simctl openurl {UDID} notes://item?a=1"]


def test_a_running_app_is_terminated(simulator: ProgramDevice) -> None:
    assert simulator.do(simulator.device.terminate(NOTES), spawn=RUNNING) is True
    assert simulator.program.asked == [
        f"simctl spawn {UDID} launchctl list",
        f"simctl terminate {UDID} {NOTES}",
    ]


def test_an_app_that_is_not_running_is_not_terminated(
    simulator: ProgramDevice,
) -> None:
    assert (
        simulator.do(simulator.device.terminate("com.example.other"), spawn=RUNNING)
        is False
    )
    assert len(simulator.program.asked) == 1


def test_an_installed_app_is_removed(simulator: ProgramDevice) -> None:
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
    simulator: ProgramDevice, app: Path
) -> None:
    install(simulator, app)

    simulator.do(simulator.device.clear())

    assert [line.split()[1] for line in simulator.program.asked] == [
        "get_app_container",
        "uninstall",
        "install",
    ]


def test_the_state_of_other_apps_is_not_touched(
    simulator: ProgramDevice,
) -> None:
    with pytest.raises(ControllerError, match="this session did not install it"):
        simulator.do(simulator.device.clear("com.apple.Maps"))
    assert simulator.program.asked == []


def test_the_states_of_apps_are_reported(simulator: ProgramDevice, app: Path) -> None:
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
    simulator: ProgramDevice, tmp_path: Path
) -> None:
    (tmp_path / "screen.jpeg").write_bytes(b"\xff\xd8")

    assert simulator.do(simulator.device.screenshot()) == b"\xff\xd8"
    assert simulator.program.asked == [
        f"simctl io {UDID} screenshot --type=jpeg {tmp_path / 'screen.jpeg'}"
    ]


def test_a_missing_screenshot_is_reported(simulator: ProgramDevice) -> None:
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
    simulator: ProgramDevice,
    ask: Callable[[Device], Coroutine[Any, Any, Any]],
) -> None:
    with pytest.raises(ControllerError, match="simctl has no command for it"):
        simulator.do(ask(simulator.device))


def test_its_end_is_noticed(simulator: ProgramDevice) -> None:
    reported = simulator.do(
        simulator.device.ended(), spawn="!Unable to lookup in current state: Shutdown"
    )

    assert reported == f"the simulator {UDID} was shut down"


def commands_at_release(
    machine: FakeMachine, app: Path, **answers: str
) -> Sequence[str]:
    """Lend the simulator, install the app, end the session; return the last commands."""
    with lent_simulator(machine) as simulator:
        install(simulator, app)
        simulator.answers(**answers)
    return simulator.program.asked


def test_a_simulator_is_released_without_the_app(
    machine: FakeMachine, app: Path
) -> None:
    assert commands_at_release(machine, app)[-1] == f"simctl uninstall {UDID} {NOTES}"


def test_a_simulator_that_cannot_be_cleaned_is_reported(
    machine: FakeMachine, app: Path
) -> None:
    commands_at_release(machine, app, uninstall="!Invalid device state")

    assert machine.reported[-1].startswith(
        f"apps of the session may remain on {UDID}: xcrun simctl uninstall"
    )
