"""Redaction of secrets in text."""

import json
import textwrap
import time
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha512
from urllib.parse import quote, quote_plus

import httpx
import pytest

from pytest_device.redact import (
    Redactor,
    is_loopback,
    is_secret_name,
    named_secrets,
    uses_tls,
)
from pytest_device.secret_registry import MAX_SECRETS, MIN_LENGTH, SecretRegistry

pytestmark = pytest.mark.every_python

BODY = b64encode(
    b"".join(sha512(bytes([number])).digest() for number in range(12))
).decode()[:984]
"""Its last line is as short as that of a key."""
KEY = "\n".join(
    (
        "-----BEGIN PRIVATE KEY-----",
        *textwrap.wrap(BODY, 64),
        "-----END PRIVATE KEY-----",
        "",
    )
)


def test_a_known_secret_is_masked_everywhere() -> None:
    assert (
        Redactor(["opensesame"]).text("a=opensesame&b='opensesame'") == "a=***&b='***'"
    )


def test_a_secret_that_contains_another_leaves_no_remainder() -> None:
    assert Redactor(["opensesame", "opensesame-2"]).text("opensesame-2") == "***"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("'opensesame-a...", "'***..."),
        ("...abcdefghij'", "...***'"),
        ("'opensesame-a...bcdefghij'", "'***...***'"),
        ("'opens...hij'", "'opens...hij'"),
        ("'opensesame-a…", "'***…"),
        ("wait ... for it", "wait ... for it"),
        ("open sea, open sesa...", "open sea, ***..."),
        ("opensesame-a open sesame op...", "opensesame-a ***..."),
        ("'...as you like it'", "'...***'"),
        ("open sesame ...", "***..."),
    ],
)
def test_a_shortened_secret_is_masked_at_both_ends(text: str, masked: str) -> None:
    secrets = ["opensesame-abcdefghij", "open sesame open as you like it"]

    assert Redactor(secrets).text(text) == masked


@pytest.mark.parametrize(
    "spelling",
    [
        repr,
        json.dumps,
        lambda secret: repr(repr([secret])),
        lambda secret: json.dumps(json.dumps(secret)),
        quote,
        quote_plus,
        lambda secret: str(httpx.URL("http://host", params={"q": secret})),
    ],
)
@pytest.mark.parametrize(
    "secret", ["open'se\"same", "open\\sesame", "open/sesame+&", "ouvre-toi-sésame"]
)
def test_a_secret_is_masked_in_any_spelling(
    secret: str, spelling: Callable[[str], str]
) -> None:
    masked = Redactor([secret]).text(f"<{spelling(secret)}>")

    assert "***" in masked
    assert "same" not in masked


def test_a_text_is_masked_quickly_however_many_secrets_there_are() -> None:
    redactor = Redactor(
        f"https://{number:08}.devices.example/" for number in range(3000)
    )
    text = "assert {'url': 'https://0000...example/'} == {}\n" * 200
    started = time.process_time()

    redactor.text(text)

    assert time.process_time() - started < 1


@pytest.mark.parametrize("start", ["", "https://devices.example/"])
def test_as_many_secrets_as_a_process_keeps_hardly_cost_more_than_one(
    start: str,
) -> None:
    tokens = [
        start + sha512(str(number).encode()).hexdigest()
        for number in range(MAX_SECRETS)
    ]
    text = f"tests/test_app.py:12: assert {{'id': 3}} == '{tokens[7]}'\n" * 5000

    def seconds(*secrets: str) -> float:
        redactor = Redactor(secrets)
        started = time.process_time()
        assert tokens[7] not in redactor.text(text)
        return time.process_time() - started

    assert seconds(*tokens) < 3 * seconds(tokens[7])


@pytest.mark.parametrize(
    "secret", [BODY[:200], f"eyJhbGciOiJSUzI1NiJ9.{BODY[:80]}.{BODY[80:120]}"]
)
@pytest.mark.parametrize("part", [slice(40), slice(20, 60), slice(-40, None)])
def test_a_word_with_a_part_of_a_token_is_masked(secret: str, part: slice) -> None:
    assert Redactor([secret]).text(f"- {secret[part]}x") == "- ***"


