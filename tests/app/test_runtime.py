"""Runtime versions."""

from pathlib import Path
from typing import Any

import pytest

from pytest_device import ConfigError
from pytest_device.app import (
    is_valid_runtime_version,
    is_valid_scheme,
    load_project,
    resolve_runtime_version,
)
from tests.app.rows import project_files, put, rows

pytestmark = pytest.mark.every_python


@pytest.mark.parametrize("row", rows("updates", "resolve_runtime_version"))
def test_a_runtime_version_matches_the_reference_case(row: Any, tmp_path: Path) -> None:
    project = load_project(put(tmp_path, row["input"]["files"]))
    resolve = (project, row["input"]["platform"])
    if "error" in row:
        with pytest.raises(ConfigError):
            resolve_runtime_version(*resolve, workflow=row["input"]["workflow"])
    else:
        version = resolve_runtime_version(*resolve, workflow=row["input"]["workflow"])
        assert version == row["output"]["runtimeVersion"]


@pytest.mark.parametrize(
    "row", rows("updates", "valid_runtime_version", "valid_scheme")
)
def test_a_string_is_valid_as_in_the_reference_case(row: Any) -> None:
    is_valid = {
        "valid_runtime_version": is_valid_runtime_version,
        "valid_scheme": is_valid_scheme,
    }[row["op"]]
    assert list(map(is_valid, row["input"]["values"])) == row["output"]["valid"]


def test_a_runtime_version_has_at_most_255_characters() -> None:
    assert is_valid_runtime_version("a" * 255)
    assert not is_valid_runtime_version("a" * 256)


def test_another_vendor_has_another_prefix(tmp_path: Path) -> None:
    assert is_valid_runtime_version("acmesdk:1.2.3", vendor="acme")
    assert not is_valid_runtime_version("acmesdk:1.2.3")
    config = {"sdkVersion": "57.0.0", "runtimeVersion": {"policy": "sdkVersion"}}
    files = {"package.json": {}, "app.json": {"acme": config}}
    assert (
        resolve_runtime_version(
            load_project(put(tmp_path, files), vendor="acme"), "ios"
        )
        == "acmesdk:57.0.0"
    )


def test_the_projects_own_native_directories_rule_out_policies(tmp_path: Path) -> None:
    config = {"runtimeVersion": {"policy": "appVersion"}, "version": "2.0.0"}
    put(tmp_path, project_files(config, **{"ios/Podfile": ""}))
    project = load_project(tmp_path)
    assert resolve_runtime_version(project, "android") == "2.0.0"
    with pytest.raises(
        ConfigError, match="has its own for ios: set runtimeVersion to a string"
    ):
        resolve_runtime_version(project, "ios")
    put(tmp_path, {".gitignore": "/ios\n"})
    assert resolve_runtime_version(project, "ios") == "2.0.0"


def _fingerprint(root: Path, script: str) -> str | None:
    put(root, project_files({"runtimeVersion": {"policy": "fingerprint"}}))
    command = (
        put(root, {"node_modules/.bin/vendor-updates": f"#!/bin/sh\n{script}\n"})
        / "node_modules/.bin/vendor-updates"
    )
    command.chmod(0o755)
    return resolve_runtime_version(load_project(root), "ios")


def test_a_fingerprint_comes_from_the_projects_own_command(tmp_path: Path) -> None:
    assert (
        _fingerprint(tmp_path, """echo "{\\"hash\\": \\"$1-$3\\"}" """)
        == "fingerprint:generate-ios"
    )


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "exited with status 3"),
        ("echo nothing", "did not print JSON"),
        ("echo '{}'", "printed no hash"),
    ],
)
def test_a_fingerprint_that_fails_is_a_clear_error(
    script: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=problem):
        _fingerprint(tmp_path, script)


def test_a_fingerprint_without_the_command_names_the_package(tmp_path: Path) -> None:
    project = load_project(
        put(tmp_path, project_files({"runtimeVersion": {"policy": "fingerprint"}}))
    )
    with pytest.raises(
        ConfigError, match="needs the package vendor-updates: install it"
    ):
        resolve_runtime_version(project, "ios")


def test_the_sdk_version_must_be_known(tmp_path: Path) -> None:
    files = {
        "package.json": {},
        "app.json": {"vendor": {"runtimeVersion": {"policy": "sdkVersion"}}},
    }
    with pytest.raises(ConfigError, match="needs sdkVersion, or the installed package"):
        resolve_runtime_version(load_project(put(tmp_path, files)), "ios")
    with pytest.raises(ConfigError, match="must be ios or android"):
        resolve_runtime_version(load_project(tmp_path), "web")


def test_a_runtime_version_without_a_policy_and_an_unknown_workflow_are_refused(
    tmp_path: Path,
) -> None:
    project = load_project(put(tmp_path, project_files({"runtimeVersion": {}})))
    with pytest.raises(ConfigError, match="is not a runtime version policy"):
        resolve_runtime_version(project, "ios")
    project, unknown = (
        load_project(
            put(tmp_path, project_files({"runtimeVersion": {"policy": "appVersion"}}))
        ),
        "bare",
    )
    with pytest.raises(ConfigError, match="'bare' must be managed or generic"):
        resolve_runtime_version(project, "ios", workflow=unknown)  # type: ignore[arg-type]  # a wrong one
