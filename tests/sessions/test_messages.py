"""Messages between run and reaper arrive intact or are refused."""

import json
from typing import get_args

import pytest

from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.reaper.messages import (
    Answered,
    Call,
    Claim,
    Create,
    Decoder,
    Delayed,
    End,
    Endpoint,
    GaveUp,
    KeepWarm,
    Kept,
    LedgerFailed,
    Message,
    Missing,
    NoReply,
    Ready,
    Register,
    Reply,
    Report,
    Request,
    Returned,
    Start,
    Stop,
    Stopped,
    encode,
)
from pytest_device.wire import MessageError

ENTRY = Entry(
    "0" * 32,
    "main",
    "https://devices.example",
    "ios argent",
    "a\ntest",
    "2026-01-01T00:00:00+00:00",
    35,
)
BODY = bytes(range(256))
MESSAGES: list[Message] = [
    Start(
        Endpoint("https://devices.example", "s3cret", cafile="/a"),
        None,
        (1, 2),
        True,
        None,
    ),
    Start(Endpoint("https://devices.example", "s3cret"), "/ledger", (), False, 60.0),
    Create(ENTRY, json.dumps({"type": "Stop", "intent": "é"})),
    Register(ENTRY),
    Stop("1"),
    KeepWarm(ENTRY, 0.1),
    Claim(ENTRY, "/ledger"),
    End(),
    Ready(),
    LedgerFailed("no space"),
    Answered("1", Reply(200, BODY, 1.5), "id", "https://devices.example/1"),
    Answered("1", NoReply("reset", sent=True, body=BODY)),
    Stopped("1", Reply(200, BODY)),
    Missing("1", Reply(404, b"")),
    Delayed("1", NoReply("reset", sent=False)),
    GaveUp("1", Reply(503, b"", 60.0)),
    Kept("1"),
    Call(1, "POST", "/v2/x", None),
    Returned(1, Reply(200, BODY)),
]


@pytest.mark.parametrize(
    "message", MESSAGES, ids=lambda message: type(message).__name__
)
def test_a_message_arrives_intact_however_its_line_is_split(message: Message) -> None:
    line, decoder = encode(message), Decoder[Message](Message)

    arrived = [
        one for at in range(len(line)) for one in decoder.feed(line[at : at + 1])
    ]

    assert (line.count(b"\n"), arrived) == (1, [message])
    assert [type(one) for one in arrived] == [type(message)]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"intent": "1"}',
        b'{"type": "Restart"}',
        b'{"type": "Stop"}',
        b'{"type": "Stop", "intent": "1", "now": true}',
        b'{"type": "Stop", "intent": 1}',
        b'{"type": "Stop", "intent": {"type": "End"}}',
        b'{"type": "KeepWarm", "entry": {"type": "Stop", "intent": "1"}, "seconds": 1.0}',
        b'{"type": "Returned", "number": 1, "answer": {"type": "Stop", "intent": "1"}}',
    ],
)
def test_an_invalid_message_is_refused(line: bytes) -> None:
    with pytest.raises(MessageError):
        Decoder[Message](Message).feed(line + b"\n")


@pytest.mark.parametrize(
    ("message", "kinds"), [(Ready(), Request), (Stop("1"), Report), (End(), Start)]
)
def test_an_unexpected_message_is_refused_by_name(
    message: Message, kinds: object
) -> None:
    with pytest.raises(
        MessageError, match=f"type {type(message).__name__} is not expected here"
    ):
        Decoder[Message](kinds).feed(encode(message))


def test_a_refusal_shows_no_value() -> None:
    line = encode(MESSAGES[0]).replace(b'"s3cret"', b'["s3cret"]')

    with pytest.raises(MessageError) as refused:
        Decoder[Start](Start).feed(line)

    assert "token" in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_no_two_messages_have_the_same_name() -> None:
    kinds = [*get_args(Message), Entry, Reply, NoReply]

    assert len({kind.__name__ for kind in kinds}) == len(kinds)
