"""Which device a session gets, depending on the machine, the request and other sessions."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.devices.availability import (
    Availability,
    Choice,
    ConnectedDevice,
    choose,
)
from pytest_device.service.devices.base import Device
from pytest_device.service.devices.emulator import parse as parse_adb
from pytest_device.service.devices.kinds import Devices, Machine, all_available
from pytest_device.service.devices.simulator import parse as parse_simctl
from pytest_device.service.programs.guard import Guard
from pytest_device.spec import Platform, SessionType

Script = Callable[[str, str], Path]

ADB = """* daemon not running; starting now at tcp:5037
* daemon started successfully
List of devices attached
emulator-5554          device product:sdk_gphone64_x86_64 model:sdk_gphone64_x86_64 device:emu64x transport_id:1
emulator-5556          offline transport_id:4
0A041JEC205466         unauthorized usb:1-4 transport_id:3
2B131FDH2000ST         device usb:1-2 product:panther model:Pixel_7 device:panther transport_id:2
192.168.1.20:5555      device product:a52qnsxx model:SM_A525F device:a52q transport_id:5

"""

IPHONE = {
    "dataPathSize": 4096,
    "udid": "6A2D4A9C-70D1-4B5C-9D43-0C2B7B1B2E11",
    "isAvailable": True,
    "deviceTypeIdentifier": "com.apple.CoreSimulator.SimDeviceType.iPhone-16-Pro",
    "state": "Booted",
    "name": "iPhone 16 Pro",
}
SIMCTL = json.dumps(
    {
        "devices": {
            "com.apple.CoreSimulator.SimRuntime.watchOS-11-0": [
                {**IPHONE, "udid": "W", "name": "Apple Watch"}
            ],
            "com.apple.CoreSimulator.SimRuntime.iOS-18-0": [
                IPHONE,
                {**IPHONE, "udid": "S", "state": "Shutting Down"},
            ],
            "com.apple.CoreSimulator.SimRuntime.iOS-17-5": [],
        }
    }
)

PIXEL = ConnectedDevice.of("2B131FDH2000ST", "panther", "Pixel_7")
EMULATOR = ConnectedDevice.of("emulator-5554", "sdk_gphone64_x86_64")
ANDROIDS = Availability("emulator", [EMULATOR, PIXEL])
NO_ANDROIDS = Availability("emulator", missing="adb is not on PATH", fix="install adb")
CHROMIUM = Availability("chromium", program=Path("/usr/bin/chromium"))
NO_CHROMIUM = Availability(
    "chromium", missing="no Chromium is on PATH", fix="apt-get install chromium"
)
FAKE = Availability("fake")


def test_adb_lists_the_devices_that_are_ready_with_all_their_names() -> None:
    assert [device.udid for device in parse_adb(ADB)] == [
        "emulator-5554",
        "2B131FDH2000ST",
        "192.168.1.20:5555",
    ]
    assert parse_adb(ADB)[1] == PIXEL


def test_adb_without_a_device_lists_none() -> None:
    assert parse_adb("List of devices attached\n\n") == []


def test_simctl_lists_the_booted_ios_simulators() -> None:
    [simulator] = parse_simctl(SIMCTL)
    assert simulator == ConnectedDevice.of(
        "6A2D4A9C-70D1-4B5C-9D43-0C2B7B1B2E11", "iphone 16 pro"
    )


@pytest.mark.parametrize(
    ("identifier", "taken", "udid"),
    [
        (None, (), "emulator-5554"),
        (None, ("emulator-5554",), "2B131FDH2000ST"),
        ("2B131FDH2000ST", (), "2B131FDH2000ST"),
        ("pixel_7", (), "2B131FDH2000ST"),
        ("Pixel 7", ("emulator-5554",), "2B131FDH2000ST"),
    ],
)
def test_a_session_gets_a_free_device_of_the_requested_name(
    identifier: str | None, taken: tuple[str, ...], udid: str
) -> None:
    choice = choose([ANDROIDS, CHROMIUM, FAKE], Platform.ANDROID, identifier, taken)

    assert choice.device
    assert choice.device.udid == udid


@pytest.mark.parametrize(
    ("identifier", "taken", "message"),
    [
        (
            "pixel_9",
            (),
            r"'pixel_9' is not a running android device: 2B131FDH2000ST, emulator-5554",
        ),
        ("pixel_7", ("2B131FDH2000ST",), "in use by another session: 2B131FDH2000ST"),
        (
            None,
            ("2B131FDH2000ST", "emulator-5554"),
            "in use by another session: emulator-5554, 2B131FDH2000ST",
        ),
    ],
)
def test_a_session_never_gets_a_device_other_than_the_requested_one(
    identifier: str | None, taken: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ControllerError, match=message):
        choose([ANDROIDS, CHROMIUM, FAKE], Platform.ANDROID, identifier, taken)


@pytest.mark.parametrize(
    ("availabilities", "identifier", "choice"),
    [
        ([NO_ANDROIDS, CHROMIUM, FAKE], None, CHROMIUM),
        ([NO_ANDROIDS, CHROMIUM, FAKE], "pixel_7", CHROMIUM),
        ([ANDROIDS, CHROMIUM, FAKE], "chromium", CHROMIUM),
        ([ANDROIDS, CHROMIUM, FAKE], "fake", FAKE),
        ([NO_ANDROIDS, NO_CHROMIUM, FAKE], "fake", FAKE),
    ],
)
def test_a_kind_is_used_if_the_preferred_ones_are_missing_or_on_request(
    availabilities: Sequence[Availability], identifier: str | None, choice: Availability
) -> None:
    assert choose(availabilities, Platform.ANDROID, identifier, ()) == Choice(choice)


@pytest.mark.parametrize(
    ("availabilities", "identifier", "message"),
    [
        (
            [NO_ANDROIDS, NO_CHROMIUM],
            None,
            r"no android device .* \(emulator: adb is not on PATH; chromium: no Chromium is on PATH\): apt-get install",
        ),
        (
            [NO_ANDROIDS, NO_CHROMIUM, FAKE],
            "pixel_7",
            r"adb is not on PATH; .*\): apt-get install chromium$",
        ),
        (
            [ANDROIDS, NO_CHROMIUM],
            "chromium",
            r"\(chromium: no Chromium is on PATH\): apt-get install chromium$",
        ),
        (
            [ANDROIDS, CHROMIUM],
            "fake",
            "'fake': that device is for appium sessions only",
        ),
    ],
)
def test_without_any_device_the_install_command_is_reported(
    availabilities: Sequence[Availability], identifier: str | None, message: str
) -> None:
    with pytest.raises(ControllerError, match=message):
        choose(availabilities, Platform.ANDROID, identifier, ())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An Appium home with the driver for Android."""
    package = (
        tmp_path / "home/.appium/node_modules/appium-uiautomator2-driver/package.json"
    )
    package.parent.mkdir(parents=True)
    package.write_text("{}")
    return tmp_path / "home"


