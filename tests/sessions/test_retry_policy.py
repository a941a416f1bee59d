"""A call is retried only if that is safe, with sensible counts and pauses."""

import json

import pytest

from pytest_device.http_status import is_temporary_status
from pytest_device.sessions.retry_policy import (
    MAX_PAUSE_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    created_nothing,
    has_no_capacity,
    pause_after,
    retry_after,
)

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT
SESSION = {
    "data": {
        "id": "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c",
        "url": "https://devices.example/1",
    }
}


@pytest.mark.parametrize(
    ("attempts", "asked", "seconds"),
    [
        (1, None, 0.5),
        (2, None, 1.0),
        (3, 0.0, 2.0),
        (1, 2.0, 2.0),
        (4, 2.0, 4.0),
        (6, None, 15.0),
        (1, 3600.0, 15.0),
    ],
)
def test_pauses_grow_and_respect_retry_after_up_to_a_limit(
    attempts: int, asked: float | None, seconds: float
) -> None:
    assert pause_after(attempts, asked) == seconds


def test_after_days_a_stop_is_retried_as_often_as_after_a_minute() -> None:
    assert pause_after(100_000) == MAX_PAUSE_SECONDS


@pytest.mark.parametrize(
    ("status", "is_temporary"),
    [(400, False), (404, False), (408, True), (429, True), (500, True)],
)
def test_temporary_failures_are_retried(status: int, *, is_temporary: bool) -> None:
    assert is_temporary_status(status) is is_temporary


@pytest.mark.parametrize(
    ("status", "body", "seconds"),
    [
        (429, b"", None),
        (429, b"<h1>slow down</h1>", None),
        (429, b'{"message": "too many sessions"}', 30.0),
        (503, b"", 0.0),
        (503, b"busy", 12.0),
        (503, b'{"message": "no device is free"}', 12.0),
        (
            503,
            b'{"errors": [{"code": "NO_CAPACITY", "message": "no device is free"}]}',
            None,
        ),
        (503, b'{"code": "NO_CAPACITY"}', None),
    ],
)
def test_a_service_without_capacity_has_created_nothing(
    status: int, body: bytes, seconds: float | None
) -> None:
    assert has_no_capacity(status, body, seconds)
    assert created_nothing(status, body, seconds)


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (b"", None),
        (b"busy", None),
        (
            b"upstream connect error or disconnect/reset before headers. reset reason: connection termination",
            None,
        ),
        (b'{"message": "Service Unavailable"}', None),
        (b'{"code": 503, "message": "upstream request timeout"}', None),
        (b"<html><title>503 Backend fetch failed</title>Guru Meditation", 5.0),
        (b" \r\n<!DOCTYPE html>", 5.0),
        (b"[" * 100_000, None),
        (json.dumps(SESSION).encode(), 5.0),
        (b'busy {"id": "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"', 5.0),
    ],
)
def test_a_503_that_may_come_from_a_gateway_proves_nothing(
    body: bytes, seconds: float | None
) -> None:
    assert not has_no_capacity(503, body, seconds)
    assert not created_nothing(503, body, seconds)


@pytest.mark.parametrize("status", [200, 408, 500, 502, 504])
def test_no_other_status_means_a_lack_of_capacity(status: int) -> None:
    assert not created_nothing(status, b'{"code": "NO_CAPACITY"}', 5.0)


def test_other_refusals_have_created_nothing_but_are_not_a_lack_of_capacity() -> None:
    assert created_nothing(400, b"", 5.0)
    assert created_nothing(302, b"<html>Moved</html>", None)
    assert not created_nothing(303, b"", None)
    assert not has_no_capacity(400, b"", 5.0)


def test_a_refusal_that_contains_a_session_has_created_it() -> None:
    assert not created_nothing(429, json.dumps(SESSION).encode(), None)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("9" * 300, MAX_RETRY_AFTER_SECONDS),
        ("Fri, 15 Jan 2027 08:01:30 GMT", 90.0),
        ("Friday, 15-Jan-27 08:01:30 GMT", 90.0),
        ("Fri Jan 15 08:01:30 2027", 90.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("Fri, 15 Jan 2100 08:00:00 GMT", MAX_RETRY_AFTER_SECONDS),
    ],
)
def test_retry_after_can_be_seconds_or_a_date(value: str, seconds: float) -> None:
    assert retry_after(value, None, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        "-5",
        "1e9",
        "9" * 5000,
        "١٢",
        "nan",
        "Fri, 99 Jan 99999 08:00:00 GMT",
        "\xff",
    ],
)
def test_an_invalid_retry_after_is_ignored(value: str | None) -> None:
    assert retry_after(value, None, NOW) is None


def test_a_date_is_compared_with_the_services_clock() -> None:
    at, now_there = "Fri, 15 Jan 2027 10:00:30 GMT", "Fri, 15 Jan 2027 10:00:00 GMT"

    assert retry_after(at, now_there, NOW) == 30
    assert retry_after(at, "some day", NOW) == 7230
