"""Redaction of secrets in text."""

import json
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import httpx
import pytest

from pytest_device.redact import Redactor, is_loopback, uses_tls


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
    ],
)
def test_a_shortened_secret_is_masked_at_both_ends(text: str, masked: str) -> None:
    assert Redactor(["opensesame-abcdefghij"]).text(text) == masked


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
