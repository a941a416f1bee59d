import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.runners.drivers import Device, Found, choose, find, parse_adb, parse_simctl
from pytest_device.spec import Platform

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
            "com.apple.CoreSimulator.SimRuntime.watchOS-11-0": [{**IPHONE, "udid": "W", "name": "Apple Watch"}],
            "com.apple.CoreSimulator.SimRuntime.iOS-18-0": [
                IPHONE,
                {**IPHONE, "udid": "S", "state": "Shutting Down"},
            ],
            "com.apple.CoreSimulator.SimRuntime.iOS-17-5": [],
        }
    }
)

PIXEL = Device("2B131FDH2000ST", frozenset({"2b131fdh2000st", "panther", "pixel 7"}))
EMULATOR = Device("emulator-5554", frozenset({"emulator-5554"}))
ANDROIDS = Found([EMULATOR, PIXEL], Path("/home/someone/.appium"))


def test_adb_lists_the_devices_that_are_ready_with_all_their_names() -> None:
    assert [device.udid for device in parse_adb(ADB)] == ["emulator-5554", "2B131FDH2000ST", "192.168.1.20:5555"]
    assert parse_adb(ADB)[1] == PIXEL


def test_adb_without_a_device_lists_none() -> None:
    assert parse_adb("List of devices attached\n\n") == []


def test_simctl_lists_the_booted_ios_simulators() -> None:
    [simulator] = parse_simctl(SIMCTL)
    assert simulator.udid == IPHONE["udid"]
    assert simulator.names == {"6a2d4a9c-70d1-4b5c-9d43-0c2b7b1b2e11", "iphone 16 pro"}


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
def test_a_session_gets_a_free_device_that_is_called_so(
    identifier: str | None, taken: tuple[str, ...], udid: str
) -> None:
    driver = choose(Platform.ANDROID, identifier, ANDROIDS, taken)
    assert driver.home == ANDROIDS.home
    assert driver.capabilities == {
        "platformName": "Android",
        "appium:automationName": "UiAutomator2",
        "appium:udid": udid,
    }


def test_a_simulator_is_driven_by_xcuitest() -> None:
    driver = choose(Platform.IOS, "iPhone 16 Pro", Found(parse_simctl(SIMCTL), Path("/home")), ())
    assert driver.capabilities == {
        "platformName": "iOS",
        "appium:automationName": "XCUITest",
        "appium:udid": IPHONE["udid"],
    }


@pytest.mark.parametrize(
    ("identifier", "taken", "message"),
    [
        ("pixel_9", (), r"'pixel_9' is none of the android devices that are up: 2B131FDH2000ST, emulator-5554"),
        ("pixel_7", ("2B131FDH2000ST",), "in use by another session: 2B131FDH2000ST"),
        (None, ("2B131FDH2000ST", "emulator-5554"), "in use by another session: emulator-5554, 2B131FDH2000ST"),
    ],
)
def test_a_session_never_gets_another_device_than_it_asked_for(
    identifier: str | None, taken: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ControllerError, match=message):
        choose(Platform.ANDROID, identifier, ANDROIDS, taken)


@pytest.mark.parametrize(
    ("identifier", "found", "name"),
    [
        (None, Found(), "fake android device"),
        ("pixel_7", Found(), "pixel_7"),
        ("fake", ANDROIDS, "fake"),
    ],
)
def test_the_fake_device_stands_in_where_no_real_one_is_and_when_asked_for(
    identifier: str | None, found: Found, name: str
) -> None:
    driver = choose(Platform.ANDROID, identifier, found, ())
    app = driver.capabilities["appium:app"]
    assert driver.capabilities == {
        "platformName": "Fake",
        "appium:automationName": "Fake",
        "appium:deviceName": name,
        "appium:app": app,
    }
    assert Path(app).is_file()
    assert driver.home is None


@pytest.fixture
def user_home(tmp_path: Path) -> Path:
    """A home where Appium's driver for Android is installed."""
    package = tmp_path / "home/.appium/node_modules/appium-uiautomator2-driver/package.json"
    package.parent.mkdir(parents=True)
    package.write_text("{}")
    return tmp_path / "home"


def test_real_devices_are_found_where_their_driver_is_installed(
    user_home: Path, script: Callable[[str, str], Path]
) -> None:
    adb = script("adb", f"#!/bin/sh\n[ \"$*\" = 'devices -l' ] && cat <<'END'\n{ADB}\nEND\n")
    environ = {"PATH": f"{adb.parent}:/usr/bin:/bin"}
    found = asyncio.run(find(Platform.ANDROID, environ=environ, home=user_home))
    assert found == Found(parse_adb(ADB), user_home / ".appium")


def test_adb_is_found_in_the_sdk(user_home: Path, script: Callable[[str, str], Path]) -> None:
    adb = script("adb", f"#!/bin/sh\ncat <<'END'\n{ADB}\nEND\n")
    adb.parent.rename(adb.parent.with_name("platform-tools"))
    environ = {"PATH": "/usr/bin:/bin", "ANDROID_HOME": str(adb.parent.parent)}
    assert len(asyncio.run(find(Platform.ANDROID, environ=environ, home=user_home)).devices) == 3


def test_a_home_of_appium_elsewhere_is_respected(user_home: Path, tmp_path: Path) -> None:
    environ = {"PATH": "", "APPIUM_HOME": str(user_home / ".appium")}
    assert "adb" in asyncio.run(find(Platform.ANDROID, environ=environ, home=tmp_path)).why_none


@pytest.mark.parametrize(
    ("platform", "adb", "why"),
    [
        (Platform.IOS, "", "appium-xcuitest-driver is not installed in"),
        (Platform.ANDROID, "", "adb is not on PATH"),
        (Platform.ANDROID, "#!/bin/sh\necho 'cannot connect to daemon' >&2; exit 1\n", "cannot connect to daemon"),
        (Platform.ANDROID, "#!/bin/sh\necho 'List of devices attached'\n", "lists none that is ready"),
    ],
)
def test_it_is_told_why_there_is_no_real_device(
    platform: Platform, adb: str, why: str, user_home: Path, script: Callable[[str, str], Path], tmp_path: Path
) -> None:
    if adb:
        script("adb", adb)
    found = asyncio.run(find(platform, environ={"PATH": str(tmp_path / "bin")}, home=user_home))
    assert not found.devices
    assert why in found.why_none
