"""Devices that the user named: found, started once, waited for, shared in turn, shut down."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.devices.availability import Availability, DevicePreference
from pytest_device.service.devices.base import BusyError, Device
from pytest_device.service.devices.kinds import Devices, Machine, all_available
from pytest_device.service.programs.guard import Guard
from pytest_device.spec import Platform, SessionType
from tests.fakes.programs import FakeProgram
from tests.waiting import eventually

LISTED = "List of devices attached\n{}"
UP = "emulator-5554          device product:sdk_gphone64_x86_64 model:sdk_gphone64_x86_64 device:emu64x\n"
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


@dataclass
class FakeSdk:
    """Stands in for the tools of Android and iOS on a machine: adb, emulator and xcrun with recorded output."""

    directory: Path
    reported: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.adb = FakeProgram.made(self.directory / "bin/adb")
        self.xcrun = FakeProgram.made(self.directory / "bin/xcrun")
        self.adb.answers({"devices*": LISTED.format("")})

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": f"{self.directory / 'bin'}:/usr/bin:/bin"}

    def emulator(self, *avds: str, boots: bool = True, exits: str = "") -> None:
        """Put an emulator there: with its start adb lists it, and says at the third question that it has booted."""
        program, adb = self.directory / "bin/emulator", self.adb.path
        up = f"echo '{UP.strip()}'"
        program.write_text(
            f"#!{sys.executable}\n"
            "import pathlib, sys, time\n"
            f"if sys.argv[1:] == ['-list-avds']: print({' '.join(avds)!r}.replace(' ', chr(10))); sys.exit()\n"
            f"pathlib.Path({str(program)!r} + '.log').open('a').write(' '.join(sys.argv[1:]) + chr(10))\n"
            f"if {exits!r}: sys.exit({exits!r})\n"
            f"pathlib.Path({str(adb)!r} + '.up').touch()\n"
            "time.sleep(600)\n"
        )
        program.chmod(0o755)
        adb.write_text(
            "#!/bin/sh\n"
            f"echo \"$*\" >>'{self.adb.log}'\n"
            f"if ! [ -e '{adb}.up' ]\n"
            "then case \"$*\" in devices*) echo 'List of devices attached'; exit;; esac; exit 1; fi\n"
            'case "$*" in\n'
            f"devices*) echo 'List of devices attached'; {up};;\n"
            "*'emu avd name') printf 'Phone_34\\r\\nOK\\r\\n';;\n"
            f"*sys.boot_completed) echo >>'{adb}.asked'\n"
            f"[ $(wc -l <'{adb}.asked') -ge 3 ] && echo {int(boots)};;\n"
            f"*'emu kill') rm '{adb}.up';;\n"
            "esac\n"
        )

    @property
    def started(self) -> list[str]:
        log = self.directory / "bin/emulator.log"
        return log.read_text().splitlines() if log.exists() else []

    def look(
        self,
        platform: Platform,
        preference: DevicePreference,
        session_type: SessionType = SessionType.ARGENT,
    ) -> Sequence[Availability]:
        machine = Machine(self.environ, self.directory, preference=preference)
        return asyncio.run(all_available(platform, session_type, machine))

    @asynccontextmanager
    async def devices(
        self, preference: DevicePreference, **more: Any
    ) -> AsyncGenerator[Devices]:
        guard = Guard(environ=self.environ, log=self.reported.append)
        devices = Devices(
            environ=self.environ,
            home=self.directory,
            guard=guard,
            log=self.reported.append,
            preference=preference,
            **more,
        )
        try:
            yield devices
        finally:
            await devices.close()
            await asyncio.to_thread(guard.close)


@pytest.fixture
def sdk(tmp_path: Path) -> FakeSdk:
    return FakeSdk(tmp_path)


def request(platform: str = "android", **more: str) -> Mapping[str, Any]:
    return {"platform": platform, "type": "argent", **more}


@asynccontextmanager
async def lent(
    devices: Devices, directory: Path, **more: str
) -> AsyncGenerator[Device]:
    async with devices.borrowed(request(**more), directory) as device:
        yield device


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
    [DevicePreference(), DevicePreference(simulator="iPhone 16")],
    ids=["any", "named"],
)
def test_a_mac_without_xcode_has_no_simulator_for_the_reason_that_xcrun_gives(
    sdk: FakeSdk, printed: str, preference: DevicePreference
) -> None:
    sdk.xcrun.answers({"*": f"!{printed}"})

    simulator = sdk.look(Platform.IOS, preference)[0]

    assert simulator.kind == "simulator"
    assert re.fullmatch(
        rf"xcrun simctl list devices \w+ -j: .*{re.escape(printed)}", simulator.missing
    )
    assert simulator.fix.startswith("on macOS install Xcode")
    assert sdk.xcrun.asked == [
        simulator.missing.partition(":")[0].removeprefix("xcrun ")
    ]


@pytest.mark.parametrize("platform", list(Platform))
def test_with_real_devices_only_no_browser_is_used(
    sdk: FakeSdk, platform: Platform
) -> None:
    (sdk.directory / "bin/chromium").write_text("#!/bin/sh\n")
    (sdk.directory / "bin/chromium").chmod(0o755)
    sdk.xcrun.answers({"*": '{"devices": {}}'})

    assert [
        availability.kind for availability in sdk.look(platform, DevicePreference())
    ][1:2] == ["chromium"]
    assert [
        availability.kind
        for availability in sdk.look(platform, DevicePreference(real_only=True))
    ] in (
        ["emulator"],
        ["simulator"],
    )

    async def scenario() -> None:
        async with sdk.devices(DevicePreference(real_only=True)) as devices:
            refusal = await devices.refusal(request(str(platform)))
            assert refusal
            assert "this machine has no" in refusal
            assert "chromium" not in refusal
            forced = await devices.refusal(
                request(str(platform), deviceIdentifier="chromium")
            )
            assert (
                forced
                == "deviceIdentifier 'chromium': this service uses real devices only"
            )
            with pytest.raises(ConfigError, match="this machine has no"):
                await devices.choose(request(str(platform)), sdk.reported.append)

    asyncio.run(scenario())


def test_only_the_named_avd_is_used_if_it_is_running(sdk: FakeSdk) -> None:
    sdk.adb.answers(
        {
            "devices*": LISTED.format(PIXEL + UP),
            "-s emulator-5554 emu avd name": "Phone_34\nOK",
        }
    )

    (availability,) = sdk.look(
        Platform.ANDROID, DevicePreference(real_only=True, avd="Phone_34")
    )

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
    sdk: FakeSdk, installed: str | None, missing: str
) -> None:
    if installed:
        sdk.emulator(*installed.split())

    availability = sdk.look(Platform.ANDROID, DevicePreference(avd="Phone_34"))[0]

    assert (availability.missing, availability.devices) == (missing, ())
    assert availability.fix


@pytest.mark.parametrize(
    ("platform", "preference", "missing"),
    [
        ("android", DevicePreference(avd="Phone_34"), "emulator is neither on PATH"),
        ("ios", DevicePreference(simulator="iPhone 16"), "has no 'iPhone 16'"),
    ],
)
def test_no_browser_replaces_a_device_that_is_named_unless_a_test_requests_one(
    sdk: FakeSdk, platform: str, preference: DevicePreference, missing: str
) -> None:
    (sdk.directory / "bin/chromium").write_text("#!/bin/sh\n")
    (sdk.directory / "bin/chromium").chmod(0o755)
    sdk.xcrun.answers({"*": '{"devices": {}}'})

    async def scenario() -> None:
        async with sdk.devices(preference) as devices:
            refusal = await devices.refusal(request(platform))
            assert refusal
            assert missing in refusal
            assert "chromium" not in refusal
            browser = request(platform, deviceIdentifier="chromium")
            assert await devices.refusal(browser) is None

    asyncio.run(scenario())


def test_the_avd_is_started_once_and_shut_down_with_the_service(sdk: FakeSdk) -> None:
    sdk.emulator("Phone_34")

    async def scenario() -> list[str]:
        async with sdk.devices(DevicePreference(avd="Phone_34")) as devices:
            assert await devices.refusal(request()) is None
            assert sdk.started == []
            await devices.choose(request(), sdk.reported.append)
            names = []
            for _ in range(2):
                async with lent(devices, sdk.directory) as device:
                    names.append(device.name)
            assert (sdk.directory / "bin/adb.up").exists()
            return names

    assert asyncio.run(scenario()) == ["emulator-5554"] * 2
    assert sdk.started == [
        "-avd Phone_34 -port 5554 -no-window -no-audio -no-boot-anim -no-snapshot-save"
    ]
    assert sdk.reported[0] == "starting emulator Phone_34"
    assert sdk.adb.asked.count("-s emulator-5554 shell getprop sys.boot_completed") >= 3
    assert "-s emulator-5554 emu kill" in sdk.adb.asked
    assert eventually(lambda: not emulators(sdk))


def test_an_emulator_that_exits_is_reported_with_its_output(sdk: FakeSdk) -> None:
    sdk.emulator("Phone_34", exits="PANIC: no KVM here")

    async def scenario() -> None:
        async with (
            sdk.devices(DevicePreference(avd="Phone_34")) as devices,
            lent(devices, sdk.directory),
        ):
            pass

    with pytest.raises(
        ControllerError,
        match=r"emulator -avd Phone_34 exited during startup(.|\n)*PANIC: no KVM here",
    ):
        asyncio.run(scenario())


def test_a_timed_out_boot_leaves_no_emulator(sdk: FakeSdk) -> None:
    sdk.emulator("Phone_34", boots=False)

    async def scenario() -> None:
        async with sdk.devices(DevicePreference(avd="Phone_34")) as devices:
            boot = asyncio.create_task(devices.choose(request(), sdk.reported.append))
            assert await asyncio.to_thread(eventually, lambda: len(emulators(sdk)) == 1)
            boot.cancel()
            await asyncio.wait({boot})
            assert not emulators(sdk)

    asyncio.run(scenario())


def emulators(sdk: FakeSdk) -> list[psutil.Process]:
    wanted = {str(sdk.directory / "bin/emulator"), "-avd"}
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
    sdk: FakeSdk, name: str, states: dict[str, str], booted: list[str], to_start: str
) -> None:
    sdk.xcrun.answers({"simctl list devices available -j": simctl(**states)})

    availability = sdk.look(Platform.IOS, DevicePreference(simulator=name))[0]

    assert (
        [device.udid for device in availability.devices],
        availability.to_start,
    ) == (
        booted,
        to_start,
    )


def test_a_missing_simulator_is_reported(sdk: FakeSdk) -> None:
    sdk.xcrun.answers(
        {"simctl list devices available -j": simctl(old="Booted", new="Booted")}
    )

    availability = sdk.look(Platform.IOS, DevicePreference(simulator="iPhone 99"))[0]

    assert (
        availability.missing
        == "xcrun simctl list devices available -j has no 'iPhone 99'"
    )


def test_the_simulator_is_booted_and_shut_down(sdk: FakeSdk) -> None:
    up = sdk.directory / "up"
    sdk.xcrun.path.write_text(
        f"#!/bin/sh\necho \"$*\" >>'{sdk.xcrun.log}'\n"
        'case "$*" in\n'
        f"*available*) if [ -e '{up}' ]; then echo '{simctl(old='Shutdown', new='Booted')}'; "
        f"else echo '{simctl(old='Shutdown', new='Shutdown')}'; fi;;\n"
        f"*bootstatus*) touch '{up}';;\n"
        "esac\n"
    )

    async def scenario() -> str:
        preference = DevicePreference(simulator="iPhone 16")
        async with (
            sdk.devices(preference) as devices,
            lent(devices, sdk.directory, platform="ios") as device,
        ):
            return device.name

    assert asyncio.run(scenario()) == NEW
    asked = sdk.xcrun.asked
    assert asked.count(f"simctl bootstatus {NEW} -b") == 1
    assert asked[-1] == f"simctl shutdown {NEW}"


def test_a_second_session_is_refused_while_the_only_device_is_in_use(
    sdk: FakeSdk,
) -> None:
    sdk.adb.answers({"devices*": LISTED.format(UP)})

    async def scenario() -> None:
        async with sdk.devices(DevicePreference()) as devices:
            async with lent(devices, sdk.directory):
                with pytest.raises(
                    BusyError, match="in use by another session: emulator-5554"
                ):
                    await devices.refusal(request())
            assert await devices.refusal(request()) is None

    asyncio.run(scenario())


def test_the_device_of_a_session_that_has_just_ended_is_waited_for(
    sdk: FakeSdk,
) -> None:
    sdk.adb.answers({"devices*": LISTED.format(UP)})

    async def scenario() -> str:
        async with sdk.devices(DevicePreference()) as devices:
            async with lent(devices, sdk.directory):
                second = asyncio.create_task(lent(devices, sdk.directory).__aenter__())
                asked = len(sdk.adb.asked)
                assert await asyncio.to_thread(
                    eventually, lambda: len(sdk.adb.asked) > asked + 1
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
    sdk: FakeSdk, appium: str | None, missing: str
) -> None:
    sdk.adb.answers({"devices*": LISTED.format(UP)})
    package = (
        sdk.directory / ".appium/node_modules/appium-uiautomator2-driver/package.json"
    )
    package.parent.mkdir(parents=True)
    package.write_text(
        json.dumps(
            {
                "version": "2.45.1",
                "peerDependencies": {"appium": appium} if appium else {},
            }
        )
    )

    availability = sdk.look(
        Platform.ANDROID, DevicePreference(real_only=True), SessionType.APPIUM
    )[0]

    assert availability.missing.startswith(
        missing.format(home=sdk.directory / ".appium")
    )
    assert bool(availability.missing) == bool(missing)
    if missing:
        assert availability.fix == "appium driver update uiautomator2 --unsafe"
