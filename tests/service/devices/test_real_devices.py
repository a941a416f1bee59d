"""Devices that the user named: found, started once, waited for, shared in turn, shut down."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_device.errors import ConfigError, ControllerError
from tests.fakes.machine import EMULATOR, LISTED, FakeMachine
from tests.waiting import eventually

PIXEL = "2B131FDH2000ST         device usb:1-2 product:panther model:Pixel_7 device:panther\n"
RUNTIME = "com.apple.CoreSimulator.SimRuntime.iOS-"
OLD, NEW = "0LD-UDID", "NEW-UDID"


def simctl(**states: str) -> str:
    """Return what simctl prints of two simulators of one name, on an old and a new system."""
    runtimes = {OLD: "17-5", NEW: "18-0"}
    return json.dumps(
        {
            "devices": {
                f"{RUNTIME}{runtimes[udid]}": [
                    {"udid": udid, "name": "iPhone 16", "state": state}
                ]
                for udid, state in zip(
                    (OLD, NEW), (states["old"], states["new"]), strict=True
                )
            }
        }
    )


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """A machine with the tools of Android and iOS, and no device."""
    machine = FakeMachine(tmp_path)
    machine.adb.answers({"devices*": LISTED.format("")})
    machine.xcrun.answers({"*": '{"devices": {}}'})
    return machine


@pytest.mark.parametrize(
    "printed",
    [
        'xcrun: error: unable to find utility "simctl", not a developer tool or in PATH',
        "xcode-select: note: No developer tools were found, requesting install.",
    ],
    ids=["command line tools alone", "no tools"],
)
@pytest.mark.parametrize(
    "preference",
    [{}, {"simulator": "iPhone 16"}],
    ids=["any", "named"],
)
def test_a_mac_without_xcode_has_no_simulator_for_the_reason_that_xcrun_gives(
    machine: FakeMachine, printed: str, preference: dict[str, Any]
) -> None:
    machine.xcrun.answers({"*": f"!{printed}"})

    simulator = machine.find("ios", **preference)[0]

    assert simulator.kind == "simulator"
    assert re.fullmatch(
        rf"xcrun simctl list devices \w+ -j: .*{re.escape(printed)}", simulator.missing
    )
    assert simulator.fix.startswith("on macOS install Xcode")
    assert machine.xcrun.asked == [
        simulator.missing.partition(":")[0].removeprefix("xcrun ")
    ]


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_with_real_devices_only_no_browser_is_used(
    machine: FakeMachine, platform: str
) -> None:
    machine.install("chromium")

    assert [availability.kind for availability in machine.find(platform)][1:2] == [
        "chromium"
    ]
    assert [
        availability.kind for availability in machine.find(platform, real_only=True)
    ] in (
        ["emulator"],
        ["simulator"],
    )

    async def scenario() -> None:
        async with machine.devices(real_only=True) as devices:
            refusal = await devices.refusal(platform=platform)
            assert refusal
            assert "this machine has no" in refusal
            assert "chromium" not in refusal
            forced = await devices.refusal(
                platform=platform, deviceIdentifier="chromium"
            )
            assert (
                forced
                == "deviceIdentifier 'chromium': this service uses real devices only"
            )
            with pytest.raises(ConfigError, match="this machine has no"):
                await devices.kind(platform=platform)

    asyncio.run(scenario())


def test_only_the_named_avd_is_used_if_it_is_running(machine: FakeMachine) -> None:
    machine.adb.answers(
        {
            "devices*": LISTED.format(PIXEL + EMULATOR),
            "-s emulator-5554 emu avd name": "Phone_34\nOK",
        }
    )

    (availability,) = machine.find("android", real_only=True, avd="Phone_34")

    assert [device.udid for device in availability.devices] == ["emulator-5554"]
    assert not availability.to_start


@pytest.mark.parametrize(
    ("installed", "missing"),
    [
        (None, "emulator is neither on PATH nor in ANDROID_HOME"),
        ("Phone_33 Tablet", "emulator -list-avds has no 'Phone_34': Phone_33, Tablet"),
    ],
)
def test_a_missing_avd_is_reported(
    machine: FakeMachine, installed: str | None, missing: str
) -> None:
    if installed:
        machine.install_emulator(*installed.split())

    availability = machine.find("android", avd="Phone_34")[0]

    assert (availability.missing, availability.devices) == (missing, ())
    assert availability.fix


@pytest.mark.parametrize(
    ("platform", "preference", "missing"),
    [
        ("android", {"avd": "Phone_34"}, "emulator is neither on PATH"),
        ("ios", {"simulator": "iPhone 16"}, "has no 'iPhone 16'"),
    ],
)
def test_no_browser_replaces_a_device_that_is_named_unless_a_test_requests_one(
    machine: FakeMachine, platform: str, preference: dict[str, Any], missing: str
) -> None:
    machine.install("chromium")

    async def scenario() -> None:
        async with machine.devices(**preference) as devices:
            refusal = await devices.refusal(platform=platform)
            assert refusal
            assert missing in refusal
            assert "chromium" not in refusal
            browser = {"platform": platform, "deviceIdentifier": "chromium"}
            assert await devices.refusal(**browser) is None

    asyncio.run(scenario())


def test_the_avd_is_started_once_and_shut_down_with_the_service(
    machine: FakeMachine,
) -> None:
    machine.install_emulator("Phone_34")

    async def scenario() -> list[str]:
        async with machine.devices(avd="Phone_34") as devices:
            assert await devices.refusal() is None
            assert machine.started_emulators == []
            await devices.kind()
            names = []
            for _ in range(2):
                async with devices.lent() as device:
                    names.append(device.name)
            assert (machine.bin / "adb.up").exists()
            return names

    assert asyncio.run(scenario()) == ["emulator-5554"] * 2
    assert machine.started_emulators == [
        "-avd Phone_34 -port 5554 -no-window -no-audio -no-boot-anim -no-snapshot-save"
    ]
    assert machine.reported[0] == "starting emulator Phone_34"
    assert (
        machine.adb.asked.count("-s emulator-5554 shell getprop sys.boot_completed")
        >= 3
    )
    assert "-s emulator-5554 emu kill" in machine.adb.asked
    assert eventually(lambda: not emulators(machine))


def test_an_emulator_that_exits_is_reported_with_its_output(
    machine: FakeMachine,
) -> None:
    machine.install_emulator("Phone_34", exits="PANIC: no KVM here")

    async def scenario() -> None:
        async with (
            machine.devices(avd="Phone_34") as devices,
            devices.lent(),
        ):
            pass

    with pytest.raises(
        ControllerError,
        match=r"emulator -avd Phone_34 exited during startup(.|\n)*PANIC: no KVM here",
    ):
        asyncio.run(scenario())


def test_a_timed_out_boot_leaves_no_emulator(machine: FakeMachine) -> None:
    machine.install_emulator("Phone_34", boots=False)

    async def scenario() -> None:
        async with machine.devices(avd="Phone_34") as devices:
            boot = asyncio.create_task(devices.kind())
            assert await asyncio.to_thread(
                eventually, lambda: len(emulators(machine)) == 1
            )
            boot.cancel()
            await asyncio.wait({boot})
            assert not emulators(machine)

    asyncio.run(scenario())


def emulators(machine: FakeMachine) -> list[psutil.Process]:
    wanted = {str(machine.bin / "emulator"), "-avd"}
    return [
        one
        for one in psutil.process_iter(["cmdline"])
        if wanted <= set(one.info["cmdline"] or ())
    ]


@pytest.mark.parametrize(
    ("name", "states", "booted", "to_start"),
    [
        ("iPhone 16", {"old": "Shutdown", "new": "Shutdown"}, [], NEW),
        ("iphone 16", {"old": "Booted", "new": "Shutdown"}, [OLD], ""),
        (NEW, {"old": "Booted", "new": "Shutdown"}, [], NEW),
        ("iPhone 16", {"old": "Booted", "new": "Booted"}, [NEW], ""),
    ],
)
def test_the_named_simulator_is_found_booted_or_not(
    machine: FakeMachine,
    name: str,
    states: dict[str, str],
    booted: list[str],
    to_start: str,
) -> None:
    machine.xcrun.answers({"simctl list devices available -j": simctl(**states)})

    availability = machine.find("ios", simulator=name)[0]

    assert (
        [device.udid for device in availability.devices],
        availability.to_start,
    ) == (
        booted,
        to_start,
    )


def test_a_missing_simulator_is_reported(machine: FakeMachine) -> None:
    machine.xcrun.answers(
        {"simctl list devices available -j": simctl(old="Booted", new="Booted")}
    )

    availability = machine.find("ios", simulator="iPhone 99")[0]

    assert (
        availability.missing
        == "xcrun simctl list devices available -j has no 'iPhone 99'"
    )


def test_the_simulator_is_booted_and_shut_down(machine: FakeMachine) -> None:
    up = machine.directory / "up"
    machine.install(
        "xcrun",
        f"echo \"$*\" >>'{machine.xcrun.log}'\n"
        'case "$*" in\n'
        f"*available*) if [ -e '{up}' ]; then echo '{simctl(old='Shutdown', new='Booted')}'; "
        f"else echo '{simctl(old='Shutdown', new='Shutdown')}'; fi;;\n"
        f"*bootstatus*) touch '{up}';;\n"
        "esac",
    )

    async def scenario() -> str:
        async with (
            machine.devices(simulator="iPhone 16") as devices,
            devices.lent(platform="ios") as device,
        ):
            return device.name

    assert asyncio.run(scenario()) == NEW
    asked = machine.xcrun.asked
    assert asked.count(f"simctl bootstatus {NEW} -b") == 1
    assert asked[-1] == f"simctl shutdown {NEW}"


def test_a_second_session_is_refused_while_the_only_device_is_in_use(
    machine: FakeMachine,
) -> None:
    machine.adb.answers({"devices*": LISTED.format(EMULATOR)})

    async def scenario() -> None:
        async with machine.devices() as devices:
            async with devices.lent():
                with pytest.raises(
                    ControllerError, match="in use by another session: emulator-5554"
                ):
                    await devices.refusal()
            assert await devices.refusal() is None

    asyncio.run(scenario())


def test_the_device_of_a_session_that_has_just_ended_is_waited_for(
    machine: FakeMachine,
) -> None:
    machine.adb.answers({"devices*": LISTED.format(EMULATOR)})

    async def scenario() -> str:
        async with machine.devices(handover_seconds=60) as devices:
            async with devices.lent():
                second = asyncio.create_task(devices.lent().__aenter__())
                asked = len(machine.adb.asked)
                assert await asyncio.to_thread(
                    eventually, lambda: len(machine.adb.asked) > asked + 1
                )
                assert not second.done()
            return (await second).name

    assert asyncio.run(scenario()) == "emulator-5554"


@pytest.mark.parametrize(
    ("appium", "missing"),
    [
        (None, ""),
        ("^3.0.0-rc.2", ""),
        ("^2.5.4 || ^3.0.0", ""),
        (">=2", ""),
        (
            "^2.5.4",
            "appium-uiautomator2-driver 2.45.1 in {home} is for Appium 2, the local service runs 3.",
        ),
        (
            "^1.0.0 || ^2.0.0",
            "appium-uiautomator2-driver 2.45.1 in {home} is for Appium 1 or 2, the local service",
        ),
    ],
)
def test_a_driver_for_another_appium_version_is_refused_by_name(
    machine: FakeMachine, appium: str | None, missing: str
) -> None:
    machine.adb.answers({"devices*": LISTED.format(EMULATOR)})
    appium_home = machine.install_driver(
        "appium-uiautomator2-driver",
        {"version": "2.45.1", "peerDependencies": {"appium": appium} if appium else {}},
    )

    availability = machine.find("android", "appium", real_only=True)[0]

    assert availability.missing.startswith(missing.format(home=appium_home))
    assert bool(availability.missing) == bool(missing)
    if missing:
        assert availability.fix == "appium driver update uiautomator2 --unsafe"
