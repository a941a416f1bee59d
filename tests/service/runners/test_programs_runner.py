"""Sessions with real programs: startup, events, and no leftovers."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from starlette.applications import Starlette

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service import gateway
from pytest_device.service.devices.browsers import BUILT_FOR, Pinned, hardware
from pytest_device.service.keys import Keys
from pytest_device.service.programs.processes import end, find_processes
from pytest_device.service.programs.toolchain import AGENT_DEVICE, APPIUM, ARGENT
from pytest_device.service.runners.base import Boot, Booting, Failed, Record, Running
from pytest_device.service.runners.programs import ProgramsRunner, check
from pytest_device.service.runners.resources import Directories, Resources
from pytest_device.spec import REQUESTABLE_SESSION_TYPES, SessionType
from tests.service.programs.alive import alive, eventually, guards

pytestmark = pytest.mark.usefixtures("tools")  # everything is installed

FAKE = {"type": "appium", "platform": "android", "deviceIdentifier": "fake"}
APP = "<app><Button id='go'>Go</Button></app>"

KEYS = Keys("http://127.0.0.1:9")

MakeRunner = Callable[..., ProgramsRunner]


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    """Processes left in it after a failed test are killed."""
    yield tmp_path / "state"
    end(list(tmp_path.glob("state/programs/*")), grace_seconds=0)


def runner_in(directory: Path, cache_dir: Path, **more: str) -> ProgramsRunner:
    """The home has no drivers, so that no device is a real one."""
    environ = {
        **os.environ,
        "DEVICE_TOKEN": "made-up-token",
        "GITHUB_TOKEN": "another-made-up-token",
    }
    environ.pop("APPIUM_HOME", None)
    directories = Directories(directory / "state", cache_dir, directory / "home")
    return ProgramsRunner(
        Resources(KEYS, directories, environ | more, print), log=print
    )


@pytest.fixture
def make_runner(state_dir: Path, cache_dir: Path) -> MakeRunner:
    return partial(runner_in, state_dir.parent, cache_dir)


@asynccontextmanager
async def prepared(runner: ProgramsRunner) -> AsyncGenerator[ProgramsRunner, None]:
    try:
        await runner.prepare(print, [SessionType.APPIUM])
        yield runner
    finally:
        await runner.close()


@asynccontextmanager
async def reaching(runner: ProgramsRunner) -> AsyncGenerator[httpx.AsyncClient]:
    """Open a client that reaches the published addresses of a runner's controllers."""
    async with gateway.connections() as inner:
        app = Starlette(routes=gateway.routes(runner, KEYS, inner))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), timeout=20
        ) as client:
            yield client


async def booted(runner: ProgramsRunner, session_id: str) -> Mapping[str, Any]:
    await eventually(lambda: not isinstance(runner.record(session_id).boot, Booting))
    boot = runner.record(session_id).boot
    assert isinstance(boot, Running), boot
    return boot.remote_config


async def failed(runner: ProgramsRunner, session_id: str) -> str:
    await eventually(lambda: isinstance(runner.record(session_id).boot, Failed))
    return reason(runner.record(session_id).boot)


def reason(boot: Boot) -> str:
    assert isinstance(boot, Failed)
    return boot.reason


def nodes() -> set[psutil.Process]:
    """Find the Node.js processes that this one, or what it has started, has started."""
    return {
        child
        for child in psutil.Process().children(recursive=True)
        if "node" in child.name()
    }


def reported(runner: ProgramsRunner, session_id: str) -> list[str]:
    return [entry.text for entry in runner.record(session_id).entries]


async def create(
    client: httpx.AsyncClient, config: Mapping[str, Any], **capabilities: str
) -> str:
    reply = await client.post(
        f"{config['appiumUrl']}/session",
        json={
            "capabilities": {"alwaysMatch": {**config["capabilities"], **capabilities}}
        },
    )
    assert reply.status_code == 200, reply.text
    return f"{config['appiumUrl']}/session/{reply.json()['value']['sessionId']}"


