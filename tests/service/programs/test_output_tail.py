"""The last lines of a program's output, a plain object: programs print neither a byte at a time nor megabytes at will."""

import pytest

from pytest_device.service.programs.output_tail import (
    AppiumOutputTail,
    OutputTail,
    TokenOutputTail,
)


@pytest.fixture
def tail() -> AppiumOutputTail:
    return AppiumOutputTail()


def test_lines_are_read_whole_however_they_arrive(tail: AppiumOutputTail) -> None:
    for byte in b"one\ntwo\n":
        tail.feed(bytes([byte]))
    assert tail.text == "one\ntwo"


def test_the_tail_is_bounded(tail: AppiumOutputTail) -> None:
    tail.feed(
        b"".join(b"line %d\n" % number for number in range(1000)) + b"x" * 10_000_000
    )
    lines = tail.text.splitlines()
    assert len(lines) == 200
    assert lines[-2] == "line 999"
    assert len(lines[-1]) < 400


def test_a_message_ends_with_the_last_few_lines_only() -> None:
    tail = OutputTail()
    tail.feed(b"".join(b"line %d\n" % number for number in range(50)))
    assert tail.tail.splitlines() == [f"    line {number}" for number in range(30, 50)]
    assert len(tail.text.splitlines()) == 50


def test_a_secret_learned_late_is_masked_in_earlier_output() -> None:
    tail = OutputTail()
    tail.feed(b"listening with made-up-token\n")
    tail.hide("made-up-token")
    tail.feed(b"again made-up-token\n")
    assert tail.text == "listening with ***\nagain ***"


def test_lines_with_a_programs_own_token_are_dropped() -> None:
    tail = TokenOutputTail()
    tail.feed(
        b"Connect:\n  argent link argent://0a1b@127.0.0.1:1\n  (or: argent link --token 0a1b)\nlistening\n"
    )
    assert tail.text == "Connect:\nlistening"


def test_text_typed_by_a_test_is_not_in_the_tail(tail: AppiumOutputTail) -> None:
    tail.feed(
        b'[1a][HTTP] --> POST /session/1a/element/2/value {"text":"my-password"}\n'
    )
    assert tail.tail.strip() == "[1a][HTTP] --> POST /session/1a/element/2/value"
