"""The limits of a body that is read."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from pytest_device.auth.provider import Client, IdentityProvider
from pytest_device.auth.provider.exchange import MAX_BODY_BYTES
from pytest_device.body_limit import BodyLimitError, read_body, read_body_async
from pytest_device.notifications.endpoint import (
    FIELD_TYPES,
    MAX_REQUEST_BYTES,
    PushEndpoint,
)


async def arriving(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def test_a_body_may_have_as_many_bytes_as_its_limit() -> None:
    assert read_body([b"ab", b"", b"c"], 3) == b"abc"
    assert asyncio.run(read_body_async(arriving(b"ab", b"c"), 3)) == b"abc"


def test_reading_stops_at_the_chunk_that_is_too_much() -> None:
    chunks = iter([b"ab", b"cd", b"never read"])
    arrived = bytearray()

    with pytest.raises(BodyLimitError, match="larger than 3 bytes") as raised:
        read_body(chunks, 3, into=arrived)

    assert not raised.value.is_late
    assert arrived == b"abcd"
    assert list(chunks) == [b"never read"]


def test_reading_stops_at_the_deadline_however_steadily_a_body_arrives() -> None:
    with pytest.raises(BodyLimitError, match="not complete in time") as raised:
        read_body([b"a"], 3, deadline=time.monotonic())

    assert raised.value.is_late


def test_what_arrived_before_a_connection_was_lost_is_kept() -> None:
    def cut_off() -> Iterator[bytes]:
        yield b'{"id": "x"'
        raise ConnectionError

    arrived = bytearray()

    with pytest.raises(ConnectionError):
        read_body(cut_off(), 100, into=arrived)

    assert arrived == b'{"id": "x"'


def test_an_asynchronous_body_has_the_same_limit() -> None:
    with pytest.raises(BodyLimitError, match="larger than 3 bytes"):
        asyncio.run(read_body_async(arriving(b"ab", b"cd"), 3))


def test_the_identity_provider_refuses_a_request_that_is_too_large() -> None:
    clients = [Client("app", ["myapp://callback"])]

    with IdentityProvider(clients=clients) as provider:
        largest = httpx.post(f"{provider.issuer}/token", content=bytes(MAX_BODY_BYTES))
        larger = httpx.post(
            f"{provider.issuer}/token", content=bytes(MAX_BODY_BYTES + 1)
        )

    assert "is larger than" not in largest.text
    assert (larger.status_code, larger.json()["error_description"]) == (
        413,
        f"the request is larger than {MAX_BODY_BYTES} bytes",
    )


def test_the_push_endpoint_reads_no_request_that_is_too_large() -> None:
    fields = {name: "x" if kind is str else True for name, kind in FIELD_TYPES.items()}
    request = json.dumps(fields).encode()

    with PushEndpoint() as endpoint:
        url = endpoint.token_url
        largest = httpx.post(url, content=request.ljust(MAX_REQUEST_BYTES))
        larger = httpx.post(url, content=request.ljust(MAX_REQUEST_BYTES + 1))

    assert (largest.status_code, larger.status_code) == (200, 400)