def test_an_appium_session_is_a_real_server_that_leaves_nothing_behind(
    make_runner: MakeRunner, state_dir: Path, tmp_path: Path
) -> None:
    app = tmp_path / "app.xml"
    app.write_text(APP)
    directory = state_dir / "programs/one"

    async def scenario() -> None:
        async with prepared(make_runner()) as runner, reaching(runner) as client:
            runner.start("one", FAKE)
            assert runner.record("one").boot == Booting()
            config = await booted(runner, "one")
            assert set(config) == {"appiumUrl", "capabilities"}
            assert config["appiumUrl"].startswith("http://127.0.0.1:")

            blank = await create(client, config)
            assert "<app" in (await client.get(f"{blank}/source")).json()["value"]
            own = await create(client, config, **{"appium:app": str(app)})
            button = await client.post(
                f"{own}/element", json={"using": "xpath", "value": "//Button"}
            )
            assert button.status_code == 200

            assert find_processes([directory])
            runner.stop("one")
            runner.stop("one")
            await eventually(
                lambda: not directory.exists() and not find_processes([directory])
            )
            assert "it was stopped" in reason(runner.record("one").boot)

    asyncio.run(scenario())


def test_sessions_run_concurrently_and_close_ends_them_all(
    make_runner: MakeRunner, state_dir: Path
) -> None:
    async def scenario() -> None:
        async with prepared(make_runner()) as runner, reaching(runner) as client:
            runner.start("one", FAKE)
            runner.start("two", {**FAKE, "platform": "ios", "packageVersion": "3.8"})
            runner.start("three", FAKE)
            configs = [await booted(runner, name) for name in ("one", "two")]
            assert configs[0]["appiumUrl"] != configs[1]["appiumUrl"]
            runner.stop("one")
            await eventually(lambda: not (state_dir / "programs/one").exists())
            assert await create(client, configs[1])

    others = nodes()  # of tests of other modules, whose sessions go on
    asyncio.run(scenario())
    assert list((state_dir / "programs").iterdir()) == []
    assert not nodes() - others


@dataclass(frozen=True)
class EndedSession:
    """One session of Appium: what its programs saw, and what its record told during and after it."""

    directory: Path
    environs: Sequence[Mapping[str, str]]
    record: Record
    after_status_checks: float | None
    after_a_new_session: float | None
    after_a_command: float | None


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, cache_dir: Path) -> EndedSession:
    """A session for all tests that only look at it."""
    directory = tmp_path_factory.mktemp("ended")

    async def scenario() -> EndedSession:
        async with (
            prepared(runner_in(directory, cache_dir)) as runner,
            reaching(runner) as client,
        ):
            runner.start("one", FAKE)
            config, record = await booted(runner, "one"), runner.record("one")
            environs = [
                process.environ()
                for process in find_processes([directory / "state/programs/one"])
            ]
            for _ in range(3):
                await client.get(f"{config['appiumUrl']}/status")
            checked = record.last_activity
            session = await create(client, config)
            await eventually(lambda: record.last_activity)
            created = record.last_activity
            await client.get(f"{session}/source")
            await eventually(lambda: record.last_activity != created)
            asked = record.last_activity
            runner.stop("one")
            await eventually(lambda: reported(runner, "one")[-1] == "processes exited")
        return EndedSession(
            directory, environs, runner.record("one"), checked, created, asked
        )

    return asyncio.run(scenario())


def test_programs_see_no_token_and_only_their_own_directories(
    ended: EndedSession,
) -> None:
    programs = ended.directory / "state/programs"
    assert ended.environs
    for environ in ended.environs:
        assert not [name for name in environ if "TOKEN" in name]
        assert {environ[name] for name in ("HOME", "TMPDIR")} == {
            f"{programs}/one/home",
            f"{programs}/one/tmp",
        }
    # The user's files are for nobody else's eyes, and neither is what a session leaves for a while.
    assert programs.stat().st_mode & 0o077 == 0
    assert not (ended.directory / "home").exists()