def look(
    platform: Platform,
    home: Path,
    session_type: SessionType = SessionType.APPIUM,
    **environ: str,
) -> list[Availability]:
    return list(
        asyncio.run(all_available(platform, session_type, Machine(environ, home)))
    )


def lists(script: Script, printed: str = ADB) -> Path:
    """Put an adb on a path that lists devices, where it is asked for them; return the path."""
    return script(
        "adb",
        f"#!/bin/sh\n[ \"$*\" = 'devices -l' ] && /bin/cat <<'END'\n{printed}\nEND\n",
    ).parent


def test_real_devices_are_found_if_their_driver_is_installed(
    home: Path, script: Script
) -> None:
    path = lists(script)

    emulators = look(Platform.ANDROID, home, PATH=str(path))[0]

    assert emulators == Availability(
        "emulator", parse_adb(ADB), program=path / "adb", appium_home=home / ".appium"
    )


def test_controllers_other_than_appium_need_no_appium_driver(
    tmp_path: Path, script: Script
) -> None:
    path = str(lists(script))

    assert (
        look(Platform.ANDROID, tmp_path, SessionType.ARGENT, PATH=path)[0].missing == ""
    )
    assert (
        "appium-uiautomator2-driver is not"
        in look(Platform.ANDROID, tmp_path, PATH=path)[0].missing
    )


def test_adb_is_found_in_the_sdk(home: Path, script: Script) -> None:
    path = lists(script)
    path.rename(path.with_name("platform-tools"))

    assert (
        len(look(Platform.ANDROID, home, ANDROID_HOME=str(path.parent))[0].devices) == 3
    )


def test_another_appium_home_is_respected(
    home: Path, tmp_path: Path, script: Script
) -> None:
    path, elsewhere = str(lists(script)), home / ".appium"

    assert (
        look(Platform.ANDROID, tmp_path, PATH=path, APPIUM_HOME=str(elsewhere))[
            0
        ].appium_home
        == elsewhere
    )


def test_adb_runs_in_the_users_home(home: Path, script: Script) -> None:
    adb = script("adb", '#!/bin/sh\necho "$HOME device"\n')

    assert look(Platform.ANDROID, home, PATH=str(adb.parent), HOME="/elsewhere")[
        0
    ].devices[0].udid == str(home)


@pytest.mark.parametrize(
    ("platform", "tool", "printed", "why"),
    [
        (
            Platform.IOS,
            "none",
            "",
            "xcrun is not on PATH; appium-xcuitest-driver is not installed in",
        ),
        (Platform.ANDROID, "none", "", "adb is not on PATH"),
        (
            Platform.ANDROID,
            "adb",
            "echo 'cannot connect to daemon' >&2; exit 1",
            "cannot connect to daemon",
        ),
        (
            Platform.ANDROID,
            "adb",
            "echo 'List of devices attached'",
            "lists no ready device",
        ),
        (
            Platform.IOS,
            "xcrun",
            "echo 'no Xcode' >&2; exit 1",
            "devices booted -j: .* no Xcode",
        ),
        (Platform.IOS, "xcrun", "echo oops", "devices booted -j: Expecting value"),
        (
            Platform.IOS,
            "xcrun",
            "echo '{\"devices\": {}}'",
            "lists no booted simulator",
        ),
    ],
)
def test_the_reason_for_a_missing_real_device_is_reported(
    platform: Platform, tool: str, printed: str, why: str, home: Path, script: Script
) -> None:
    path = script(tool, f"#!/bin/sh\n{printed}\n").parent

    availability = look(platform, home, PATH=str(path))[0]

    assert not availability.devices
    assert availability.fix
    with pytest.raises(ControllerError, match=why):
        choose([availability], platform, None, ())


