import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.runners.appium import AppiumRunner, check
from pytest_device.service.runners.base import Boot, Booting, Failed, Running
from pytest_device.service.runners.processes import end, working_for
from tests.service.runners.programs import alive, eventually, guards

pytestmark = pytest.mark.usefixtures("tools")  # everything is installed

REQUEST = {"type": "appium", "platform": "android"}
APP = "<app><Button id='go'>Go</Button></app>"


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    """Whoever is left in it when a test has failed is ended."""
    yield tmp_path / "state"
    end(list(tmp_path.glob("state/programs/*")), grace_seconds=0)


@pytest.fixture
def make_runner(state_dir: Path, cache_dir: Path, tmp_path: Path) -> Callable[[], AppiumRunner]:
    """The home has no drivers, so that the device is the fake one."""
    environ = {**os.environ, "DEVICE_TOKEN": "made-up-token", "GITHUB_TOKEN": "another-made-up-token"}
    environ.pop("APPIUM_HOME", None)
    return lambda: AppiumRunner(
        state_dir=state_dir, cache_dir=cache_dir, log=print, environ=environ, home=tmp_path / "home"
    )


@asynccontextmanager
async def prepared(make_runner: Callable[[], AppiumRunner]) -> AsyncGenerator[AppiumRunner, None]:
    runner = make_runner()
    try:
        await runner.prepare(print)
        yield runner
    finally:
        await runner.close()


async def booted(runner: AppiumRunner, session_id: str) -> Mapping[str, Any]:
    await eventually(lambda: not isinstance(runner.look(session_id), Booting))
    boot = runner.look(session_id)
    assert isinstance(boot, Running), boot
    return boot.remote_config


def reason(boot: Boot) -> str:
    assert isinstance(boot, Failed)
    return boot.reason


async def create(client: httpx.AsyncClient, config: Mapping[str, Any], **capabilities: str) -> str:
    reply = await client.post(
        f"{config['appiumUrl']}/session",
        json={"capabilities": {"alwaysMatch": {**config["capabilities"], **capabilities}}},
    )
    assert reply.status_code == 200, reply.text
    return f"{config['appiumUrl']}/session/{reply.json()['value']['sessionId']}"


def test_a_session_is_a_real_appium_that_leaves_nothing_behind(
    make_runner: Callable[[], AppiumRunner], state_dir: Path, tmp_path: Path
) -> None:
    app = tmp_path / "app.xml"
    app.write_text(APP)
    directory = state_dir / "programs/one"

    async def scenario() -> None:
        async with prepared(make_runner) as runner, httpx.AsyncClient() as client:
            runner.start("one", REQUEST)
            assert runner.look("one") == Booting()
            config = await booted(runner, "one")
            assert set(config) == {"appiumUrl", "capabilities"}
            assert config["appiumUrl"].startswith("http://127.0.0.1:")

            blank = await create(client, config)
            assert "<app" in (await client.get(f"{blank}/source")).json()["value"]
            own = await create(client, config, **{"appium:app": str(app)})
            button = await client.post(f"{own}/element", json={"using": "xpath", "value": "//Button"})
            assert button.status_code == 200

            assert working_for([directory])
            runner.stop("one")
            runner.stop("one")
            await eventually(lambda: not working_for([directory]) and not directory.exists())
            assert "it was stopped" in reason(runner.look("one"))

    asyncio.run(scenario())


def test_sessions_run_side_by_side_and_close_ends_them_all(
    make_runner: Callable[[], AppiumRunner], state_dir: Path
) -> None:
    async def scenario() -> None:
        async with prepared(make_runner) as runner, httpx.AsyncClient() as client:
            runner.start("one", REQUEST)
            runner.start("two", {**REQUEST, "platform": "ios", "packageVersion": "3.8"})
            runner.start("three", REQUEST)
            configs = [await booted(runner, name) for name in ("one", "two")]
            assert configs[0]["appiumUrl"] != configs[1]["appiumUrl"]
            runner.stop("one")
            await eventually(lambda: not (state_dir / "programs/one").exists())
            assert await create(client, configs[1])

    asyncio.run(scenario())
    assert list((state_dir / "programs").iterdir()) == []
    assert not [child for child in psutil.Process().children(recursive=True) if "node" in child.name()]