def test_the_timeline_of_a_session_is_available_after_its_end(
    ended: EndedSession,
) -> None:
    first, *others = [entry.text for entry in ended.record.entries]
    assert first.startswith("device: fake")
    assert others == [
        "controller ready: Appium 3.8.0",
        "stopping processes",
        "processes exited",
    ]
    assert "listener started on" in ended.record.output.text


def test_commands_count_as_activity_but_status_checks_do_not(
    ended: EndedSession,
) -> None:
    assert ended.after_status_checks is None
    assert ended.after_a_new_session is not None
    assert ended.after_a_command not in {None, ended.after_a_new_session}
    assert ended.record.last_activity is None


def test_an_appium_that_dies_fails_its_session_with_its_last_output(
    make_runner: MakeRunner, state_dir: Path
) -> None:
    directory = state_dir / "programs/one"

    async def scenario() -> None:
        async with prepared(make_runner()) as runner:
            runner.start("one", FAKE)
            await booted(runner, "one")
            [appium] = find_processes([directory])
            appium.send_signal(signal.SIGKILL)
            why = await failed(runner, "one")
            assert "Appium exited unexpectedly: exit status -9" in why
            assert "listener started on" in why
            runner.stop("one")  # at once, while what it left is being cleared
        assert not directory.exists()

    asyncio.run(scenario())


@pytest.mark.parametrize("moment", [0, 0.05, 0.4])
def test_a_session_can_be_stopped_while_it_boots(
    moment: float, make_runner: MakeRunner, state_dir: Path
) -> None:
    async def scenario() -> None:
        async with prepared(make_runner()) as runner:
            runner.start("one", {"platform": "ios"})
            await asyncio.sleep(moment)
            runner.stop("one")
        assert list((state_dir / "programs").iterdir()) == []

    asyncio.run(scenario())
    assert not find_processes([state_dir / "programs/one"])


@pytest.mark.skipif(
    hardware() != BUILT_FOR, reason="the pinned browser is not for this system"
)
@pytest.mark.parametrize("session_type", sorted(REQUESTABLE_SESSION_TYPES))
def test_without_a_browser_on_path_the_pinned_one_serves_every_session_type(
    session_type: str, make_runner: MakeRunner, cache_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("/bin/sh")
    pinned = Pinned(cache_dir)

    async def scenario() -> None:
        async with prepared(make_runner(PATH=str(tmp_path / "bin"))) as runner:
            runner.start("one", {"platform": "ios", "type": session_type})
            await booted(runner, "one")
            [device] = [
                text for text in reported(runner, "one") if text.startswith("device:")
            ]
            assert (
                f"(chromium: {pinned.program}, Chromium 153.0.0, installed by pytest-device)"
                in device
            )

    asyncio.run(scenario())


@pytest.mark.skipif(
    hardware() != BUILT_FOR, reason="the pinned browser is not for this system"
)
def test_appium_starts_beside_the_browser(
    make_runner: MakeRunner, cache_dir: Path, tmp_path: Path
) -> None:
    pinned, bin_dir = Pinned(cache_dir), tmp_path / "bin"
    bin_dir.mkdir()
    # Not a link: the program finds its libraries beside itself.
    chromedriver = bin_dir / "chromedriver"
    chromedriver.write_text(f'#!/bin/sh\nexec "{pinned.chromedriver}" "$@"\n')
    chromedriver.chmod(0o700)
    patient = bin_dir / "chromium"
    # Its working directory is the session's, where Appium gets its home before it starts.
    patient.write_text(
        f'''#!/bin/sh
        tries=0
        until [ "$1" = --version ] || [ -d appium ]; do
            [ $((tries += 1)) -gt 600 ] && {{ echo "Appium did not start"; exit 1; }}
            sleep 0.05
        done
        exec "{pinned.program}" "$@"'''
    )
    patient.chmod(0o700)
    path = os.pathsep.join([str(bin_dir), os.environ["PATH"]])

    async def scenario() -> None:
        async with prepared(make_runner(PATH=path)) as runner:
            runner.start("one", {"platform": "android", "type": "appium"})
            await booted(runner, "one")
            assert any(
                f"(chromium: {patient}" in text for text in reported(runner, "one")
            )

    asyncio.run(scenario())


def test_a_browser_that_fails_takes_appium_with_it(
    make_runner: MakeRunner, cache_dir: Path, state_dir: Path, tmp_path: Path
) -> None:
    pinned, bin_dir = Pinned(cache_dir), tmp_path / "bin"
    bin_dir.mkdir()
    # Not a link: the program finds its libraries beside itself.
    chromedriver = bin_dir / "chromedriver"
    chromedriver.write_text(f'#!/bin/sh\nexec "{pinned.chromedriver}" "$@"\n')
    chromedriver.chmod(0o700)
    broken = bin_dir / "chromium"
    broken.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec "{pinned.program}" "$1"; echo broken; exit 3'
    )
    broken.chmod(0o700)
    path = os.pathsep.join([str(bin_dir), os.environ["PATH"]])

    async def scenario() -> None:
        async with prepared(make_runner(PATH=path)) as runner:
            runner.start("one", {"platform": "android", "type": "appium"})
            assert "exit status 3" in await failed(runner, "one")
            await eventually(lambda: "processes exited" in reported(runner, "one"))
            assert not find_processes([state_dir / "programs/one"])

    asyncio.run(scenario())


