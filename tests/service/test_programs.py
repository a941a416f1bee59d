"""The programs of sessions at the running service: their start, what they see, and no leftovers."""

import json
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pytest

from pytest_device.spec import REQUESTABLE_SESSION_TYPES
from tests.pinned_browser import needs_pinned_browser
from tests.service.pages import browser_programs
from tests.service.process import (
    ServiceProcess,
    config,
    refusal,
    running,
    startup,
)
from tests.service.programs.alive import guards
from tests.service.real_session import (
    LIMIT_SECONDS,
    Create,
    Session,
    created,
    creating,
    kill_leftovers,
)
from tests.waiting import eventually

Script = Callable[[str, str], Path]

FAKE: Final = {"type": "appium", "deviceIdentifier": "fake"}
"""A session without a browser, which only Appium can use."""
APP: Final = "<app><Button id='go'>Go</Button></app>"


def settings(directory: Path, **more: Any) -> dict[str, Any]:
    """Return the configuration of a service that installs nothing before it is ready."""
    return config(directory, **{"runner": "real", "types": []} | more)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("programs")
    yield directory
    kill_leftovers(directory)


@pytest.fixture(scope="module")
def bin_dir(directory: Path) -> Path:
    """The first directory on the service's PATH, with a chromedriver that fits the browser of the tests."""
    bin_dir = directory / "bin"
    bin_dir.mkdir()
    return bin_dir


@pytest.fixture(scope="module")
def service(
    directory: Path, bin_dir: Path, cache_dir: Path
) -> Iterator[ServiceProcess]:
    """A service with a home of its own, and secrets in its environment."""
    environ = {
        **os.environ,
        "HOME": str(directory / "home"),
        "PATH": os.pathsep.join([str(bin_dir), os.environ["PATH"]]),
        "DEVICE_TOKEN": "made-up-token",
        "GITHUB_TOKEN": "another-made-up-token",
    }
    with running(settings(directory, cache_dir=str(cache_dir)), env=environ) as service:
        yield service
        service.end()


@pytest.fixture
def create(service: ServiceProcess, directory: Path) -> Iterator[Create]:
    """Create sessions, which are stopped after the test."""
    with creating(service, directory) as create:
        yield create


def test_an_appium_that_dies_fails_its_session_and_no_other(create: Create) -> None:
    one = create(**FAKE, packageVersion="3.8")
    two = create(**FAKE, packageVersion="3.8.0", platform="ios")
    assert one.ready()["appiumUrl"] != two.ready()["appiumUrl"]
    [appium] = one.processes()

    appium.kill()

    reason = one.errored()
    assert reason.startswith("Appium exited unexpectedly: killed by SIGKILL\n")
    assert "listener started on" in reason
    assert eventually(one.is_gone, LIMIT_SECONDS)
    assert two.driver()


@pytest.mark.parametrize(
    ("session_type", "versions", "installed"),
    [
        ("appium", ["2", "4", "3.7", "3.8.1", "3.8.0.1", "latest"], "Appium 3.8.0"),
        ("agent-device", ["3.8"], "agent-device "),
        ("argent", ["1"], "argent "),
    ],
)
def test_another_version_of_a_controller_is_refused_with_the_installed_one(
    create: Create, session_type: str, versions: list[str], installed: str
) -> None:
    sessions = {
        version: create(type=session_type, packageVersion=version)
        for version in versions
    }

    for version, session in sessions.items():
        refused = f"packageVersion {version!r} is not installed here: {installed}"
        assert session.errored().startswith(refused)


@dataclass(frozen=True)
class EndedSession:
    """A session of Appium that has ended, what it published, and the environments that its programs had."""

    session: Session
    remote: Mapping[str, Any]
    environs: Sequence[Mapping[str, str]]


