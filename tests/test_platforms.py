"""The operating system: its places, and waiting for a child process."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import selenium

from pytest_device.platforms import SYSTEM
from pytest_device.platforms.places import places_on
from pytest_device.platforms.shells import shell_on_windows


@pytest.fixture(params=["with-descriptors", "without"])
def sleeper(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> "subprocess.Popen[bytes]":
    """Provide a process that exits at the end of its input."""
    if request.param == "without":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    return subprocess.Popen(
        [sys.executable, "-S", "-c", "import sys; sys.stdin.read(); sys.exit(3)"],
        stdin=subprocess.PIPE,
    )


def test_the_exit_of_a_process_is_waited_for(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        SYSTEM.wait_for_exit(sleeper, 0)

    assert sleeper.stdin
    sleeper.stdin.close()
    SYSTEM.wait_for_exit(sleeper, 60)
    assert sleeper.returncode == 3
    SYSTEM.wait_for_exit(sleeper, 0)  # once more


HOME = Path("/home/me")


@pytest.mark.parametrize(
    ("platform", "environ", "state"),
    [
        ("linux", {}, "/home/me/.local/state/pytest-device"),
        ("linux", {"XDG_STATE_HOME": "/big"}, "/big/pytest-device"),
        ("linux", {"XDG_STATE_HOME": "big"}, "/home/me/.local/state/pytest-device"),
        ("darwin", {}, "/home/me/.local/state/pytest-device"),
        ("win32", {}, "/home/me/AppData/Local/pytest-device"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/pytest-device"),
        ("plan9", {}, "/home/me/.local/state/pytest-device"),
    ],
)
def test_the_state_is_in_the_systems_directory(
    platform: str, environ: dict[str, str], state: str
) -> None:
    assert places_on(platform).state(environ, HOME) == Path(state)


@pytest.mark.parametrize(
    ("platform", "first", "last"),
    [
        (
            "darwin",
            "/Applications/Chromium.app/Contents/MacOS/Chromium",
            "/home/me/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
        ),
        (
            "win32",
            "/programs/Chromium/Application/chrome.exe",
            "/home/me/AppData/Local/Microsoft/Edge/Application/msedge.exe",
        ),
    ],
)
def test_browsers_are_found_where_the_system_installs_them(
    platform: str, first: str, last: str
) -> None:
    environ = {"PROGRAMFILES": "/programs"}

    browsers = [*places_on(platform).browsers(environ, HOME)]

    assert (browsers[0], browsers[-1]) == (Path(first), Path(last))
    assert len(browsers) == 6


@pytest.mark.parametrize(
    ("platform", "node"), [("linux", "bin/node"), ("win32", "node.exe")]
)
def test_the_wheel_with_node_has_it_where_the_system_expects_programs(
    platform: str, node: str
) -> None:
    assert places_on(platform).node_in_wheel == Path(node)


@pytest.mark.parametrize(
    ("platform", "environ", "cache"),
    [
        ("linux", {}, "/home/me/.cache/pytest-device"),
        ("darwin", {}, "/home/me/Library/Caches/pytest-device"),
        ("darwin", {"XDG_CACHE_HOME": "/big"}, "/big/pytest-device"),
        ("win32", {}, "/home/me/AppData/Local/pytest-device"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/pytest-device"),
    ],
)
def test_the_cache_is_in_the_systems_directory(
    platform: str, environ: dict[str, str], cache: str
) -> None:
    assert places_on(platform).cache(environ, HOME) == Path(cache)


@pytest.mark.parametrize(
    ("entries", "version"),
    [
        (["153.0.8010.52"], "chrome 153.0.8010.52"),
        (["99.0.4844.84", "153.0.8010.52", "153.0.8010.9"], "chrome 153.0.8010.52"),
        (["SetupMetrics", "153.0"], ""),
        ([], ""),
    ],
    ids=["one", "during an update", "none", "empty"],
)
def test_on_windows_the_version_of_a_browser_is_that_of_the_directory_beside_it(
    entries: list[str], version: str, tmp_path: Path
) -> None:
    for entry in entries:
        (tmp_path / entry).mkdir()

    program = tmp_path / "chrome.exe"
    assert places_on("win32").browser_version(program) == version


def test_on_windows_a_browser_that_is_gone_has_no_version(tmp_path: Path) -> None:
    program = tmp_path / "gone/chrome.exe"
    assert places_on("win32").browser_version(program) == ""


@pytest.mark.parametrize("platform", ["linux", "darwin", "plan9"])
def test_elsewhere_the_program_prints_its_version(
    platform: str, tmp_path: Path
) -> None:
    (tmp_path / "153.0.8010.52").mkdir()
    assert places_on(platform).browser_version(tmp_path / "chrome") is None


@pytest.mark.parametrize(
    ("platform", "processor", "places"),
    [
        (
            "linux",
            "x86_64",
            ["linux-x86_64/selenium-manager", "linux/selenium-manager"],
        ),
        ("linux", "aarch64", ["linux-arm64/selenium-manager"]),
        ("linux", "riscv64", []),
        ("darwin", "arm64", ["macos/selenium-manager"]),
        ("win32", "ARM64", ["windows/selenium-manager.exe"]),
    ],
)
def test_selenium_manager_is_where_selenium_brings_it_for_the_system(
    platform: str, processor: str, places: list[str]
) -> None:
    found = places_on(platform).selenium_managers(processor)
    assert found == tuple(map(Path, places))


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_installed_selenium_brings_it_there(platform: str) -> None:
    package = Path(selenium.__file__).parent / "webdriver/common"

    places = places_on(platform).selenium_managers("x86_64")

    assert any((package / place).is_file() for place in places)


@pytest.mark.parametrize(
    ("platform", "names"),
    [
        ("linux", ("chromium", "microsoft-edge-stable", "chromedriver")),
        ("darwin", ("chromium", "microsoft-edge-stable", "chromedriver")),
        ("win32", ("chromium.exe", "msedge.exe", "chromedriver.exe")),
    ],
)
def test_programs_have_the_systems_names(
    platform: str, names: tuple[str, str, str]
) -> None:
    places = places_on(platform)
    browsers = places.browser_names
    assert (browsers[0], browsers[-1], places.chromedriver) == names


AS_IF_ELSEWHERE = """
import sys

