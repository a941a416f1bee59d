"""With any mutated response, a lease ends in a session or a DeviceError, and leaves no session that it could name."""

import asyncio
import re
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from random import Random
from typing import Final

import httpx
import pytest
from hypothesis import settings

from pytest_device.errors import DeviceError
from pytest_device.events import Event, Note, detail_of, session_id_of
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.lease import lease
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.partial import url_in
from pytest_device.sessions.replies import MAX_REPLY_BYTES, read_session
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import REQUESTABLE_SESSION_TYPES, TERMINAL
from tests.contract.document import example_config, example_session
from tests.fakes.local_service import APP_ID, BASE_URL, TOKEN, InProcessService
from tests.fakes.network import operation_of
from tests.fuzz.mutations import Reply, dumped, mutated
from tests.sessions.references import ref_of

REPLIES: Final = min(15 * settings().max_examples, 30_000)
BLOCKS: Final = 20
"""The replies of one test: enough of them to share the work among processes."""

Spoil = Callable[[str, Reply], Reply]
"""The mutated response to an operation."""


class DisturbedService:
    """The local service in this process, whose replies a test mutates; clients lease one session after the other."""

    def __init__(
        self, service: InProcessService, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.service = service
        self._app = httpx.ASGITransport(service.app)
        self._loop = loop

    def answer(self, request: httpx.Request) -> Reply:
        """Let the service answer."""
        reply = self._loop.run_until_complete(self._app.handle_async_request(request))
        return Reply(
            reply.status_code,
            self._loop.run_until_complete(reply.aread()),
            dict(reply.headers),
        )

    def lease(self, request: SessionRequest, spoil: Spoil) -> "Outcome":
        outcome = Outcome()

        def handle(sent: httpx.Request) -> httpx.Response:
            operation = operation_of(sent)
            reply = spoil(operation, self.answer(sent))
            if operation == "create":
                outcome.created.append(reply)
            return httpx.Response(
                reply.status, headers=raw(reply.headers), stream=Stream(reply)
            )

        before = {session.id for session in self.service.sessions}
        client = DeviceClient(
            BASE_URL, TOKEN, transport=httpx.MockTransport(handle), sleep=self.pause
        )
        try:
            with (
                client,
                lease(
                    client,
                    request,
                    policy=WaitPolicy(timeout_seconds=30),
                    clock=self.service.clock,
                    sleep=self.pause,
                    on_event=outcome.events.append,
                ) as session,
            ):
                outcome.session = session
        except DeviceError as error:
            outcome.error = error
        outcome.left = {
            session.id: session.status in TERMINAL
            for session in self.service.sessions
            if session.id not in before
        }
        return outcome

    def pause(self, seconds: float) -> None:
        assert seconds >= 0
        self.service.clock.sleep(seconds)


class Outcome:
    """How a lease ended."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.error: DeviceError | None = None
        self.events: list[Event] = []
        self.created: list[Reply] = []
        self.left: dict[str, bool] = {}
        """The sessions that were created, and whether each has ended."""

    def reported(self) -> Iterator[str]:
        for event in self.events:
            yield from (detail_of(event), session_id_of(event))
            if not isinstance(event, Note):
                yield ref_of(event).url
        if self.error:
            yield from (
                str(self.error),
                repr(self.error),
                *getattr(self.error, "__notes__", ()),
            )
        if self.session:
            yield from (str(self.session), repr(self.session.remote_config))


class Stream(httpx.SyncByteStream):
    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._reply.arriving():
            match chunk:
                case bytes():
                    yield chunk
                case httpx.HTTPError():
                    raise chunk


def raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


@pytest.fixture
def disturbed() -> Iterator[DisturbedService]:
    fake = InProcessService(now=1_800_000_000.0, boot_seconds=0, testing=False)
    with asyncio.Runner() as runner, closing(fake) as service:
        yield DisturbedService(service, runner.get_loop())


def request_of(random: Random) -> SessionRequest:
    kind = random.choice(REQUESTABLE_SESSION_TYPES)
    return SessionRequest.from_arguments(
        app_id=APP_ID, platform="ios", type=kind, name="fuzz"
    )


def spoiler(random: Random) -> Spoil:
    """Mutate the first response to an operation, or all of them."""
    target, always, done = (
        random.choice(("create", "get", "stop")),
        random.random() < 0.3,
        list[bool](),
    )

    def spoil(operation: str, reply: Reply) -> Reply:
        if operation != target or (done and not always):
            return reply
        done.append(True)
        return mutated(reply, random)

    return spoil


def names_it(reply: Reply, session_id: str) -> bool:
    """Return whether a response, as far as it arrives, names this session and no other in a readable form.

    A refusal or redirect is a response about a session only if it has the form of one.
    """
    if (
        reply.headers.get("Content-Encoding", "identity") != "identity"
        or len(reply.body) > MAX_REPLY_BYTES
    ):
        return False  # or an answer that a proxy has packed, which has tests of its own
    if reply.chunks and any(
        isinstance(chunk, httpx.HTTPError) for chunk in reply.chunks
    ):
        return False
    if reply.status in range(300, 600) and not url_in(reply.body):
        return False
    ids = set(
        re.findall(r'"id"\s*:\s*("[^"]*"|[^",}\s]*)', reply.body.decode("latin-1"))
    )
    return ids == {f'"{session_id}"'}


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_mutated_reply_ends_in_a_session_or_a_device_error_and_no_session_is_left(
    disturbed: DisturbedService, block: int
) -> None:
    for number in range(block, REPLIES, BLOCKS):
        random = Random(number)
        outcome = disturbed.lease(request_of(random), spoiler(random))

        ((session_id, has_ended),) = outcome.left.items()
        assert has_ended or outcome.error, number
        assert has_ended or not names_it(outcome.created[0], session_id), number
        assert all(
            len(text) < 6000 and is_plain(text) for text in outcome.reported()
        ), number
        assert not any(
            f"-{session_id}" in "".join(text.split()) for text in outcome.reported()
        ), number


@pytest.mark.parametrize(
    "status",
    [
        *(200, 400, 500),
        # Another success, and other refusals, with the same text.
        *(
            pytest.param(status, marks=pytest.mark.nightly)
            for status in (204, 301, 404)
        ),
    ],
)
def test_no_error_about_a_mutated_reply_shows_connection_details(status: int) -> None:
    config = example_config("agent-device") or {}
    session = {"remoteConfig": config, **example_session()} | {"remoteConfig": config}
    for number in range(1000):
        reply = mutated(Reply(status, dumped({"data": session})), Random(number))
        try:
            read_session("get", reply.status, reply.body)
        except DeviceError as error:
            shown = "".join(str(error).split())
            assert config["agentDeviceRemoteSessionToken"] not in shown, number


def is_plain(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def filled(start: bytes, filling: bytes, end: bytes) -> bytes:
    """Return a body as large as one may be, which is nothing but its filling."""
    return start + filling * ((MAX_REPLY_BYTES - 100) // len(filling)) + end


HEAVY: Final[dict[str, bytes]] = {
    "lists": filled(b'{"data":[', b"[],", b"0]}"),
    "objects": filled(b'{"data":[', b'{"a":0},', b"0]}"),
    "members": b'{"data":{'
    + b",".join(b'"%d":0' % number for number in range(90_000))
    + b"}}",
    "numbers": filled(b'{"data":[', b"1.5,", b"0]}"),
    "deep": filled(b'{"data":', b"[", b""),
    "messages": filled(b'{"errors":[', b'{"message":"a"},', b"0]}"),
    "messages-deep-inside": filled(
        b'{"message":' + b"[" * 900, b'"a",', b"0" + b"]" * 900 + b"}"
    ),
    "escapes": filled(b'{"data":"', b"\\u00e9", b'"}'),
    "blanks": filled(b"", b" ", b""),
    "ids": filled(b"", b'"id":', b""),
    "tags": filled(b"<", b"<script ", b""),
    "endless": b"x" * 50 * MAX_REPLY_BYTES,
}


SEARCHED_FOR_MESSAGES: Final = {"objects", "messages", "messages-deep-inside"}
"""Bodies that are the most work as a response to a failed call."""


def in_the_gate(name: str) -> int:
    return 500 if name in SEARCHED_FOR_MESSAGES else 200


def heavy_replies() -> list[object]:
    """Return each body with both statuses; the gate has each with one of them."""
    return [
        pytest.param(
            body,
            status,
            id=f"{name}-{status}",
            marks=[] if status == in_the_gate(name) else [pytest.mark.nightly],
        )
        for name, body in HEAVY.items()
        for status in (200, 500)
    ]


@pytest.mark.parametrize(("body", "status"), heavy_replies())
def test_the_heaviest_replies_take_a_bounded_amount_of_memory(
    disturbed: DisturbedService, body: bytes, status: int
) -> None:
    chunks = tuple(
        body[start : start + 65_536] for start in range(0, len(body), 65_536)
    )

    def spoil(operation: str, reply: Reply) -> Reply:
        return Reply(status, body, chunks=chunks) if operation == "create" else reply

    tracemalloc.start()
    try:
        outcome = disturbed.lease(request_of(Random(0)), spoil)
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert outcome.error
    assert most < 64 * MAX_REPLY_BYTES