def test_a_part_of_an_address_and_an_id_in_a_token_are_left_alone() -> None:
    url = "http://127.0.0.1:36831/sessions/90ca82b3-9ba1-4211-836d-37d2f1bca17f"
    path = url.partition("36831")[2]
    key = "90ca82b3-9ba1-4211-836d-37d2f1bca17f.a-key-that-starts-with-the-session"
    redactor = Redactor([f"{url}/{key}", f"{path}/{key}", key])

    assert (
        redactor.text(f"{url} {url}/{key} {path}/{key} {key}") == f"{url} *** *** ***"
    )


def test_tokens_that_begin_alike_are_masked_whole() -> None:
    tokens = [
        f"eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.{number:04}" for number in range(100)
    ]
    redactor = Redactor(tokens)

    assert [
        token for token in tokens if token[-5:] in redactor.text(f"x={token} y")
    ] == []


@pytest.mark.parametrize("spelling", [KEY, KEY.replace("\n", "\\n")])
@pytest.mark.parametrize(
    "shown",
    [
        "\n".join(f"E   - {line}" for line in KEY.splitlines()),
        repr(KEY),
        repr(repr(KEY)),
        json.dumps({"key": KEY}),
        textwrap.fill(BODY, 76),
        BODY,
        KEY.splitlines()[3],
        KEY.splitlines()[-2],
        f"\x1b[33m'{KEY[:30]}\x1b[39m{KEY[30:100]}\x1b[33m{KEY[100:]}",
    ],
)
def test_no_line_of_a_known_key_survives(shown: str, spelling: str) -> None:
    masked = Redactor([spelling]).text(shown)

    assert [
        line
        for line in textwrap.wrap(BODY, 64)
        if line[:24] in masked or line[-24:] in masked
    ] == []


@pytest.mark.parametrize(
    "shown",
    [
        KEY,
        KEY.replace("PRIVATE", "RSA PRIVATE"),
        repr(KEY),
        json.dumps(json.dumps(KEY)),
        KEY[:-60],
        "\n".join(f"E         - {line}" for line in KEY.splitlines()),
        "\n".join(f"  + {line}" for line in KEY.splitlines()[:-1]),
    ],
)
def test_an_unknown_private_key_is_recognized_by_its_form(shown: str) -> None:
    masked = Redactor().text(f"before {shown} after")

    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert [line for line in textwrap.wrap(BODY, 64) if line[:24] in masked] == []


def test_a_text_with_the_beginnings_of_many_keys_is_masked_quickly() -> None:
    text = "-----BEGIN PRIVATE KEY----- " * 40_000
    started = time.process_time()

    assert Redactor().text(text) == text
    assert time.process_time() - started < 2


def test_a_secret_that_a_highlighter_has_split_is_masked() -> None:
    colored = r"\x1b[33m'\x1b[33ma password with\x1b[39m\x1b[94m\\x27\x1b[39m a quote\x1b[0m".replace(
        r"\x1b", "\x1b"
    )

    assert "a quote" not in Redactor(["a password with\\x27 a quote"]).text(colored)


def test_the_latest_secrets_are_kept() -> None:
    redactor = Redactor(["a secret that lasts"])
    for number in range(2 * MAX_SECRETS + 1):
        redactor.add_recent(f"secret number {number}")

    assert redactor.text("a secret that lasts") == "***"
    assert redactor.text(f"secret number {2 * MAX_SECRETS}") == "***"
    assert redactor.text("<secret number 0>") == "<secret number 0>"


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *(
            (name, True)
            for name in (
                "API_TOKEN",
                "clientSecret",
                "x-api-key",
                "DB_PASSWORD",
                "privateKey",
                "TOKENS",
            )
        ),
        *(
            (name, True)
            for name in (
                "SIGNING_KEY",
                "aws_access_key_1",
                "PASSPHRASE",
                "authTokens",
                "SENTRY_AUTH_TOKEN",
            )
        ),
        *(
            (name, False)
            for name in (
                "PUBLIC_KEY",
                "MAPS_PUBLISHABLE_TOKEN",
                "TOKEN_URL",
                "passwordLength",
                "KEYBOARD",
            )
        ),
        *(
            (name, False)
            for name in (
                "token_type",
                "id_token_signing_alg",
                "key",
                "AUTHOR",
                "name",
                "SECRET_FILE",
                "",
            )
        ),
    ],
)
def test_a_name_tells_whether_its_value_is_a_secret(name: str, is_secret: bool) -> None:  # noqa: FBT001
    assert is_secret_name(name) == is_secret