def test_an_unavailable_app_fails_the_session_with_the_reason(
    make_runner: MakeRunner,
) -> None:
    async def scenario() -> None:
        async with prepared(make_runner()) as runner:
            build = "c41a7e96-2d83-4b0f-9e15-8a6f3d7c0b24"
            runner.start(
                "one", {"platform": "ios", "type": "web-preview-only", "buildId": build}
            )
            assert build in await failed(runner, "one")

    asyncio.run(scenario())


@pytest.mark.parametrize("version", [None, "3", "3.8", "3.8.0"])
def test_the_installed_version_matches_any_prefix(version: str | None) -> None:
    check({"packageVersion": version}, APPIUM)


@pytest.mark.parametrize(
    ("project", "version"),
    [
        *(
            (APPIUM, wrong)
            for wrong in ("2", "4", "3.7", "3.8.1", "3.8.0.1", "latest", "")
        ),
        (AGENT_DEVICE, "3.8"),
        (ARGENT, "1"),
    ],
)
def test_another_version_is_refused_with_the_installed_one(
    project: Any, version: str
) -> None:
    with pytest.raises(
        ControllerError,
        match=f"packageVersion '{version}' is not installed here: {project.title} is",
    ):
        check({"packageVersion": version}, project)


def test_a_session_of_an_earlier_service_is_not_mistaken_for_a_booting_one(
    make_runner: MakeRunner,
) -> None:
    runner = make_runner()
    assert "was restarted" in reason(runner.record("one").boot)
    record = runner.record("one")
    assert (
        list(record.entries),
        record.output.text,
        record.device,
        record.last_activity,
    ) == ([], "", None, None)


def test_an_unusable_state_directory_is_named(
    make_runner: MakeRunner, state_dir: Path
) -> None:
    state_dir.write_text("a file where the directory should be")
    with pytest.raises(ConfigError, match=f"{state_dir}/programs cannot be created: "):
        asyncio.run(make_runner().prepare(print))


NODE = """#!/bin/sh
printf '["24.0.0", "%s"]' "$0"
"""
NPM = """#!/bin/sh
mkdir -p "$NPM_CONFIG_MEETING" node_modules/appium node_modules/agent-device/dist/src/internal
touch "$NPM_CONFIG_MEETING/$(basename "$PWD")" node_modules/appium/index.js node_modules/agent-device/dist/src/internal/daemon.js
for _ in $(seq 500); do
    [ "$(ls "$NPM_CONFIG_MEETING" | wc -l)" -ge 2 ] && exit 0
    sleep 0.02
done
echo nobody else installs anything
exit 1
"""


