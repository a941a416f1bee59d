"""The installation of a package: once, completely or not at all.

A script installs the package: no service can be told to install anything but its pinned programs.
"""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from pytest_device.errors import ConfigError
from pytest_device.service.programs.cache import Installer, Package
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.processes import find_processes
from pytest_device.testing import FakeClock
from tests.service.programs.alive import eventually

Script = Callable[[str, str], Path]

GOOD = "#!/bin/sh\ncp wanted.json proof.json\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def package(cache: Path, tmp_path: Path) -> Callable[[Path], Package]:
    wanted = tmp_path / "wanted.json"
    wanted.write_text("{}")
    return lambda command: Package(
        "Thing 1.0",
        cache / "thing-1.0",
        Path("proof.json"),
        [command],
        [wanted],
        by_hand="get a thing",
    )


@pytest.fixture
def reported() -> list[str]:
    return []


@pytest.fixture
def installer(guard: Guard, reported: list[str]) -> Installer:
    return Installer(
        guard, {"PATH": "/usr/bin:/bin"}, reported.append, progress_seconds=0.05
    )


def test_a_package_is_installed_once_and_the_installation_is_reported(
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
    reported: list[str],
    cache: Path,
) -> None:
    # Not done before its progress was reported.
    go = cache.with_name("go")
    wait = f"until [ -e {go} ]; do sleep 0.05; done"
    thing = package(
        script("install", f"#!/bin/sh\n{wait}; cp wanted.json proof.json\n")
    )

    def report(line: str) -> None:
        reported.append(line)
        if line.endswith(" so far"):
            go.touch()

    asyncio.run(replace(installer, progress=report).ensure(thing))

    assert thing.installed
    assert reported[0] == f"installing Thing 1.0 in {cache / 'thing-1.0'}, once"
    assert any(
        re.fullmatch(r"installing Thing 1\.0: \d+ s so far", line) for line in reported
    )
    assert re.fullmatch(r"installed Thing 1\.0 in \d+ s", reported[-1])
    reported.clear()
    asyncio.run(installer.ensure(thing))
    assert reported == []


BAD_ENDS = {
    "it fails half-way": (
        "cp wanted.json other.json; echo 'npm error code ECONNRESET'; exit 7",
        "exit status 7",
    ),
    "it claims to be done": ("echo all is well", "exit status 0"),
    "it is killed": ("cp wanted.json proof.json; kill -9 $$", "killed by SIGKILL"),
}


@pytest.mark.parametrize(("command", "message"), BAD_ENDS.values(), ids=BAD_ENDS)
def test_a_failed_installation_leaves_nothing_usable_and_the_next_succeeds(
    command: str,
    message: str,
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
    cache: Path,
) -> None:
    with pytest.raises(ConfigError, match=message):
        asyncio.run(
            installer.ensure(package(script("install", f"#!/bin/sh\n{command}\n")))
        )
    assert [path.name for path in cache.iterdir()] == ["thing-1.0.lock"]

    asyncio.run(installer.ensure(package(script("install", GOOD))))

    assert sorted(path.name for path in cache.iterdir()) == [
        "thing-1.0",
        "thing-1.0.lock",
    ]


def test_incomplete_installations_are_replaced(
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
    cache: Path,
) -> None:
    (cache / "thing-1.0.partial-abc/half").mkdir(parents=True)
    (cache / "thing-1.0/rest").mkdir(parents=True)
    asyncio.run(installer.ensure(package(script("install", GOOD))))
    assert sorted(path.name for path in cache.iterdir()) == [
        "thing-1.0",
        "thing-1.0.lock",
    ]
    assert sorted(path.name for path in (cache / "thing-1.0").iterdir()) == [
        "proof.json",
        "wanted.json",
    ]