def test_passwords_in_urls_are_secrets_whatever_their_name() -> None:
    values = [
        ("DATABASE_URL", "postgres://ada:p%40ssword@db.example/"),
        ("HOST", "https://[x"),
        ("SIZE", 3),
    ]

    assert [secret for secret in named_secrets(values) if secret] == ["p@ssword"]


def test_a_registry_passes_each_secret_on_before_it_returns() -> None:
    registry, seen = SecretRegistry(), list[str]()
    registry.learn("learned before")

    unfollow = registry.follow(lambda *secrets: seen.extend(secrets))
    registry.learn(
        "learned later",
        None,
        7,
        "x" * (MIN_LENGTH - 1),
        "client-secret",
        "access_token",
        "password",
    )
    unfollow()
    registry.learn("learned too late")

    assert seen == ["learned before", "learned later"]


def test_a_registry_keeps_the_latest_secrets_whatever_their_length() -> None:
    registry = SecretRegistry()
    for number in range(MAX_SECRETS + 1):
        registry.learn(f"secret number {number}")
    count, known = registry.since(0)
    registry.learn("secret number 1", "y" * 10_000)

    assert count == MAX_SECRETS + 1
    assert (len(known), known[0]) == (MAX_SECRETS, "secret number 1")
    assert registry.since(count)[1] == ("secret number 1", "y" * 4_096, "y" * 1_808)
    assert registry.since(registry.since(0)[0]) == (count + 4, ())


def test_a_short_value_is_left_alone() -> None:
    assert Redactor(["ios", ""]).text("an ios device") == "an ios device"


def test_a_secret_learned_later_is_masked_from_then_on() -> None:
    redactor = Redactor()
    redactor.add("opensesame")

    assert redactor.text("opensesame") == "***"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abc.def-1", "Authorization: Bearer ***"),
        ("{'authorization': 'bearer abc'}", "{'authorization': 'bearer ***'}"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
        (
            "[(b'Authorization', b'Basic dXNlcjpwYXNz')]",
            "[(b'Authorization', b'Basic ***')]",
        ),
        ("GET https://user:pass@host/x", "GET https://***@host/x"),
        ("wss://user:p@ss@host/x", "wss://***@host/x"),
        (
            "https://host/x?id=1&access_token=abc&n=2",
            "https://host/x?id=1&access_token=***&n=2",
        ),
        ("https://host/x?X-Signature=abc#top", "https://host/x?X-Signature=***#top"),
        ("myapp://r?code=abc&error_code=4", "myapp://r?code=***&error_code=4"),
        (
            "https://host/x?code_verifier=abc#access_token=a",
            "https://host/x?code_verifier=***#access_token=***",
        ),
        ("https://host/x?author=me&tokens", "https://host/x?author=me&tokens"),
        ("GET https://host/x@y", "GET https://host/x@y"),
    ],
)
def test_credentials_are_recognized_by_their_form(text: str, masked: str) -> None:
    assert Redactor().text(text) == masked


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"]
)
def test_loopback_hosts_are_recognized(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "10.0.0.1", "localhost.example", "127.0.0.1.example", "devices.example"],
)
def test_other_hosts_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("url", ["https://a", "HTTPS://a", "a"])
def test_urls_need_certificates(url: str) -> None:
    assert uses_tls(url)


@pytest.mark.parametrize("url", ["http://a", "HTTP://a"])
def test_http_urls_need_none(url: str) -> None:
    assert not uses_tls(url)
