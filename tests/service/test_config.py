"""The service's configuration, and errors about it."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_device.errors import ConfigError
from pytest_device.platforms.places import places_on
from pytest_device.service.accounts import Role
from pytest_device.service.config import ServiceConfig, parse
from pytest_device.spec import SessionType
from tests.fakes.local_service import APP_ID, TOKEN

CACHE = Path("/cache")
NEEDED = {"token": TOKEN, "app_id": APP_ID, "state_dir": "/state"}

REFUSED = [
    # settings, what is said
    ({"token": " "}, "token must not be blank"),
    ({"token": 17}, "token must be of the type str"),
    ({"app_id": "my-app"}, "app_id must be a UUID, not 'my-app'"),
    ({"state_dir": None}, "state_dir must be of the type str"),
    ({"port": -1}, "port must be from 0 to 65535, not -1"),
    ({"port": 65536}, "port must be from 0 to 65535, not 65536"),
    ({"port": "80"}, "port must be of the type int"),
    ({"port": True}, "port must be of the type int"),
    ({"runner": "appium"}, "runner must be real or simulated, not 'appium'"),
    (
        {"types": ["appium", "serve-sim"]},
        "types must be some of agent-device, appium, argent, web-preview-only, not 'serve-sim'",
    ),
    ({"types": [["appium"]]}, "types must be some of agent-device, appium, argent"),
    (
        {"requests": [{"platform": []}]},
        "requests must be create requests, each with a platform, not {'platform': []}",
    ),
    ({"builds_dir": 1}, "builds_dir must be of the type str or NoneType"),
    ({"testing": "yes"}, "testing must be of the type bool"),
    ({"role": "owner"}, "role must be one of viewer, developer, admin, not 'owner'"),
    (
        {"max_duration_minutes": 116},
        "max_duration_minutes must be from 0 to 115, not 116",
    ),
    ({"boot_seconds": None}, "boot_seconds must be of the type int or float"),
    (
        {"requests": [{"type": "appium"}]},
        "requests must be create requests, each with a platform, not {'type': 'appium'}",
    ),
    (
        {"tokens": []},
        "unknown setting 'tokens' in the configuration: the settings are token, app_id, ",
    ),
]


def read(**settings: Any) -> ServiceConfig:
    return parse(json.dumps(NEEDED | settings), cache_dir=CACHE)


def test_omitted_settings_have_defaults() -> None:
    assert read() == ServiceConfig(TOKEN, APP_ID, Path("/state"), CACHE)


def test_every_setting_is_read() -> None:
    settings = {
        "cache_dir": "/other",
        "log_path": "/log",
        "host": "::1",
        "port": 8765,
        "runner": "simulated",
        "testing": True,
        "role": "developer",
        "simulator_access": False,
        "max_duration_minutes": 40,
        "boot_seconds": 0.5,
        "types": ["argent", "agent-device"],
        "builds_dir": "/builds",
    }

    assert read(**settings) == ServiceConfig(
        TOKEN,
        APP_ID,
        Path("/state"),
        Path("/other"),
        Path("/log"),
        "::1",
        8765,
        "simulated",
        testing=True,
        role=Role.DEVELOPER,
        simulator_access=False,
        max_duration_minutes=40,
        boot_seconds=0.5,
        types=(SessionType.ARGENT, SessionType.AGENT_DEVICE),
        builds_dir=Path("/builds"),
    )


@pytest.mark.parametrize(("settings", "said"), REFUSED)
def test_an_invalid_setting_is_refused_by_name(
    settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read(**settings)

    assert said in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_the_token_is_not_shown() -> None:
    assert TOKEN not in repr(read())


def test_the_account_is_as_configured() -> None:
    accounts = read(
        role="viewer", simulator_access=False, max_duration_minutes=40
    ).accounts()
    caller, owner = accounts.caller(TOKEN), accounts.owner(APP_ID)

    assert caller
    assert owner is caller.account
    assert (caller.role, owner.simulator_access, owner.max_duration_minutes) == (
        Role.VIEWER,
        False,
        40,
    )


@pytest.mark.parametrize(
    ("environ", "platform", "directory"),
    [
        ({}, "linux", "/home/me/.cache/pytest-device"),
        ({"XDG_CACHE_HOME": "/big"}, "linux", "/big/pytest-device"),
        ({"XDG_CACHE_HOME": ""}, "linux", "/home/me/.cache/pytest-device"),
        ({}, "darwin", "/home/me/Library/Caches/pytest-device"),
        ({"XDG_CACHE_HOME": "/big"}, "darwin", "/big/pytest-device"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/pytest-device"),
        ({}, "win32", "/home/me/AppData/Local/pytest-device"),
    ],
)
def test_the_cache_is_in_the_systems_cache_directory(
    environ: dict[str, str], platform: str, directory: str
) -> None:
    places = places_on(platform)

    assert places.cache(environ, Path("/home/me")) == Path(directory)