@pytest.mark.parametrize(
    ("programs", "session_type", "missing"),
    [
        ((), SessionType.APPIUM, "no Chromium is on PATH, chromedriver is not on PATH"),
        (("chromium",), SessionType.APPIUM, "chromedriver is not on PATH"),
        (("chromium",), SessionType.AGENT_DEVICE, ""),
        (("chromium", "chromedriver"), SessionType.APPIUM, ""),
    ],
)
def test_appium_needs_chromedriver_and_a_browser(
    programs: Sequence[str],
    session_type: SessionType,
    missing: str,
    tmp_path: Path,
    script: Script,
) -> None:
    for name in programs:
        script(name, "#!/bin/sh\n")

    availability = look(
        Platform.IOS, tmp_path, session_type, PATH=str(tmp_path / "bin")
    )[1]

    assert (availability.kind, availability.missing) == ("chromium", missing)


@pytest.mark.parametrize("tool", ["apt-get", "brew"])
def test_the_command_to_install_a_browser_fits_the_machine(
    tool: str, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.defpath", "")
    path = script(tool, "#!/bin/sh\n").parent

    assert look(Platform.IOS, tmp_path, PATH=str(path))[1].fix.startswith(
        f"{tool} install "
    )
    assert look(Platform.IOS, tmp_path, PATH="")[1].fix.startswith(
        "install Chromium, and chromedriver"
    )


@pytest.fixture
def reported() -> list[str]:
    return []


@pytest.fixture
def devices(tmp_path: Path, script: Script, reported: list[str]) -> Devices:
    """Two Android devices, and no browser."""
    environ = {
        "PATH": str(
            lists(
                script,
                ADB.replace(
                    "192.168.1.20:5555      device", "192.168.1.20:5555      gone"
                ),
            )
        )
    }
    guard = Guard(environ=environ, log=reported.append)
    return Devices(
        environ=environ,
        home=tmp_path,
        guard=guard,
        log=reported.append,
        handover_seconds=0,
    )


@asynccontextmanager
async def lent(
    devices: Devices, directory: Path, **request: Any
) -> AsyncGenerator[Device, None]:
    async with devices.borrowed(
        {"platform": "android", "type": "argent"} | request, directory
    ) as device:
        yield device


def test_a_device_serves_one_session_at_a_time_and_again_later(
    devices: Devices, tmp_path: Path
) -> None:
    async def scenario() -> list[str]:
        names: list[str] = []
        for _ in range(2):
            async with AsyncExitStack() as stack:
                names += [
                    (await stack.enter_async_context(lent(devices, tmp_path))).name
                    for _ in range(2)
                ]
                with pytest.raises(ControllerError, match="in use by another session"):
                    await stack.enter_async_context(lent(devices, tmp_path))
        return names

    assert asyncio.run(scenario()) == ["emulator-5554", "2B131FDH2000ST"] * 2


def test_the_fake_device_is_used_only_if_requested_by_name(
    devices: Devices, tmp_path: Path, reported: list[str]
) -> None:
    async def scenario(**request: Any) -> Device:
        async with lent(devices, tmp_path, type="appium", **request) as device:
            return device

    device = asyncio.run(scenario(deviceIdentifier="fake"))

    assert (device.kind, device.name) == ("fake", "fake")
    no_emulator = f"no emulator: appium-uiautomator2-driver is not installed in {tmp_path}/.appium"
    no_browser = "no chromium: no Chromium is on PATH, chromedriver is not on PATH"
    assert reported == [f"device: fake (fake); {no_emulator}; {no_browser}"]
    with pytest.raises(
        ControllerError,
        match=r"no android device for the session .* no Chromium is on PATH",
    ):
        asyncio.run(scenario())


def test_a_session_without_a_type_is_an_agent_device_session(
    devices: Devices, tmp_path: Path
) -> None:
    async def scenario() -> str:
        async with devices.borrowed({"platform": "android"}, tmp_path) as device:
            return device.kind

    assert asyncio.run(scenario()) == "emulator"


def test_a_phone_that_the_browser_cannot_emulate_is_refused(
    tmp_path: Path, script: Script
) -> None:
    path = script("chromium", "#!/bin/sh\n").parent
    guard = Guard(environ={}, log=print)
    devices = Devices(
        environ={"PATH": str(path)}, home=tmp_path, guard=guard, log=print
    )

    async def scenario() -> None:
        async with lent(devices, tmp_path, deviceIdentifier="pixel_99"):
            pass

    with pytest.raises(ControllerError, match="'pixel_99' is not an android phone"):
        asyncio.run(scenario())
