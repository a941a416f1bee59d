"""Which device a session gets, depending on the machine, the request and other sessions.

The programs of the machine are replaced, and the table of devices is asked itself: through a running service, each row
would boot a device.
"""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pytest_device.errors import ConfigError, ControllerError
from tests.fakes.machine import FakeMachine

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


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """A machine without any device."""
    return FakeMachine(tmp_path)


@pytest.fixture
def phones(machine: FakeMachine) -> FakeMachine:
    """A machine with an emulator, two Android phones and an iOS simulator."""
    machine.adb.answers({"devices -l": ADB})
    machine.xcrun.answers({"simctl list devices booted -j": SIMCTL})
    return machine


@pytest.mark.parametrize(
    ("platform", "usable"),
    [
        ("android", "192.168.1.20:5555, 2B131FDH2000ST, emulator-5554"),
        ("ios", "6A2D4A9C-70D1-4B5C-9D43-0C2B7B1B2E11"),
    ],
)
def test_a_device_that_is_not_ready_is_refused_with_those_that_are(
    phones: FakeMachine, platform: str, usable: str
) -> None:
    refusal = phones.refusal(platform=platform, deviceIdentifier="pixel_9")

    assert (refusal or "").startswith(
        f"deviceIdentifier 'pixel_9' is not a running {platform} device: {usable}. Set"
    )


@pytest.mark.parametrize(
    ("request_", "udid"),
    [
        ({}, "emulator-5554"),
        ({"deviceIdentifier": "2B131FDH2000ST"}, "2B131FDH2000ST"),
        ({"deviceIdentifier": "pixel_7"}, "2B131FDH2000ST"),
        ({"deviceIdentifier": "Pixel 7"}, "2B131FDH2000ST"),
        ({"deviceIdentifier": "panther"}, "2B131FDH2000ST"),
        ({"platform": "ios", "deviceIdentifier": "iphone 16 pro"}, IPHONE["udid"]),
    ],
)
def test_a_session_gets_the_device_of_the_requested_name(
    phones: FakeMachine, request_: dict[str, str], udid: str
) -> None:
    async def scenario() -> str:
        async with phones.devices() as devices, devices.lent(**request_) as device:
            return device.name

    assert asyncio.run(scenario()) == udid


def test_a_device_serves_one_session_at_a_time_and_again_later(
    phones: FakeMachine,
) -> None:
    async def scenario() -> list[str]:
        names: list[str] = []
        async with phones.devices() as devices:
            for _ in range(2):
                async with AsyncExitStack() as stack:
                    for _ in range(3):
                        device = await stack.enter_async_context(devices.lent())
                        names.append(device.name)

                    pixel = devices.lent(deviceIdentifier="pixel_7")
                    with pytest.raises(
                        ControllerError, match=r"session: 2B131FDH2000ST$"
                    ):
                        await stack.enter_async_context(pixel)
                    with pytest.raises(
                        ControllerError,
                        match="in use by another session: emulator-5554, 2B131FDH2000ST, ",
                    ):
                        await stack.enter_async_context(devices.lent())
        return names

    assert asyncio.run(scenario()) == 2 * [
        "emulator-5554",
        "2B131FDH2000ST",
        "192.168.1.20:5555",
    ]


def has_phones(machine: FakeMachine) -> None:
    machine.adb.answers({"devices -l": ADB})


def has_browser(machine: FakeMachine) -> None:
    machine.install("chromium")


def has_all(machine: FakeMachine) -> None:
    has_phones(machine)
    has_browser(machine)


@pytest.mark.parametrize(
    ("install", "request_", "kind"),
    [
        (has_all, {}, "emulator"),
        (has_browser, {}, "chromium"),
        (has_browser, {"deviceIdentifier": "pixel_7"}, "chromium"),
        (has_all, {"deviceIdentifier": "chromium"}, "chromium"),
        (has_all, {"deviceIdentifier": "fake", "type": "appium"}, "fake"),
        (has_phones, {"deviceIdentifier": "fake", "type": "appium"}, "fake"),
    ],
)
def test_a_kind_is_used_if_the_preferred_ones_are_missing_or_on_request(
    install: Callable[[FakeMachine], None],
    request_: dict[str, str],
    kind: str,
    machine: FakeMachine,
) -> None:
    install(machine)

    async def scenario() -> str:
        async with machine.devices() as devices:
            return await devices.kind(**request_)

    assert asyncio.run(scenario()) == kind


@pytest.mark.parametrize(
    ("install", "request_", "message"),
    [
        (
            None,
            {},
            r"no android device .* \(emulator: adb is neither on PATH nor in .*; chromium: no .*\): apt-get install chromium",
        ),
        (
            None,
            {"type": "appium", "deviceIdentifier": "pixel_7"},
            r"\(emulator: adb is neither on PATH nor in ANDROID_HOME; appium-uiautomator2.*\): apt-get install",
        ),
        (
            has_phones,
            {"deviceIdentifier": "chromium"},
            r"\(chromium: no Chromium is on PATH, .*\): apt-get install chromium",
        ),
        (
            has_all,
            {"deviceIdentifier": "fake"},
            "^deviceIdentifier 'fake': that device is for appium sessions only$",
        ),
    ],
)
def test_without_any_device_the_install_command_is_reported(
    install: Callable[[FakeMachine], None] | None,
    request_: dict[str, str],
    message: str,
    machine: FakeMachine,
) -> None:
    machine.install("apt-get")
    if install:
        install(machine)

    async def scenario() -> None:
        async with machine.devices() as devices:
            with pytest.raises(ConfigError, match=message):
                await devices.kind(**request_)

    asyncio.run(scenario())