@pytest.fixture(scope="module")
def ended(service: ServiceProcess, directory: Path) -> EndedSession:
    """A session that a test of Appium has used."""
    app = directory / "app.xml"
    app.write_text(APP)
    session = created(service, directory, **FAKE, packageVersion="3")
    remote = session.ready()
    environs = [process.environ() for process in session.processes()]

    blank = session.driver()
    assert "<app" in httpx.get(f"{blank}/source").json()["value"]
    own = session.driver(**{"appium:app": str(app)})
    button = {"using": "xpath", "value": "//Button"}
    assert httpx.post(f"{own}/element", json=button).status_code == 200

    session.stop()
    session.stop()
    assert eventually(session.is_gone, LIMIT_SECONDS)
    return EndedSession(session, remote, environs)


def test_an_appium_session_is_a_real_server_that_leaves_nothing_behind(
    ended: EndedSession,
) -> None:
    assert set(ended.remote) == {"appiumUrl", "capabilities"}
    assert ended.remote["appiumUrl"].startswith(ended.session.service.url)
    assert ended.environs
    assert ended.session.is_gone()


def test_programs_see_no_token_and_only_their_own_directories(
    ended: EndedSession, directory: Path
) -> None:
    own = ended.session.directory
    assert ended.environs
    for environ in ended.environs:
        assert not [name for name in environ if "TOKEN" in name]
        assert (environ["HOME"], environ["TMPDIR"]) == (f"{own}/home", f"{own}/tmp")
    # The user's files are for nobody else's eyes, and neither is what a session leaves for a while.
    assert stat.S_IMODE(own.parent.stat().st_mode) == 0o700
    assert not (directory / "home").exists()


def test_timeline_and_log_of_a_session_are_available_after_its_end(
    ended: EndedSession,
) -> None:
    assert eventually(lambda: "processes exited" in ended.session.timeline())
    noted = ended.session.timeline()

    assert any(text.startswith("device: fake") for text in noted)
    steps = ["controller ready: Appium 3.8.0", "stopping processes", "processes exited"]
    assert [text for text in noted if text in steps] == steps
    assert "listener started on" in ended.session.log()


def is_starting(session: Session) -> bool:
    return bool(session.processes())


@pytest.mark.parametrize(
    "moment",
    [lambda _: True, lambda session: session.directory.exists(), is_starting],
    ids=["at once", "with its directory", "with its first process"],
)
def test_a_session_can_be_stopped_while_it_boots(
    create: Create, moment: Callable[[Session], bool]
) -> None:
    session = create(type="agent-device", platform="ios")
    assert eventually(lambda: moment(session), LIMIT_SECONDS)

    session.stop()

    assert eventually(session.is_gone, LIMIT_SECONDS)


def put_browser(bin_dir: Path, script: str) -> Path:
    """Put a browser on the service's PATH: a script in which ``$browser`` is the real one."""
    browser, chromedriver = browser_programs()
    # Not links: the programs find their libraries beside themselves.
    for name, text in {
        "chromedriver": f'exec {shlex.quote(str(chromedriver))} "$@"',
        "chromium": f"browser={shlex.quote(str(browser))}\n{script}",
    }.items():
        (bin_dir / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_dir / name).chmod(0o700)
    return bin_dir / "chromium"


WAITING: Final = """
tries=0
until [ "$1" = --version ] || [ -d appium ]; do
    [ $((tries += 1)) -gt 600 ] && { echo "Appium did not start"; exit 1; }
    sleep 0.05
done
exec "$browser" "$@"
"""
"""Its working directory is the session's, where Appium gets its home before it starts."""

BROKEN: Final = '[ "$1" = --version ] && exec "$browser" "$1"; echo broken; exit 3'


def test_appium_starts_beside_the_browser(create: Create, bin_dir: Path) -> None:
    browser = put_browser(bin_dir, WAITING)
    session = create(type="appium")

    session.ready()

    assert any(f"(chromium: {browser}" in text for text in session.timeline())


def test_a_browser_that_fails_takes_appium_with_it(
    create: Create, bin_dir: Path
) -> None:
    put_browser(bin_dir, BROKEN)
    session = create(type="appium")

    assert "exit status 3" in session.errored()
    assert eventually(lambda: "processes exited" in session.timeline())
    assert session.is_gone()


