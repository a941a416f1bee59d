"""Settings: precedence of the sources, and invalid values reported with source and rule."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_device import parsers
from pytest_device.errors import ConfigError
from pytest_device.options import OPTIONS, Option, Options
from pytest_device.settings import LOCAL_APP_ID, Settings, checked_token, resolve
from pytest_device.spec import Platform, SessionType, Share

pytestmark = pytest.mark.every_python

_TEXTS = (
    Options.artifacts_dir,
    Options.report,
    Options.identifier,
    Options.avd,
    Options.simulator,
    Options.appium_allow_insecure,
    Options.minute_price,
    Options.report,
)
"""Options that accept any text."""
APP_ID = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"


def resolved(
    options: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    ini: Mapping[str, str] | None = None,
) -> Settings:
    return resolve(options or {}, environ or {}, ini or {})


def test_the_command_line_overrides_the_environment_which_overrides_the_ini_file() -> (
    None
):
    sources = (
        {"device_url": "https://a"},
        {"DEVICE_URL": "https://b"},
        {"device_url": "https://c"},
    )

    assert resolved(*sources).url == "https://a"
    assert resolved({}, *sources[1:]).url == "https://b"
    assert resolved({}, {}, sources[2]).url == "https://c"


def test_each_value_remembers_its_source() -> None:
    settings = resolved(
        {"device_url": "https://a"},
        {"DEVICE_APP_ID": APP_ID},
        {"device_vendor": "acme"},
    )

    assert settings.source("url") == "--device-url"
    assert settings.source("app_id") == "DEVICE_APP_ID"
    assert settings.source("vendor") == "device_vendor in the ini file"
    assert settings.source("max_duration_minutes") == "default"


GOOD = {
    "url": ("https://devices.example/", "https://devices.example"),
    "app_id": (APP_ID.upper(), APP_ID),
    "platform": ("ios, android", (Platform.IOS, Platform.ANDROID)),
    "type": ("appium", SessionType.APPIUM),
    "build_id": (APP_ID, APP_ID),
    "application_archive_url": (
        "https://archives.example/a.zip",
        "https://archives.example/a.zip",
    ),
    "identifier": ("Pixel 9", "Pixel 9"),
    "share": ("class", Share.CLASS),
    "attach": (APP_ID.upper(), APP_ID.upper()),
    "avd": ("Phone_34", "Phone_34"),
    "simulator": ("iPhone 16", "iPhone 16"),
    "appium_allow_insecure": ("a:b, *:c", ("a:b", "*:c")),
    "shard": ("02/4", "2/4"),
    "slots_url": ("rediss://redis.example/1", "rediss://redis.example/1"),
    "trace": ("on", "on"),
    "video": ("on", "on"),
    "artifacts_dir": ("artifacts", "artifacts"),
    "report": ("reports", "reports"),
    "ci": ("github", "github"),
    "durations": ("junit.xml", str(Path.cwd() / "junit.xml")),
    "builds_dir": ("builds", str(Path.cwd() / "builds")),
    "app_root": ("app", str(Path.cwd() / "app")),
    "app_dynamic": ("never", "never"),
    "state_dir": ("/var/state", "/var/state"),
    "exit_status": ("pytest", "pytest"),
    "minute_price": ("0.05", "0.05"),
    "public_url": ("https://{port}.x.example", "https://{port}.x.example"),
    "vendor": ("acme", "acme"),
    "vendor_names": (
        "key=maker,\npush_path = push/token",
        ("key=maker", "push_path=push/token"),
    ),
}
"""Texts with their values, for the options that are neither a switch nor a number."""


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.word)
def test_a_string_is_parsed_to_the_options_type(option: Option[Any]) -> None:
    text, value = GOOD.get(
        option.word, ("true", True) if isinstance(option.default, bool) else ("5", 5)
    )

    parsed = option.parse(text)

    assert parsed == value
    assert isinstance(
        parsed, object if option.default is None else type(option.default)
    )


def test_settings_without_arguments_are_the_defaults() -> None:
    settings = Settings()

    assert {option.word: getattr(settings, option.word) for option in OPTIONS} == {
        option.word: option.default for option in OPTIONS
    }
    assert not list(settings.chosen())


def test_settings_with_values_are_otherwise_the_defaults() -> None:
    settings = Settings(values={"max_sessions": 3})

    assert settings.max_sessions == 3
    assert settings.prefetch == Options.prefetch.default


def test_the_source_of_an_unknown_option_is_an_error() -> None:
    with pytest.raises(KeyError, match="max_session"):
        Settings().source("max_session")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("device_url", "ftp://x"),
        ("device_local", "maybe"),
        ("device_app_id", "42"),
        ("device_wait_timeout_seconds", "0"),
        ("device_wait_timeout_seconds", "nan"),
        ("device_poll_interval_seconds", "-1"),
        ("device_poll_interval_seconds", "inf"),
        ("device_max_duration_minutes", "0"),
        ("device_max_duration_minutes", "116"),
        ("device_max_duration_minutes", "1.5"),
        ("device_max_idle_time_minutes", "0"),
        ("device_max_idle_time_minutes", "115"),
        ("device_vendor", "Two Words"),
        ("device_app_dynamic", "always"),
    ],
)
def test_an_invalid_value_is_reported_with_its_source(key: str, text: str) -> None:
    option = next(option for option in OPTIONS if option.ini == key)

    for sources, source in (
        (({key: text}, {}, {}), option.flag),
        (({}, {option.variable: text}, {}), option.variable),
        (({}, {}, {key: text}), f"{key} in the ini file"),
    ):
        with pytest.raises(ConfigError) as caught:
            resolved(*sources)
        (problem,) = caught.value.problems
        name, _, where = source.partition(" ")
        assert problem.startswith(name)
        assert where in problem
        assert repr(text) in problem


@pytest.mark.parametrize(
    ("sources", "given"),
    [
        (({"device_prefetch": "two"}, {}, {}), "--device-prefetch='two'"),
        (({}, {"DEVICE_PREFETCH": "two"}, {}), "DEVICE_PREFETCH='two'"),
        (({}, {}, {"device_prefetch": "two"}), "device_prefetch='two' in the ini file"),
    ],
)
def test_an_invalid_value_is_reported_as_given(
    sources: tuple[dict[str, str], ...], given: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{given} must be a whole number of tests"):
        resolved(*sources)


@pytest.mark.parametrize(
    "option",
    [one for one in OPTIONS if one not in _TEXTS],
    ids=lambda option: option.ini,
)
def test_an_invalid_url_is_reported_without_credentials_and_query(
    option: Option[Any],
) -> None:
    text = "ftp://user:pw123456@archives.example/a\0.zip?sig=abcdefgh"

    with pytest.raises(ConfigError) as caught:
        resolved({}, {option.variable: text})

    (problem,) = caught.value.problems
    assert "ftp://***@archives.example/a" in problem
    assert "pw123456" not in problem
    assert "abcdefgh" not in problem


def test_all_invalid_values_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        resolved({"device_app_id": "x"}, {"DEVICE_URL": "x"}, {"device_vendor": "X"})

    assert len(caught.value.problems) == 3


def test_an_empty_string_counts_as_unset() -> None:
    assert (
        resolved({}, {"DEVICE_URL": ""}, {"device_url": "https://c"}).url == "https://c"
    )


def test_the_source_with_higher_precedence_selects_the_service() -> None:
    local_first = resolved({"device_local": "true"}, {"DEVICE_URL": "https://b"})
    url_first = resolved({"device_url": "https://a"}, {"DEVICE_LOCAL": "1"})

    assert local_first.local
    assert local_first.url is None
    assert not url_first.local
    assert url_first.url == "https://a"


def test_two_services_from_one_source_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="--device-url and --device-local are mutually exclusive"
    ):
        resolved({"device_url": "https://a", "device_local": "true"})


def test_a_local_service_needs_no_app_id_and_is_polled_faster() -> None:
    settings = resolved({"device_local": "true"})

    assert settings.app_id == LOCAL_APP_ID
    assert settings.poll_interval_seconds < resolved().poll_interval_seconds
    assert not list(settings.service_problems())


def test_an_explicit_poll_interval_applies_to_the_local_service_too() -> None:
    settings = resolved(
        {"device_local": "true"}, {}, {"device_poll_interval_seconds": "2"}
    )

    assert settings.poll_interval_seconds == 2


def test_a_builds_directory_is_allowed_for_a_separate_local_service() -> None:
    settings = resolved({"device_local": "true"}, {"DEVICE_BUILDS_DIR": "builds"})

    assert settings.local_service_config() == {
        "app_id": LOCAL_APP_ID,
        "builds_dir": str(Path.cwd() / "builds"),
        "real_only": False,
        "require_isolation": False,
        "selenium_manager": False,
        "avd": None,
        "simulator": None,
        "allow_insecure": [],
    }
    assert not list(settings.service_problems())


def test_real_device_options_require_a_local_service() -> None:
    given = {
        "DEVICE_LOCAL_REAL": "1",
        "DEVICE_AVD": "Phone",
        "DEVICE_APPIUM_ALLOW_INSECURE": "a:b, *:c",
    }
    settings = resolved({}, given)

    local = settings.local_service_config()
    assert (settings.local, local["real_only"], local["avd"]) == (True, True, "Phone")
    assert local["allow_insecure"] == ["a:b", "*:c"]
    assert not list(settings.service_problems())
    with pytest.raises(ConfigError, match="mutually exclusive"):
        resolved({"device_local_real": "true", "device_url": "https://a"})


def test_builds_for_another_service_are_an_error_on_the_command_line_only() -> None:
    service = (
        {"device_url": "https://a", "device_app_id": APP_ID},
        {"DEVICE_TOKEN": "made-up-token"},
    )

    (problem,) = resolved(
        service[0] | {"device_builds_dir": "builds"}, service[1]
    ).service_problems()

    assert "--device-builds-dir only applies to the local service" in problem
    assert not list(
        resolved(*service, {"device_builds_dir": "builds"}).service_problems()
    )


def test_without_a_service_both_options_are_named() -> None:
    (problem,) = resolved().service_problems()

    assert "--device-url" in problem
    assert "--device-local" in problem


def test_a_service_needs_an_app_id_and_a_token() -> None:
    app_id, token = resolved({"device_url": "https://a"}).service_problems()

    assert "--device-app-id" in app_id
    assert "DEVICE_TOKEN" in token


def test_the_token_is_read_from_the_environment_only() -> None:
    elsewhere = {"device_token": "made-up-token"}

    assert resolved(elsewhere, {}, elsewhere).token == ""
    assert resolved({}, {"DEVICE_TOKEN": "made-up-token"}).token == "made-up-token"


def test_no_repr_contains_the_token() -> None:
    assert "sesame-open" not in repr(resolved({}, {"DEVICE_TOKEN": "sesame-open"}))


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://devices.example", "https://devices.example"),
        ("https://devices.example/", "https://devices.example"),
        (" https://devices.example:8443/api/ ", "https://devices.example:8443/api"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://localhost:8000/", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_a_trailing_slash_is_removed_from_a_url(url: str, base: str) -> None:
    assert parsers.address(url) == base


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("", "must look like"),
        ("devices.example", "must look like"),
        ("https://", "must look like"),
        ("https://host:port", "ort"),
        ("https://host:0", "must look like"),
        ("https://[::1", "IPv6"),
        ("http://devices.example", "unencrypted"),
        ("http://127.0.0.1.devices.example", "unencrypted"),
        ("https://u:secretive@devices.example", "credentials"),
        ("https://u:secretive'@devices.example", "credentials"),
        ("https://u:secretive/x@devices.example", "must look like"),
        ("https://devices.example?x=1", "remove the"),
        ("https://devices.example/p?", "remove the"),
        ("https://devices.example?token=secretive", "remove the"),
        ("https://devices.example/\0", "characters"),
        ("https://devices example/", "characters"),
        ("https://devices.example/#x", "remove the"),
        ("https://devices.example/v2", "before /v2"),
        ("https://devices.example/v2/", "before /v2"),
    ],
)
def test_an_unusable_url_is_refused_with_the_rule(url: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule) as caught:
        parsers.address(url)

    assert "secretive" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://redis.example", "must look like"),
        ("redis://", "must look like"),
        ("redis://:secretive@redis.example:6x", "must look like"),
        ("redis://redis.example:0", "must look like"),
        ("redis://redis.example/one", "must look like"),
        ("redis://redis.example/1/2", "must look like"),
        ("rediss://:secret/secretive@redis.example", "must look like"),
        ("rediss://:secret secretive@redis.example", "no blank"),
        ('rediss://:secret"secretive@redis.example', "no blank"),
        ("rediss://redis.example/1?password=secretive", "end with its database number"),
        ("redis://:secretive@redis.example", "unencrypted: use rediss://"),
    ],
)
def test_an_unusable_redis_url_is_refused_without_its_credentials(
    url: str, rule: str
) -> None:
    with pytest.raises(ConfigError, match=rule) as caught:
        parsers.slots_address(url)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("foo", "foo"),
        ("redis.example:6379/1", "redis.example:6379/1"),
        ("user:secretive@redis.example", "***@redis.example"),
        (":secret://secretive@redis.example", ":secret://***@redis.example"),
        ("redis.example?password=secretive", "redis.example"),
    ],
)
def test_a_redis_url_without_a_scheme_is_reported_as_given(
    url: str, shown: str
) -> None:
    with pytest.raises(
        ConfigError, match=f"^Redis URL {re.escape(repr(shown))} must look like"
    ) as caught:
        parsers.slots_address(url)

    assert "secretive" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://redis.example",
        "redis://:open-sesame@[::1]:6380/2",
        "rediss://user:open-sesame@redis.example:6380/15",
    ],
)
def test_a_redis_url_can_have_credentials_if_they_stay_private(url: str) -> None:
    settings = resolved({}, {"DEVICE_SLOTS_URL": url, "DEVICE_MAX_SESSIONS": "3"})

    assert settings.slots_url == url
    assert "sesame" not in repr(settings)


@pytest.mark.parametrize(
    "source", ["--device-slots-url", "device_slots_url in the ini file"]
)
def test_a_redis_url_with_credentials_is_accepted_from_the_environment_only(
    source: str,
) -> None:
    given = {"device_slots_url": "rediss://:open-sesame@redis.example"}

    with pytest.raises(
        ConfigError,
        match=f"{source} must not contain credentials, .* set DEVICE_SLOTS_URL",
    ) as caught:
        resolved(given if source.startswith("--") else {}, {}, given)

    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("sources", "source"),
    [
        (({"device_slots_url": "redis://redis.example"}, {}, {}), "--device-slots-url"),
        (({}, {"DEVICE_SLOTS_URL": "redis://redis.example"}, {}), "DEVICE_SLOTS_URL"),
        (
            ({}, {}, {"device_slots_url": "redis://redis.example"}),
            "device_slots_url in the ini file",
        ),
    ],
)
def test_a_redis_url_requires_a_session_limit(
    sources: tuple[dict[str, str], ...], source: str
) -> None:
    with pytest.raises(
        ConfigError,
        match=f"^{source} has no effect without a limit: set --device-max-sessions",
    ):
        resolved(*sources)

    options, environ, ini = sources
    settings = resolved(options, environ, {**ini, "device_max_sessions": "3"})
    assert settings.slots_url == "redis://redis.example"


@pytest.mark.parametrize("token", ["", "  ", "sesame open", "sesame\n", "sésame"])
def test_a_token_that_cannot_be_a_header_is_refused_without_being_shown(
    token: str,
) -> None:
    with pytest.raises(ConfigError, match="DEVICE_TOKEN") as caught:
        checked_token(token)

    assert "same" not in str(caught.value)


URL = {"DEVICE_URL": "https://a"}


@pytest.mark.parametrize("variable", ["CI", "BUILD_NUMBER"])
def test_the_ini_file_keeps_nothing_warm_in_ci(variable: str) -> None:
    settings = resolved({}, {**URL, variable: "1"}, {"device_keep_warm": "5"})

    assert settings.keep_warm == 0
    assert settings.keep_warm_ignored_because.startswith(
        "device_keep_warm in the ini file is ignored: in CI"
    )
    assert settings.is_default("max_idle_time_minutes")


@pytest.mark.parametrize(
    ("options", "environ"),
    [({"device_keep_warm": "5"}, {}), ({}, {"DEVICE_KEEP_WARM": "5"})],
)
def test_in_ci_option_and_variable_keep_devices_warm(
    options: dict[str, str], environ: dict[str, str]
) -> None:
    assert resolved(options, {**URL, "CI": "1", **environ}).keep_warm == 5


def test_a_local_service_that_ends_with_the_run_keeps_nothing_warm() -> None:
    settings = resolved({"device_local": "true"}, {"DEVICE_KEEP_WARM": "5"})

    assert settings.keep_warm == 0
    assert (
        settings.keep_warm_ignored_because
        == "DEVICE_KEEP_WARM is ignored: the local service ends with the run"
    )
    assert not list(settings.service_problems())


def test_an_option_that_the_local_service_cannot_honor_is_an_error() -> None:
    settings = resolved({"device_local": "true", "device_keep_warm": "5"})

    (problem,) = settings.service_problems()
    assert problem.startswith("--device-keep-warm needs a remote service")


@pytest.mark.parametrize(
    ("given", "minutes"), [({}, 21), ({"DEVICE_MAX_IDLE_TIME_MINUTES": "7"}, 7)]
)
def test_an_unset_idle_limit_exceeds_the_time_of_a_warm_device(
    given: dict[str, str], minutes: int
) -> None:
    settings = resolved({"device_keep_warm": "20"}, {**URL, **given})

    assert settings.max_idle_time_minutes == minutes


def test_keeping_devices_warm_leaves_a_sufficient_idle_limit_alone() -> None:
    settings = resolved({"device_keep_warm": "2"}, URL)

    assert settings.max_idle_time_minutes == 10
    assert settings.is_default("max_idle_time_minutes")
