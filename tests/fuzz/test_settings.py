"""Any text in options, environment and ini file is a setting or a ConfigError, and accepted values work."""

import re
from collections.abc import Sequence

import httpx
import pytest
from hypothesis import example, given
from hypothesis.strategies import (
    SearchStrategy,
    characters,
    dictionaries,
    fixed_dictionaries,
    from_regex,
    just,
    one_of,
    sampled_from,
    text,
)

from pytest_device import parsers
from pytest_device.errors import ConfigError, NotFoundError
from pytest_device.options import OPTIONS, TOKEN_VARIABLE
from pytest_device.sessions.client import DeviceClient
from pytest_device.settings import Settings, checked_token, resolve

ID = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"

likely = sampled_from(
    [
        "true",
        "off",
        "Yes",
        "0",
        "1",
        "30",
        "115",
        "116",
        "-1",
        "1e3",
        "inf",
        "nan",
        "1_0",
        "\uff19",
        "9" * 5000,
        ID,
        ID.replace("-", ""),
        f"{{{ID}}}",
        "vendor",
        "Vendor",
        "/var/state",
        "~/state",
        "a\0b",
        "https://devices.example/base/",
        "http://127.0.0.1:8765",
        "http://[::1]:1",
        "http://devices.example",
    ]
)
addresses = one_of(
    from_regex(r"https?://.{1,12}", fullmatch=True),
    from_regex(r"https://[^/]{1,12}(:\d{1,6})?(/\S{0,9})?", fullmatch=True),
    from_regex(r"http://(127\.0\.0\.1|\[::1\]|localhost).{0,9}", fullmatch=True),
)
texts = likely | addresses | text(characters(codec=None))


def given_texts(names: list[str]) -> SearchStrategy[dict[str, str]]:
    return dictionaries(sampled_from(names), texts, max_size=4)


INI_KEYS = [option.ini for option in OPTIONS]
VARIABLES = [option.variable for option in OPTIONS]
NAMES = {*INI_KEYS, *VARIABLES, *(option.flag for option in OPTIONS), "service"}


@given(given_texts(INI_KEYS), given_texts(VARIABLES), given_texts(INI_KEYS))
def test_any_texts_are_settings_or_a_config_error(
    options: dict[str, str], environ: dict[str, str], ini: dict[str, str]
) -> None:
    settings, problems = outcome(options, environ, ini)

    assert {re.split("[ =:]", problem)[0] for problem in problems} <= NAMES
    assert settings is None or all(settings.service_problems())


def outcome(
    options: dict[str, str], environ: dict[str, str], ini: dict[str, str]
) -> tuple[Settings | None, Sequence[str]]:
    try:
        return resolve(options, environ, ini), ()
    except ConfigError as error:
        return None, error.problems


@given(
    just("https://devices.example/base") | addresses | text(characters(codec=None)),
    just("t0ken") | text(characters(max_codepoint=128), min_size=1),
)
@example("https://[::1]", "t0ken")
def test_an_accepted_url_and_token_can_be_used(address: str, token: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == f"Bearer {token}"
        assert token.isascii()
        assert token.isprintable()
        assert request.url.path.endswith(f"/v2/device-run-sessions/{ID}")
        return httpx.Response(404)

    with (
        pytest.raises((ConfigError, NotFoundError)),
        DeviceClient(
            parsers.address(address),
            checked_token(token),
            transport=httpx.MockTransport(answer),
        ) as client,
    ):
        client.get(ID)


@given(
    fixed_dictionaries({TOKEN_VARIABLE: from_regex(r"[!-~]{6,40}", fullmatch=True)}),
    given_texts(INI_KEYS),
)
def test_no_message_or_repr_contains_the_token(
    environ: dict[str, str], options: dict[str, str]
) -> None:
    token = f"canary-{environ[TOKEN_VARIABLE]}"

    settings, problems = outcome(options, {TOKEN_VARIABLE: token}, {})

    assert token not in f"{settings!r} {settings} {problems}"


@given(from_regex(r"[^\s/@?#\[\]]{6,20}", fullmatch=True), addresses)
def test_no_password_in_a_url_is_shown(password: str, address: str) -> None:
    password = f"canary{password}"
    scheme, _, rest = address.partition("://")

    with pytest.raises(ConfigError) as caught:
        parsers.address(f"{scheme}://somebody:{password}@{rest}")

    assert password not in str(caught.value)