def test_programs_are_installed_side_by_side(
    script: Callable[[str, str], Path], tmp_path: Path
) -> None:
    script("npm", NPM)
    path = f"{script('node', NODE).parent}:/usr/bin:/bin"
    # Only variables for installers reach them.
    meeting = str(tmp_path / "meeting")
    runner = runner_in(
        tmp_path, tmp_path / "cache", PATH=path, NPM_CONFIG_MEETING=meeting
    )
    types = [SessionType.APPIUM, SessionType.AGENT_DEVICE]
    reported: list[str] = []

    async def prepare() -> None:
        try:
            await runner.prepare(reported.append, types)
        finally:
            await runner.close()

    asyncio.run(prepare())

    assert sum(line.startswith("installed ") for line in reported) == 2


def test_of_several_failed_installations_the_first_is_reported(
    script: Callable[[str, str], Path], tmp_path: Path
) -> None:
    script("npm", "#!/bin/sh\necho it is broken\nexit 3\n")
    path = f"{script('node', NODE).parent}:/usr/bin:/bin"
    runner = runner_in(tmp_path, tmp_path / "cache", PATH=path)

    async def prepare() -> None:
        try:
            await runner.prepare(print, [SessionType.APPIUM, SessionType.AGENT_DEVICE])
        finally:
            await runner.close()

    with pytest.raises(ConfigError, match="could not be installed: exit status 3"):
        asyncio.run(prepare())


SERVICE = """
import asyncio, os, sys
from pathlib import Path
from pytest_device.service import gateway
from pytest_device.service.devices.browsers import BUILT_FOR, Pinned, hardware
from pytest_device.service.keys import Keys
from pytest_device.service.runners.base import Booting
from pytest_device.service.runners.programs import ProgramsRunner
from pytest_device.service.runners.resources import Directories, Resources

async def serve(request, state_dir, cache_dir):
    directories = Directories(Path(state_dir), Path(cache_dir), Path(state_dir, "home"))
    resources = Resources(Keys("http://127.0.0.1:9"), directories, os.environ, lambda text: None)
    runner = ProgramsRunner(resources, log=lambda text: None)
    await runner.prepare(lambda text: None)
    runner.start("one", eval(request))
    while runner.record("one").boot == Booting():
        await asyncio.sleep(0.02)
    print(runner.record("one").boot, flush=True)
    await asyncio.sleep(99)

asyncio.run(serve(*sys.argv[1:]))
"""


def serve(
    request: Mapping[str, str], state_dir: Path, cache_dir: Path
) -> "subprocess.Popen[str]":
    command: list[str | Path] = [
        sys.executable,
        "-c",
        SERVICE,
        repr(request),
        state_dir,
        cache_dir,
    ]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    assert service.stdout.readline().startswith("Running(")
    return service


@pytest.mark.parametrize(
    "session_type", ["appium", "agent-device", "argent", "web-preview-only"]
)
def test_a_killed_service_leaves_no_program(
    session_type: str, state_dir: Path, cache_dir: Path
) -> None:
    directory = state_dir / "programs/one"
    with serve(
        {"type": session_type, "platform": "android"}, state_dir, cache_dir
    ) as service:
        assert len(find_processes([directory])) > 1
        service.kill()
        asyncio.run(
            eventually(
                lambda: not directory.exists() and not find_processes([directory])
            )
        )


def test_programs_that_survive_the_guard_are_stopped_by_the_next_service(
    state_dir: Path,
    cache_dir: Path,
    make_runner: MakeRunner,
) -> None:
    directory = state_dir / "programs/one"
    with serve(FAKE, state_dir, cache_dir) as service:
        [guard] = guards(psutil.Process(service.pid))
        guard.kill()
        asyncio.run(eventually(lambda: not alive(guard)))
        service.kill()
        service.wait()
    assert find_processes([directory])

    make_runner().end_leftovers()

    assert not find_processes([directory])
    assert list((state_dir / "programs").iterdir()) == []