def test_programs_see_no_token_and_only_their_own_directories(
    make_runner: Callable[[], AppiumRunner], state_dir: Path, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with prepared(make_runner) as runner:
            runner.start("one", REQUEST)
            await booted(runner, "one")
            directory = state_dir / "programs/one"
            for process in working_for([directory]):
                environ = process.environ()
                assert not [name for name in environ if "TOKEN" in name]
                assert {environ[name] for name in ("HOME", "TMPDIR")} == {f"{directory}/home", f"{directory}/tmp"}
            # The user's files are for nobody else's eyes, and neither is what a session leaves for a while.
            assert (state_dir / "programs").stat().st_mode & 0o077 == 0

    asyncio.run(scenario())
    assert not (tmp_path / "home").exists()


def test_an_appium_that_dies_is_a_failed_session_with_its_last_words(
    make_runner: Callable[[], AppiumRunner], state_dir: Path
) -> None:
    directory = state_dir / "programs/one"

    async def scenario() -> None:
        async with prepared(make_runner) as runner:
            runner.start("one", REQUEST)
            await booted(runner, "one")
            [appium] = working_for([directory])
            appium.send_signal(signal.SIGKILL)
            await eventually(lambda: isinstance(runner.look("one"), Failed))
            assert "Appium ended by itself: exit status -9" in reason(runner.look("one"))
            assert "listener started on" in reason(runner.look("one"))
            runner.stop("one")  # at once, while what it left is being cleared
        assert not directory.exists()

    asyncio.run(scenario())


def test_commands_count_as_activity_and_looks_at_the_status_do_not(make_runner: Callable[[], AppiumRunner]) -> None:
    async def scenario() -> None:
        async with prepared(make_runner) as runner, httpx.AsyncClient() as client:
            runner.start("one", REQUEST)
            config = await booted(runner, "one")
            for _ in range(3):
                await client.get(f"{config['appiumUrl']}/status")
            assert runner.last_activity("one") is None

            session = await create(client, config)
            await eventually(lambda: runner.last_activity("one"))
            created = runner.last_activity("one")
            await client.get(f"{session}/source")
            await eventually(lambda: runner.last_activity("one") != created)

        assert runner.last_activity("one") is None

    asyncio.run(scenario())


@pytest.mark.parametrize("moment", [0, 0.05, 0.4])
def test_a_session_can_be_stopped_while_it_boots(
    moment: float, make_runner: Callable[[], AppiumRunner], state_dir: Path
) -> None:
    async def scenario() -> None:
        async with prepared(make_runner) as runner:
            runner.start("one", REQUEST)
            await asyncio.sleep(moment)
            runner.stop("one")
        assert list((state_dir / "programs").iterdir()) == []

    asyncio.run(scenario())
    assert not working_for([state_dir / "programs/one"])


def test_what_is_not_served_is_a_failed_session_that_says_so(make_runner: Callable[[], AppiumRunner]) -> None:
    async def scenario() -> None:
        async with prepared(make_runner) as runner:
            runner.start("one", {"platform": "ios"})
            await eventually(lambda: isinstance(runner.look("one"), Failed))
            assert "drives appium sessions only, and this one is agent-device" in reason(runner.look("one"))

    asyncio.run(scenario())


@pytest.mark.parametrize("version", [None, "3", "3.8", "3.8.0"])
def test_the_installed_version_is_served_however_exactly_it_is_named(version: str | None) -> None:
    check({**REQUEST, "packageVersion": version}, installed="3.8.0")


@pytest.mark.parametrize("version", ["2", "4", "3.7", "3.8.1", "3.8.0.1", "latest", ""])
def test_another_version_is_refused_by_name(version: str) -> None:
    with pytest.raises(ControllerError, match=f"packageVersion '{version}' .* give one of 3, 3.8, 3.8.0"):
        check({**REQUEST, "packageVersion": version}, installed="3.8.0")


def test_a_session_of_an_earlier_service_is_told_apart_from_one_that_boots(
    make_runner: Callable[[], AppiumRunner],
) -> None:
    assert "started anew" in reason(make_runner().look("one"))
    assert make_runner().last_activity("one") is None


def test_nothing_starts_before_it_is_prepared(make_runner: Callable[[], AppiumRunner]) -> None:
    with pytest.raises(RuntimeError, match=r"prepare\(\) comes first"):
        make_runner().start("one", REQUEST)


def test_a_state_directory_that_cannot_be_used_is_named(
    make_runner: Callable[[], AppiumRunner], state_dir: Path
) -> None:
    state_dir.write_text("a file where the directory should be")
    with pytest.raises(ConfigError, match=f"{state_dir}/programs cannot be made: "):
        asyncio.run(make_runner().prepare(print))


SERVICE = """
import asyncio, os, sys
from pathlib import Path
from pytest_device.service.runners.appium import AppiumRunner
from pytest_device.service.runners.base import Booting

async def serve(state_dir, cache_dir):
    runner = AppiumRunner(state_dir=state_dir, cache_dir=cache_dir, log=lambda text: None, home=state_dir / "home")
    await runner.prepare(lambda text: None)
    runner.start("one", {"type": "appium", "platform": "android"})
    while runner.look("one") == Booting():
        await asyncio.sleep(0.02)
    print(runner.look("one").remote_config["appiumUrl"], flush=True)
    await asyncio.sleep(99)

asyncio.run(serve(*map(Path, sys.argv[1:])))
"""


def serve(state_dir: Path, cache_dir: Path) -> "subprocess.Popen[str]":
    command: list[str | Path] = [sys.executable, "-c", SERVICE, state_dir, cache_dir]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    assert service.stdout.readline().startswith("http://127.0.0.1:")
    return service


def test_a_killed_service_leaves_no_appium(state_dir: Path, cache_dir: Path) -> None:
    directory = state_dir / "programs/one"
    with serve(state_dir, cache_dir) as service:
        assert working_for([directory])
        service.kill()
        asyncio.run(eventually(lambda: not working_for([directory]) and not directory.exists()))


def test_what_even_the_guard_could_not_end_the_next_service_ends(
    state_dir: Path,
    cache_dir: Path,
    make_runner: Callable[[], AppiumRunner],
) -> None:
    directory = state_dir / "programs/one"
    with serve(state_dir, cache_dir) as service:
        [guard] = guards(psutil.Process(service.pid))
        guard.kill()
        asyncio.run(eventually(lambda: not alive(guard)))
        service.kill()
        service.wait()
    assert working_for([directory])

    make_runner().end_leftovers()

    assert not working_for([directory])
    assert list((state_dir / "programs").iterdir()) == []
