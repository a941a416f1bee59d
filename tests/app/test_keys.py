"""The keys of the app config: each row of the document's table, with good and bad values."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.app import check, load_project
from pytest_device.app.keys import KEYS, setting
from pytest_device.app.sections import IosIcon, RuntimePolicy
from pytest_device.errors import ProjectError
from tests.app.rows import DATA, project_files, put

pytestmark = pytest.mark.every_python

ROWS: Final = json.loads((DATA / "keys.json").read_text())
VALUES: Final = {
    "config-type",
    "config-value",
    "config-generated-key",
    "runtime-version",
}
"""The findings on a value."""


def _nested(name: str, value: object) -> Any:
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


def _found(root: Path, name: str, value: object, sdk: int | None = None) -> set[str]:
    project = load_project(put(root, project_files(_nested(name, value))))
    return {one.id for one in check(project, sdk=sdk) if one.status == "failed"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["key"]))
def test_a_key_accepts_its_values_and_no_others(row: Any, tmp_path: Path) -> None:
    for value in row["good"]:
        assert not _found(tmp_path, row["key"], value) & VALUES, value
    for value in row["bad"]:
        assert _found(tmp_path, row["key"], value) & VALUES, value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["key"]))
def test_a_key_has_its_default_and_its_references(row: Any, tmp_path: Path) -> None:
    key = KEYS[row["key"]]
    assert setting({}, key.name) == row.get("default")
    assert key.first == row.get("first", 54)
    assert key.older == row.get("older", False)
    if row.get("first"):
        assert "config-removed-key" in _found(
            tmp_path, key.name, row["good"][0], sdk=57
        )
        assert "config-removed-key" not in _found(
            tmp_path, key.name, row["good"][0], sdk=58
        )


def test_some_defaults_depend_on_other_values() -> None:
    assert (
        setting(
            {"androidStatusBar": {"barStyle": "light-content"}},
            "androidStatusBar.backgroundColor",
        )
        == "#00000088"
    )
    assert [
        setting({}, "updates.enableBsdiffPatchSupport", sdk)
        for sdk in (54, 55, 56, 57, 58)
    ] == [False, None, None, True, True]


BACKEND: Final = {
    "apiKey": "k",
    "authDomain": "d",
    "databaseURL": "u",
    "projectId": "p",
    "storageBucket": "s",
    "messagingSenderId": "m",
    "appId": "i",
    "measurementId": "x",
}


@pytest.mark.parametrize("name", BACKEND)
def test_the_backend_settings_of_the_web_are_known_in_an_object_of_any_name(
    name: str, tmp_path: Path
) -> None:
    config = {"web": {"config": {"backend": BACKEND}}}
    typed = load_project(put(tmp_path, project_files(config))).app_config().web.config

    attribute = re.sub(r"URL|[A-Z]", lambda found: f"_{found[0].lower()}", name)
    assert getattr(typed, attribute) == BACKEND[name]
    assert "config-type" in _found(tmp_path, f"web.config.backend.{name}", 1)


def test_a_new_project_has_no_notes_on_older_keys(tmp_path: Path) -> None:
    config = {
        "newArchEnabled": True,
        "web": {"output": "static", "favicon": "f.png"},
        "experiments": {"typedRoutes": True, "reactCompiler": True},
    }

    findings = check(load_project(put(tmp_path, project_files(config))))

    assert [one.rule for one in findings if one.status == "failed"] == []


@pytest.mark.parametrize(
    ("sdk", "finding"), [(54, "config-deprecated-key"), (55, "config-removed-key")]
)
def test_notification_is_deprecated_and_then_removed(
    sdk: int, finding: str, tmp_path: Path
) -> None:
    assert finding in _found(tmp_path, "notification", {}, sdk)


def test_unknown_keys_are_kept_and_the_android_section_passes_through(
    tmp_path: Path,
) -> None:
    config = {
        "android": {"package": "com.a", "versionCode": 7, "anything": [1]},
        "newKey": {"a": 1},
    }
    project = load_project(put(tmp_path, project_files(config)))
    assert {key: project.to_dict()[key] for key in config} == config
    assert [one.id for one in check(project) if one.status == "failed"] == []


def test_a_configuration_is_read_as_typed_values(tmp_path: Path) -> None:
    config = {
        "orientation": "portrait", "scheme": ["one", "two"], "newKey": 1, "extra": {"a": [{"b": "hunter2"}]},
        "ios": {"bundleIdentifier": "com.a", "icon": {"dark": "d.png"}, "backgroundColor": "#000000"},
        "android": {"package": "com.b"}, "runtimeVersion": {"policy": "appVersion"},
        "androidStatusBar": {"barStyle": "light-content"}, "experiments": {"supportsTVOnly": True},
    }  # fmt: skip
    project = load_project(put(tmp_path, project_files(config)))
    typed = project.app_config()
    assert (typed.orientation, typed.scheme, typed.platforms) == (
        "portrait",
        ("one", "two"),
        ("ios", "android"),
    )
    assert (typed.updates.check_automatically, typed.updates.max_updates_to_keep) == (
        "ON_LOAD",
        2,
    )
    assert (typed.ios.bundle_identifier, typed.ios.icon, typed.ios.config.maps_api_key) == (
        "com.a", IosIcon(dark="d.png"), None,
    )  # fmt: skip
    assert typed.runtime_version == RuntimePolicy("appVersion")
    assert typed.android_status_bar.background_color == "#00000088"
    assert typed.experiments.supports_tv_only is True
    assert (typed.background_color, typed.ios.background_color) == (
        "#ffffff",
        "#000000",
    )
    assert typed.extra == {"a": ({"b": "hunter2"},)}
    assert "hunter2" not in repr(typed)
    assert {key: project.to_dict()[key] for key in config} == config


def test_typed_values_are_frozen(tmp_path: Path) -> None:
    typed = load_project(put(tmp_path, project_files({"extra": {"a": 1}}))).app_config()
    with pytest.raises(AttributeError):
        typed.ios.version = "1"  # type: ignore[misc]
    with pytest.raises(TypeError):
        typed.extra["a"] = 2  # type: ignore[index]


def test_all_invalid_values_are_named_and_none_is_quoted(tmp_path: Path) -> None:
    config = {
        "orientation": "hunter2",
        "ios": {"supportsTablet": "hunter2"},
        "platforms": [1],
    }
    with pytest.raises(ProjectError) as caught:
        load_project(put(tmp_path, project_files(config))).app_config()
    assert str(caught.value).splitlines() == [
        "platforms must have elements of type string",
        "orientation must be 'default', 'portrait' or 'landscape'",
        "ios.supportsTablet must be of type boolean",
    ]
