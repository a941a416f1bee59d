"""The settings of updates."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_device import ConfigError
from pytest_device.app import load_project
from pytest_device.updates import Build, DisabledReason, LaunchModel, UpdateSettings
from tests.app.rows import project_files, put
from tests.updates.rows import URL, cases

NATIVE = {"ALWAYS": "ON_LOAD", "ERROR_RECOVERY_ONLY": "ON_ERROR_RECOVERY"}


DEVIATIONS = {"settings_timeout_over"}
"""The document says otherwise: the time limit ends at 300,000 ms."""


@pytest.mark.parametrize("row", cases("update_settings"))
def test_settings_match_the_reference_case(row: Any) -> None:
    if "error" in row or row["name"] in DEVIATIONS:
        with pytest.raises(ConfigError):
            UpdateSettings.from_config(row["input"]["config"])
        return

    settings = UpdateSettings.from_config(row["input"]["config"])
    expected = row["output"]

    assert settings.enabled is expected["enabled"]
    assert settings.url == expected["url"]
    assert settings.fallback_to_cache_timeout == expected["timeout"]
    assert settings.check_automatically == NATIVE.get(
        expected["check_native"], expected["check_native"]
    )
    assert settings.use_embedded_update is expected["use_embedded"]
    assert settings.enable_bsdiff_patch_support is expected["bsdiff"]
    assert settings.disable_anti_bricking_measures is bool(
        expected["anti_bricking_disabled"]
    )
    assert settings.exclude_from_backup is bool(expected.get("exclude_from_backup"))
    assert settings.max_updates_to_keep == (expected.get("max_updates") or 2)
    assert settings.request_headers == _parsed(expected["headers"])
    metadata = _parsed(expected.get("metadata")) or {}
    signing = settings.code_signing_metadata
    assert (signing.alg, signing.keyid) == (metadata.get("alg"), metadata.get("keyid"))


def _parsed(text: str | None) -> Any:
    """Return an object that the reference writes as JSON."""
    return json.loads(text) if isinstance(text, str) else text


def test_the_default_of_bundle_diffs_depends_on_the_sdk() -> None:
    config = {"sdkVersion": "54.0.0", "updates": {"url": URL}}

    assert UpdateSettings.from_config(config).enable_bsdiff_patch_support is False
    assert (
        UpdateSettings.from_config(config, sdk=57).enable_bsdiff_patch_support is True
    )


@pytest.mark.parametrize(
    ("updates", "reason"),
    [
        ({"url": URL}, None),
        ({"url": "http://127.0.0.1:8080/manifest"}, None),
        ({"url": URL, "enabled": False}, DisabledReason.CONFIGURATION),
        ({"enabled": False}, DisabledReason.CONFIGURATION),
        ({"enabled": True}, DisabledReason.URL_MISSING),
        ({"enabled": True, "url": "nowhere"}, DisabledReason.URL_INVALID),
        ({}, DisabledReason.URL_MISSING),
        *(
            ({"url": url}, DisabledReason.URL_INVALID)
            for url in (
                "u.example",
                "ftp://u.example",
                "https://",
                "https:///x",
                "https://a b",
                "https://u:99999",
            )
        ),
    ],
)
def test_disabled_updates_have_a_reason(
    updates: dict[str, object], reason: DisabledReason | None
) -> None:
    settings = UpdateSettings.from_config({"updates": updates})

    assert settings.disabled_reason is reason
    assert settings.enabled is (updates.get("enabled") is True or reason is None)
    assert LaunchModel(Build(settings=settings)).is_enabled is (reason is None)


@pytest.mark.parametrize(
    ("updates", "problem"),
    [
        ({"fallbackToCacheTimeout": 300_001}, "must be 0 to 300000"),
        ({"fallbackToCacheTimeout": -1}, "must be 0 to 300000"),
        ({"checkAutomatically": "ALWAYS"}, "must be 'ON_LOAD'"),
        ({"enabled": "yes"}, "must be of type boolean"),
        ({"url": 1}, "must be of type string"),
        ({"requestHeaders": {"x-a": 1}}, "must have string values: 'x-a'"),
        ({"codeSigningMetadata": {"alg": "none"}}, "must be 'rsa-v1_5-sha256'"),
        *(
            ({"maxUpdatesToKeep": number}, "must be 2 to 2147483647")
            for number in (-1, 0, 1, 2**31)
        ),
        ("no object", "must be of type object"),
    ],
)
def test_an_invalid_property_is_named(updates: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        UpdateSettings.from_config({"updates": updates})


def test_a_config_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(ConfigError, match="config must be a mapping"):
        UpdateSettings.from_config(None)  # type: ignore[arg-type]


def test_a_project_without_runtime_and_sdk_version_has_no_updates(
    tmp_path: Path,
) -> None:
    put(
        tmp_path,
        {"package.json": {}, "app.json": {"vendor": {"updates": {"url": URL}}}},
    )

    settings = UpdateSettings.from_project(load_project(tmp_path), "android")

    assert settings.disabled_reason is DisabledReason.NO_RUNTIME_VERSION
    assert settings.enabled is False
    assert settings.url == URL


def test_a_projects_settings_have_the_defaults_of_its_sdk(tmp_path: Path) -> None:
    project = load_project(
        put(tmp_path, project_files({"sdkVersion": "54.0.0", "updates": {"url": URL}}))
    )

    assert UpdateSettings.from_project(project, "ios").enabled is True
    assert (
        UpdateSettings.from_project(project, "ios").enable_bsdiff_patch_support is False
    )
    with pytest.raises(ConfigError, match="must be ios or android"):
        UpdateSettings.from_project(project, "web")


def test_headers_are_never_printed() -> None:
    settings = UpdateSettings.from_config(
        {"updates": {"url": URL, "requestHeaders": {"authorization": "s3cret"}}}
    )

    assert "s3cret" not in repr(settings)
