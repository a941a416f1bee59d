"""Which Node.js a program can use.

Versions are compared by a pure function, and a Node.js is a script here: real ones have one version only.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_device import nodejs
from pytest_device.errors import ConfigError
from pytest_device.service.programs import toolchain

Script = Callable[[str, str], Path]


APPIUM, AGENT_DEVICE, ARGENT = (
    toolchain.APPIUM.node,
    toolchain.AGENT_DEVICE.node,
    toolchain.ARGENT.node,
)


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("18.20.8", False),
        ("20.18.3", False),
        ("20.19.0", True),
        ("20.20.2", True),
        ("21.7.3", False),
        ("22.11.0", False),
        ("22.12.0", True),
        ("23.11.1", False),
        ("24.0.0", True),
        ("26.1.0", True),
        ("25.0.0-nightly20251001", True),
    ],
)
def test_appium_runs_on_its_supported_versions(version: str, fits: bool) -> None:  # noqa: FBT001  a table's column
    assert APPIUM.fits(version) is fits


@pytest.mark.parametrize(
    ("required", "oldest", "too_old"),
    [
        (AGENT_DEVICE, "24.0.0", "22.12.0"),
        (ARGENT, "20.12.0", "20.11.1"),
        (ARGENT, "21.0.0", "18.20.8"),
    ],
)
def test_each_program_has_its_own_oldest_version(
    required: toolchain.Requirement, oldest: str, too_old: str
) -> None:
    assert (required.fits(oldest), required.fits(too_old)) == (True, False)


def fake_node(script: Script, version: str, real: Path) -> Path:
    return script("node", f'#!/bin/sh\necho \'["{version}", "{real}"]\'\n')


def test_the_real_program_is_used_instead_of_its_wrapper(
    script: Script, tmp_path: Path
) -> None:
    real = tmp_path / "real/bin/node"
    npm = tmp_path / "real/lib/node_modules/npm/bin/npm-cli.js"
    npm.parent.mkdir(parents=True)
    npm.touch()
    found = asyncio.run(
        toolchain.inspect(
            fake_node(script, "24.1.0", real), {"PATH": "/usr/bin:/bin"}, APPIUM
        )
    )
    assert (found.executable, found.npm[:2]) == (real, (real, npm))


def test_an_npm_that_is_not_next_to_node_is_found_on_path(
    script: Script, tmp_path: Path
) -> None:
    wrapper, npm = (
        fake_node(script, "24.1.0", tmp_path / "real/bin/node"),
        script("npm", ""),
    )
    found = asyncio.run(
        toolchain.inspect(wrapper, {"PATH": f"{npm.parent}:/usr/bin:/bin"}, APPIUM)
    )
    assert found.npm[0] == str(npm)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '#!/bin/sh\necho \'["18.19.0", "/usr/bin/node"]\'\n',
            "node is Node.js 18.19.0, Appium needs",
        ),
        (
            "#!/bin/sh\necho 'libatomic.so.1: not found' >&2; exit 127\n",
            "status 127: libatomic.so.1: not found",
        ),
        ("#!/bin/sh\necho hello\n", r"node is not Node.js: it printed 'hello"),
        ("#!/no/such/interpreter\n", "cannot be run: No such file"),
        (
            '#!/bin/sh\necho \'["24.1.0", "/nowhere/bin/node"]\'\n',
            "no npm next to it, and none is on PATH",
        ),
    ],
)
def test_the_reason_for_an_unsuitable_node_is_reported(
    text: str, message: str, script: Script
) -> None:
    with pytest.raises(ConfigError, match=message):
        asyncio.run(
            toolchain.inspect(
                script("node", text), {"PATH": "/no/such/directory"}, APPIUM
            )
        )


def test_the_node_on_path_is_preferred(script: Script) -> None:
    executable = script("node", "")
    assert next(nodejs.candidates({"PATH": str(executable.parent)})) == executable