def test_real_devices_are_found_if_their_driver_is_installed(
    phones: FakeMachine,
) -> None:
    without = phones.find("android", "appium")[0]
    appium_home = phones.install_driver("appium-uiautomator2-driver")

    availability = phones.find("android", "appium")[0]

    assert "appium-uiautomator2-driver is not installed in" in without.missing
    assert (availability.kind, availability.missing, availability.program) == (
        "emulator",
        "",
        phones.adb.path,
    )
    assert availability.appium_home == appium_home
    # Controllers other than Appium need none.
    assert phones.find("android", "argent")[0].missing == ""


def test_adb_is_found_in_the_sdk(phones: FakeMachine) -> None:
    phones.bin.rename(phones.directory / "platform-tools")

    availability = phones.find(
        "android", environ={"ANDROID_HOME": str(phones.directory)}
    )[0]

    assert availability.program == phones.directory / "platform-tools/adb"


def test_another_appium_home_is_respected(phones: FakeMachine) -> None:
    elsewhere = phones.install_driver("appium-uiautomator2-driver").rename(
        phones.directory / "elsewhere"
    )
    environ = {**phones.environ, "APPIUM_HOME": str(elsewhere)}

    assert phones.find("android", "appium", environ=environ)[0].appium_home == elsewhere


def test_adb_runs_in_the_users_home(machine: FakeMachine) -> None:
    machine.install("adb", 'echo "$HOME device"')

    environ = {**machine.environ, "HOME": "/elsewhere"}
    [device] = machine.find("android", environ=environ)[0].devices

    assert device.udid == str(machine.directory)


@pytest.mark.parametrize(
    ("platform", "tool", "script", "why"),
    [
        (
            "ios",
            "none",
            "",
            "xcrun is not on PATH; appium-xcuitest-driver is not installed in",
        ),
        ("android", "none", "", "adb is neither on PATH nor in ANDROID_HOME"),
        (
            "android",
            "adb",
            "echo 'cannot connect to daemon' >&2; exit 1",
            "cannot connect to daemon",
        ),
        (
            "android",
            "adb",
            "echo 'List of devices attached'",
            "lists no ready device",
        ),
        (
            "ios",
            "xcrun",
            "echo 'no Xcode' >&2; exit 1",
            "devices booted -j: .* no Xcode",
        ),
        ("ios", "xcrun", "echo oops", "devices booted -j: Expecting value"),
        (
            "ios",
            "xcrun",
            "echo '{\"devices\": {}}'",
            "lists no booted simulator",
        ),
    ],
)
def test_the_reason_for_a_missing_real_device_is_reported(
    platform: str, tool: str, script: str, why: str, machine: FakeMachine
) -> None:
    machine.install(tool, script)

    refusal = machine.refusal(platform=platform, type="appium")

    assert re.search(why, refusal or "")
    assert machine.find(platform, "appium")[0].fix


@pytest.mark.parametrize(
    ("programs", "session_type", "missing"),
    [
        ((), "appium", "no Chromium is on PATH, chromedriver is not on PATH"),
        (("chromium",), "appium", "chromedriver is not on PATH"),
        (("chromium",), "agent-device", ""),
        (("chromium", "chromedriver"), "appium", ""),
    ],
)
def test_appium_needs_chromedriver_and_a_browser(
    programs: Sequence[str], session_type: str, missing: str, machine: FakeMachine
) -> None:
    for name in programs:
        machine.install(name)

    availability = machine.find("ios", session_type)[1]

    assert (availability.kind, availability.missing) == ("chromium", missing)


@pytest.mark.parametrize("tool", ["apt-get", "brew"])
def test_the_command_to_install_a_browser_fits_the_machine(
    tool: str, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.defpath", "")
    before = machine.find("ios")[1].fix
    machine.install(tool)

    assert before.startswith("install Chromium, and chromedriver")
    assert machine.find("ios")[1].fix.startswith(f"{tool} install ")


def test_the_fake_device_is_lent_with_the_reasons_against_the_others(
    phones: FakeMachine,
) -> None:
    async def scenario() -> tuple[str, str]:
        async with (
            phones.devices() as devices,
            devices.lent(type="appium", deviceIdentifier="fake") as device,
        ):
            return device.kind, device.name

    assert asyncio.run(scenario()) == ("fake", "fake")
    appium_home = phones.directory / ".appium"
    no_emulator = (
        f"no emulator: appium-uiautomator2-driver is not installed in {appium_home}"
    )
    no_browser = "no chromium: no Chromium is on PATH, chromedriver is not on PATH"
    assert phones.reported == [f"device: fake (fake); {no_emulator}; {no_browser}"]
    # Without its name, it is not used.
    assert "has no android device" in (phones.refusal(type="appium") or "")


def test_a_session_without_a_type_is_an_agent_device_session(
    phones: FakeMachine,
) -> None:
    async def scenario() -> str:
        request = {"platform": "android"}
        async with phones.devices() as devices:
            return (await devices.devices.choose(request, print)).kind

    # One of Appium would need the user's driver.
    assert asyncio.run(scenario()) == "emulator"


def test_a_phone_that_the_browser_cannot_emulate_is_refused(
    machine: FakeMachine,
) -> None:
    machine.install("chromium")

    async def scenario() -> None:
        async with (
            machine.devices() as devices,
            devices.lent(deviceIdentifier="pixel_99"),
        ):
            pass

    with pytest.raises(ControllerError, match="'pixel_99' is not an android phone"):
        asyncio.run(scenario())
