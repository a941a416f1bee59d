"""The client with a hostile service: calls have a time limit, and errors don't reveal the token."""

import json
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import repeat

import httpx
import pytest

from pytest_device import (
    DeviceClient,
    InvalidRequestError,
    ServiceError,
    SessionRequest,
    StatusError,
    TransportError,
)

pytestmark = pytest.mark.every_python

TOKEN = "open-sesame-open-0815"
SESSION = "00000000-0000-4000-8000-00000000000a"
REQUEST = SessionRequest.from_arguments(app_id=SESSION, platform="ios")
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"
HEAD = b"HTTP/1.1 200 OK\r\n"
PAUSE_SECONDS = 0.02

ENDLESS = {
    "informational answers": repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "headers": repeat(b"X: y\r\n"),
    "one header": repeat(b"x"),
    "a body": repeat(b" "),
    "chunks": repeat(b"1\r\n \r\n"),
}
BEGINNINGS = {
    "headers": HEAD,
    "one header": HEAD,
    "a body": HEAD + b"Content-Length: 100000\r\n\r\n",
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
}


def served(listener: socket.socket, answers: Iterator[Iterator[bytes]]) -> None:
    """Reply to each request of one connection bit by bit, until the client disconnects."""
    with suppress(OSError), listener.accept()[0] as connection:
        for answer in answers:
            connection.recv(65536)
            for part in answer:
                connection.sendall(part)
                time.sleep(PAUSE_SECONDS)


@contextmanager
def service(*answers: Iterator[bytes]) -> Generator[str]:
    """Run a service for one connection; it is gone at the end of the block."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=served, args=(listener, iter(answers)))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    thread.join(30)
    assert not thread.is_alive()


def endless(kind: str) -> Iterator[bytes]:
    yield BEGINNINGS.get(kind, b"")
    yield from ENDLESS[kind]


def outcome(client: DeviceClient) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        # Which is sent once: other calls are repeated, and find nobody who listens.
        client.create(REQUEST)
    return caught.value


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_response_times_out_on_a_new_connection(kind: str) -> None:
    with (
        service(endless(kind)) as url,
        DeviceClient(url, TOKEN, reply_seconds=0.3) as client,
    ):
        error = outcome(client)

    assert isinstance(error, TransportError)
    assert str(error) == "create: the response took longer than 0.3 s"
    assert error.sent


@pytest.mark.timeout(30)
def test_an_endless_response_times_out_on_a_kept_alive_connection() -> None:
    answers = [iter([NOT_FOUND]), endless("headers")]
    with (
        service(*answers) as url,
        # Also for the first response, which comes at once.
        DeviceClient(url, TOKEN, reply_seconds=2.5) as client,
    ):
        first, second = outcome(client), outcome(client)

    assert isinstance(first, StatusError)
    assert str(second) == "create: the response took longer than 2.5 s"


def answering(body: str, status: int = 400) -> DeviceClient:
    transport = httpx.MockTransport(lambda _request: httpx.Response(status, text=body))
    return DeviceClient(
        "https://devices.example",
        TOKEN,
        transport=transport,
        sleep=lambda _seconds: None,
    )


ECHOES: list[Callable[[str], str]] = [
    lambda token: f"the header was 'Authorization: Bearer {token}'",
    lambda token: f'{{"message": "invalid: {token}"}}',
    lambda token: (
        '{"message": "invalid: '
        + "".join(f"\\u{ord(letter):04x}" for letter in token)
        + '"}'
    ),
    lambda token: f"<p>{token}</p>",
    lambda token: "x" * 490 + token,
]


@pytest.mark.parametrize("echo", ECHOES)
def test_an_error_does_not_repeat_the_token_that_the_service_echoes(
    echo: Callable[[str], str],
) -> None:
    with answering(echo(TOKEN)) as client, pytest.raises(InvalidRequestError) as caught:
        client.get(SESSION)

    assert "***" in caught.value.detail
    assert TOKEN[:8] not in f"{caught.value!r} {caught.value} {caught.value.detail}"


def test_an_error_does_not_show_connection_details_that_a_gateway_quotes() -> None:
    quoted = json.dumps({"data": {"remoteConfig": {"toolsAuthToken": "hunter2"}}})
    body = json.dumps({"message": f"the service returned {quoted}"})
    with answering(body, 500) as client, pytest.raises(StatusError) as caught:
        client.get(SESSION)

    assert "hunter2" not in f"{caught.value} {caught.value.detail}"


def test_a_connection_error_does_not_repeat_the_token() -> None:
    def fail(_request: httpx.Request) -> httpx.Response:
        raise httpx.ProxyError(f"407 {TOKEN}")

    client = DeviceClient(
        "https://devices.example",
        TOKEN,
        transport=httpx.MockTransport(fail),
        sleep=lambda _: None,
    )
    with client, pytest.raises(TransportError) as caught:
        client.get(SESSION)

    assert TOKEN not in f"{caught.value!r}"


def test_a_redirect_is_not_followed() -> None:
    asked = list[str]()

    def redirect(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(307, headers={"Location": "https://other.example/v2"})

    transport = httpx.MockTransport(redirect)
    client = DeviceClient(
        "https://devices.example",
        TOKEN,
        transport=transport,
        sleep=lambda _seconds: None,
    )
    with client, pytest.raises(ServiceError):
        client.create(REQUEST)

    assert set(asked) == {"devices.example"}


def test_a_client_shows_no_token() -> None:
    with answering("") as client:
        assert TOKEN not in repr(vars(client))