OTHER_FAILURES = (
    (
        "ERROR: Could not install packages: [Errno 28] No space left on device",
        "free about 500 MB of disk space",
    ),
    ("npm error code EACCES", "grant yourself write access"),
    ("npm error code EINTEGRITY", "a package differs from the pinned one"),
    ("npm error code E401", "log in to the registry"),
    ("npm error code ETARGET", "choose a registry that has these packages"),
    (
        "npm error code ECONNREFUSED",
        "check the network, the proxy and the registry",
    ),
    (
        "headless_shell: error while loading shared libraries: libglib-2.0.so.0: cannot open",
        "get a thing: this system lacks what the program needs",
    ),
    (
        "/lib/libc.so.6: version `GLIBC_2.38' not found",
        "get a thing: this system lacks what the program needs",
    ),
)


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("npm error code ENOSPC", "free about 500 MB of disk space"),
        ("No module named pip", "get a thing yourself: this Python has no pip"),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in OTHER_FAILURES),
    ],
)
def test_a_failure_names_its_cause_and_its_fix(
    line: str,
    fix: str,
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
) -> None:
    failing = script("install", f"#!/bin/sh\necho {shlex.quote(line)} >&2\nexit 1\n")

    with pytest.raises(ConfigError) as failure:
        asyncio.run(installer.ensure(package(failing)))

    assert line in str(failure.value)
    assert f"Fix: {fix}" in str(failure.value)


def test_a_failure_shows_no_credentials(
    installer: Installer, package: Callable[[Path], Package], script: Script
) -> None:
    command = script(
        "install",
        "#!/bin/sh\n"
        "echo 'npm error 404 https://me:my-password@npm.example/appium'\n"
        "echo '//npm.example/:_authToken=my-token'\n"
        "echo 'authorization: Bearer my-token'\n"
        "exit 1\n",
    )
    with pytest.raises(ConfigError) as failure:
        asyncio.run(installer.ensure(package(command)))
    assert "npm.example/appium" in str(failure.value)
    assert "my-token" not in str(failure.value)
    assert "my-password" not in str(failure.value)


def test_a_cache_that_cannot_be_written_is_named(
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
    cache: Path,
) -> None:
    cache.write_text("a file where the directory should be")
    with pytest.raises(
        ConfigError,
        match=rf"cannot be installed in {cache}: File exists.*XDG_CACHE_HOME",
    ):
        asyncio.run(installer.ensure(package(script("install", GOOD))))