@needs_pinned_browser
@pytest.mark.parametrize(
    "types",
    [
        pytest.param(["web-preview-only"], id="one"),
        # In the gate, the examples in `tests/bare` use the others: that machine has no browser, either.
        pytest.param(
            sorted(REQUESTABLE_SESSION_TYPES), id="each", marks=pytest.mark.nightly
        ),
    ],
)
def test_without_a_browser_on_path_the_pinned_one_serves_the_session(
    types: Sequence[str], tmp_path: Path, cache_dir: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("/bin/sh")
    environ = {**os.environ, "PATH": str(tmp_path / "bin")}
    with running(settings(tmp_path, cache_dir=str(cache_dir)), env=environ) as service:
        sessions = [
            created(service, tmp_path, type=session_type) for session_type in types
        ]
        for session in sessions:
            session.ready()
            noted = "\n".join(session.timeline())
            assert f"(chromium: {cache_dir}/chromium-153." in noted
            assert ", Chromium 153.0.0, installed by pytest-device)" in noted
        service.end()


def test_the_next_service_stops_programs_that_survived_the_guard_and_has_their_page(
    tmp_path: Path,
) -> None:
    with running(settings(tmp_path)) as service:
        session = created(service, tmp_path, **FAKE)
        session.ready()
        [guard] = guards(psutil.Process(service.process.pid))
        guard.kill()
        assert eventually(lambda: guard.status() == psutil.STATUS_ZOMBIE)
        service.process.kill()
        service.process.wait(LIMIT_SECONDS)
    assert session.processes()

    with running(settings(tmp_path)) as service:
        assert session.is_gone()
        later = replace(session, service=service)
        assert "the service stopped before the session ended" in later.timeline()[-1]


def test_a_directory_that_cannot_be_created_for_programs_is_named(
    tmp_path: Path,
) -> None:
    programs = tmp_path / "state/programs"
    programs.parent.mkdir(mode=0o700)
    programs.write_text("a file where the directory should be")

    reported = refusal(json.dumps(settings(tmp_path)))

    assert reported.startswith(f"{programs} cannot be created: ")


NODE: Final = """#!/bin/sh
printf '["24.0.0", "%s"]' "$0"
"""
NPM: Final = """#!/bin/sh
mkdir -p "$NPM_CONFIG_MEETING" node_modules/appium node_modules/agent-device/dist/src/internal
touch "$NPM_CONFIG_MEETING/$(basename "$PWD")" node_modules/appium/index.js node_modules/agent-device/dist/src/internal/daemon.js
for _ in $(seq 500); do
    [ "$(ls "$NPM_CONFIG_MEETING" | wc -l)" -ge 2 ] && exit 0
    sleep 0.02
done
echo nobody else installs anything
exit 1
"""


def first_start(
    directory: Path, script: Script, npm: str
) -> tuple[list[str], dict[str, Any]]:
    """Start a service that installs two controllers with this npm; return its steps and its last event."""
    script("npm", npm)
    environ = {
        "PATH": f"{script('node', NODE).parent}:/usr/bin:/bin",
        "HOME": str(directory),
        # Only variables for installers reach them.
        "NPM_CONFIG_MEETING": str(directory / "meeting"),
    }
    cache = str(directory / "cache")
    types = ["appium", "agent-device"]
    return startup(settings(directory, types=types, cache_dir=cache), env=environ)


def test_programs_are_installed_side_by_side(tmp_path: Path, script: Script) -> None:
    steps, last = first_start(tmp_path, script, NPM)

    assert last["event"] == "ready"
    assert sum(step.startswith("installed ") for step in steps) == 2


def test_of_several_failed_installations_the_first_is_reported(
    tmp_path: Path, script: Script
) -> None:
    _, last = first_start(tmp_path, script, "#!/bin/sh\necho it is broken\nexit 3\n")

    assert last["event"] == "error"
    assert "could not be installed: exit status 3" in last["text"]