here, sys.platform = sys.platform, "plan9"
import pytest_device.platforms  # chosen now, and once
sys.platform = here

from pytest_device.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            "doctor",
            r"warn  system               plan9 \(\S+\): client only; the local service was never tried on plan9",
        ),
        (
            "serve --port {used_port}",
            "pytest-device: the local service was never tried on plan9: set DEVICE_URL",
        ),
    ],
)
def test_an_unknown_system_is_named_in_one_line(
    command: str, line: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        arguments = command.format(used_port=used.getsockname()[1]).split()
        done = subprocess.run(
            [sys.executable, "-c", AS_IF_ELSEWHERE, *arguments],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    assert re.search(f"^{line}$", done.stdout + done.stderr, re.MULTILINE), done


@pytest.mark.parametrize(
    ("environ", "arguments", "lines"),
    [
        (
            {"PROMPT": "$P$G"},
            [r"C:\a\trace.zip", r'"C:\a b\trace.zip"', '"a&b"', '"it\'s"'],
            [
                'cd /d "a suite" && pytest',
                'set "A=1" & set "B=it\'s"',
                'set /p TOKEN=<"a b/token"',
            ],
        ),
        (
            {},
            [r"C:\a\trace.zip", r"'C:\a b\trace.zip'", "'a&b'", "'it''s'"],
            [
                "cd 'a suite'; pytest",
                "$env:A = '1'; $env:B = 'it''s'",
                "$env:TOKEN = Get-Content 'a b/token'",
            ],
        ),
        (
            {"MSYSTEM": "MINGW64", "PROMPT": "$P$G"},
            [r"'C:\a\trace.zip'", r"'C:\a b\trace.zip'", "'a&b'", "'it'\"'\"'s'"],
            [
                "cd 'a suite' && pytest",
                "export A=1 B='it'\"'\"'s'",
                "export TOKEN=\"$(cat 'a b/token')\"",
            ],
        ),
    ],
    ids=["cmd.exe", "PowerShell", "Git's"],
)
def test_each_shell_of_windows_gets_commands_in_its_own_form(
    environ: dict[str, str], arguments: list[str], lines: list[str]
) -> None:
    shell = shell_on_windows(environ)

    texts = [r"C:\a\trace.zip", r"C:\a b\trace.zip", "a&b", "it's"]
    assert [shell.argument(text) for text in texts] == arguments
    assert [
        shell.line(Path("a suite"), "pytest"),
        shell.variables({"A": "1", "B": "it's"}),
        shell.variable_from_file("TOKEN", Path("a b/token")),
    ] == lines