@pytest.mark.parametrize("is_installed", [False, True], ids=["missing", "installed"])
def test_programs_in_a_cache_that_others_can_write_to_are_neither_installed_nor_used(
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
    cache: Path,
    *,
    is_installed: bool,
) -> None:
    thing = package(script("install", GOOD))
    if is_installed:
        asyncio.run(installer.ensure(thing))
    cache.mkdir(exist_ok=True)
    cache.chmod(0o777)

    with pytest.raises(ConfigError) as failure:
        asyncio.run(installer.ensure(thing))

    assert (
        f"the cache of programs {cache} can be written to by other users (mode 777)"
        in str(failure.value)
    )
    assert (
        f"run `chmod go-w {cache}`, or set XDG_CACHE_HOME to another directory"
        in str(failure.value)
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_programs_of_another_user_are_not_used(
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
    cache: Path,
) -> None:
    thing = package(script("install", GOOD))
    asyncio.run(installer.ensure(thing))
    os.chown(cache, 12345, 12345)

    with pytest.raises(
        ConfigError,
        match=r"\(ID 12345\): set XDG_CACHE_HOME to a directory of your own",
    ):
        asyncio.run(installer.ensure(thing))


def test_a_new_cache_is_private_whatever_the_umask(
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
    cache: Path,
) -> None:
    before = os.umask(0)
    try:
        asyncio.run(installer.ensure(package(script("install", GOOD))))
    finally:
        os.umask(before)

    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_missing_installer_is_named(
    installer: Installer, package: Callable[[Path], Package], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        asyncio.run(installer.ensure(package(tmp_path / "nowhere")))


def test_an_installation_that_takes_too_long_times_out(
    guard: Guard, package: Callable[[Path], Package], script: Script, cache: Path
) -> None:
    installer = Installer(
        guard,
        {"PATH": "/usr/bin:/bin"},
        print,
        limit_seconds=0.1,
        progress_seconds=0.05,
    )
    with pytest.raises(ConfigError, match=r"installing Thing 1\.0 timed out after 0 s"):
        asyncio.run(
            installer.ensure(package(script("install", "#!/bin/sh\nsleep 99\n")))
        )
    assert [path.name for path in cache.iterdir()] == ["thing-1.0.lock"]


def test_waiting_for_another_process_is_reported_and_times_out(
    guard: Guard,
    package: Callable[[Path], Package],
    script: Script,
    cache: Path,
    reported: list[str],
) -> None:
    clock = FakeClock()

    def report(line: str) -> None:
        reported.append(line)
        clock.sleep(3601)

    installer = Installer(
        guard,
        {"PATH": ""},
        report,
        limit_seconds=3600,
        progress_seconds=0.05,
        clock=clock,
    )
    cache.mkdir()
    waiting = "waiting for another installation of Thing 1.0"
    with (
        FileLock(cache / "thing-1.0.lock"),
        pytest.raises(ConfigError, match=f"{waiting} timed out after 3601 s"),
    ):
        asyncio.run(installer.ensure(package(script("install", GOOD))))
    assert reported == [f"{waiting}: 0 s so far"]


def only(cache: Path) -> Path:
    """The directory in which something is being installed."""
    [partial] = cache.glob("*.partial-*")
    return partial


def test_a_cancelled_installation_leaves_no_process_and_no_directory(
    installer: Installer,
    package: Callable[[Path], Package],
    script: Script,
    cache: Path,
) -> None:
    thing = package(script("install", "#!/bin/sh\nsleep 99 & echo > started; wait\n"))

    async def scenario() -> None:
        installing = asyncio.create_task(installer.ensure(thing))
        await eventually(lambda: list(cache.glob("*/started")))
        partial = only(cache)
        installing.cancel()
        await asyncio.wait({installing})
        assert installing.cancelled()
        assert not find_processes([partial])

    asyncio.run(scenario())
    assert [path.name for path in cache.iterdir()] == ["thing-1.0.lock"]


SECOND = """
import asyncio, os, sys
from pathlib import Path
from pytest_device.service.programs.cache import Installer, Package
from pytest_device.service.programs.guard import Guard

guard = Guard(environ=os.environ, log=print)
package = Package("Thing 1.0", Path(sys.argv[1]), Path("proof"), [sys.argv[2], sys.argv[3]])
asyncio.run(Installer(guard, os.environ, print).ensure(package))
guard.close()
"""


def test_one_of_two_concurrent_processes_installs_and_both_find_it(
    script: Script, cache: Path, tmp_path: Path
) -> None:
    install = script(
        "install", '#!/bin/sh\necho run >> "$1"\nsleep 0.5\necho > proof\n'
    )
    command: list[str | Path] = [
        sys.executable,
        "-c",
        SECOND,
        cache / "thing-1.0",
        install,
        tmp_path / "runs",
    ]
    with (
        subprocess.Popen(command, env=os.environ) as first,
        subprocess.Popen(command, env=os.environ) as second,
    ):
        assert [first.wait(), second.wait()] == [0, 0]
    assert (tmp_path / "runs").read_text() == "run\n"
    assert (cache / "thing-1.0/proof").is_file()


def test_a_killed_installation_leaves_nothing_usable(
    script: Script, cache: Path
) -> None:
    install = script("install", "#!/bin/sh\necho > proof\nsleep 99\n")
    command: list[str | Path] = [
        sys.executable,
        "-c",
        SECOND,
        cache / "thing-1.0",
        install,
        "unused",
    ]
    with subprocess.Popen(command) as process:

        async def scenario() -> None:
            await eventually(lambda: list(cache.glob("*/proof")))
            partial = only(cache)
            process.kill()
            await eventually(
                lambda: not partial.exists() and not find_processes([partial])
            )

        asyncio.run(scenario())
    assert [path.name for path in cache.iterdir()] == ["thing-1.0.lock"]
