"""Redaction of secrets in text."""

import html
import json
import re
import shlex
import textwrap
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha512
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import quoteattr

import httpx
import pytest

from pytest_device.redact import (
    MASK,
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


def lower_case(text: str) -> str:
    return re.sub("%..", lambda found: found[0].lower(), text)


def in_base64(before: str, after: str = "") -> Callable[[str], str]:
    return lambda secret: b64encode(f"{before}{secret}{after}".encode()).decode()


def in_lines(width: int, separator: str = "\n") -> Callable[[str], str]:
    return lambda secret: separator.join(
        secret[start : start + width] for start in range(0, len(secret), width)
    )


SPELLINGS: dict[str, Callable[[str], str]] = {
    "repr": repr,
    "repr of a repr": lambda secret: repr(repr([secret])),
    "repr of bytes": lambda secret: repr(secret.encode()),
    "JSON": json.dumps,
    "JSON in JSON": lambda secret: json.dumps(json.dumps(secret)),
    "JSON with characters": lambda secret: json.dumps(secret, ensure_ascii=False),
    "JSON with escaped slashes": lambda secret: json.dumps(secret).replace("/", "\\/"),
    "JSON in a page": lambda secret: json.dumps(secret).translate(
        {38: "\\u0026", 39: "\\u0027", 60: "\\u003c", 62: "\\u003e"}
    ),
    "the name of a test": lambda secret: secret.encode("unicode_escape").decode(),
    "a path": quote,
    "a part of a path": lambda secret: quote(secret, safe=""),
    "a path in lower case": lambda secret: lower_case(quote(secret, safe="")),
    "a form": quote_plus,
    "a form in lower case": lambda secret: lower_case(quote_plus(secret)),
    "a form of a browser": lambda secret: quote_plus(secret, "*").replace("~", "%7E"),
    "a query": lambda secret: str(httpx.URL("http://host", params={"q": secret})),
    "encodeURIComponent": lambda secret: quote(secret, safe="!'()*"),
    "encodeURI": lambda secret: quote(secret, safe="!'()*;/?:@&=+$,#"),
    "HTML": html.escape,
    "HTML of a text": lambda secret: html.escape(secret, quote=False),
    "HTML of other libraries": lambda secret: (
        html.escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    ),
    "an attribute of XML": quoteattr,
    "XML": lambda secret: html.escape(secret).replace("&#x27;", "&apos;"),
    "a shell": shlex.quote,
    "a shell with backslashes": lambda secret: "'" + secret.replace("'", "'\\''") + "'",
    "words of a shell": lambda secret: re.sub(r"([^\w./-])", r"\\\1", secret),
    "Base64": in_base64(""),
    "Base64 after a user": in_base64("me:"),
    "Base64 after a longer user": in_base64("user:"),
    "Base64 between others": in_base64("user", '"}'),
    "Base64 for URLs": lambda secret: urlsafe_b64encode(secret.encode()).decode(),
    "Base64 for URLs after a user": lambda secret: urlsafe_b64encode(
        b"ab:" + secret.encode()
    ).decode(),
    "Base64 in lines": lambda secret: in_lines(9)(in_base64("user:")(secret)),
    "lines of a character": in_lines(1),
    "lines of 7": in_lines(7),
    "lines of Windows": in_lines(5, "\r\n"),
    "indented lines": in_lines(10, "\n    "),
    "lines of an error": in_lines(6, "\nE   "),
    "lines of a box": in_lines(9, "\n│ "),
    "a repr of lines": lambda secret: repr(in_lines(8)(secret)),
    "lines of JSON": lambda secret: in_lines(6)(json.dumps(secret)),
    "lines of a URL": lambda secret: in_lines(4)(quote(secret, safe="")),
}


HARD_SECRETS = (
    "open'se\"same",
    "open\\sesame",
    "open/sesame+&",
    "ouvre-toi-sésame",
    "open <sesame> & 'close' it~",
    "next\\new'token/with?all=of;them&",
    "n0p3nSesame/0123456789+abcdefghijklmnopqrst",
    "\u00ff\u00fe>>>???~~~~sesame",
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_masked_in_any_spelling(spelling: str) -> None:
    # Base64 has the user's name, and bits of both, before and after the secret.
    length = 8 if "Base64" in spelling else 6

    for secret in HARD_SECRETS:
        redactor = Redactor([secret])
        spelt = SPELLINGS[spelling](secret).removeprefix("http://host?q=")

        for around in ("<{}>", "\\{}\\n", "\n  {} \n"):
            masked = redactor.text(around.format(spelt))
            assert MASK in masked, (secret, masked)

            parts = [spelt[at : at + length] for at in range(len(spelt) - length + 1)]
            assert [part for part in parts if part in masked] == [], (secret, masked)


@pytest.mark.parametrize(
    "text",
    [
        "open sesame",
        "Open Sesame",
        "open-sesame",
        "opensesam\n\nf",
        "123\n456",
        "b3BlbnNl",
        "%6fpense",
    ],
)
def test_a_text_without_the_secret_is_left_alone(text: str) -> None:
    assert Redactor(["opensesame", "123456"]).text(text) == text


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
@pytest.mark.parametrize("part", [slice(44), slice(20, 64), slice(-60, -8)])
def test_a_part_of_a_token_is_masked_but_for_its_edges(
    secret: str, part: slice
) -> None:
    before, mask, after = Redactor([secret]).text(f"- {secret[part]}x").partition(MASK)

    assert mask
    assert max(len(before), len(after)) <= 2 + 7


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
        redactor.add(f"secret number {number}")

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
