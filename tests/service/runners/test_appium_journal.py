import itertools

import pytest

from pytest_device.service.runners.journal import Journal

STATUS = b"[HTTP] --> GET /status \n[HTTP] <-- GET /status 200 5 ms - 110\n"
COMMAND = b'[HTTP] --> POST /session {"capabilities":{}}\n'
ANSWER = b"[HTTP] <-- POST /session 200 14 ms - 152\n"
BOOT = (
    b"[Appium] Welcome to Appium v3.8.0\n"
    b"[Appium] Appium REST http interface listener started on http://127.0.0.1:48733\n"
    b"[Appium] Available drivers:\n"
)


@pytest.fixture
def journal() -> Journal:
    seconds = itertools.count(100)
    return Journal(clock=lambda: next(seconds))


@pytest.mark.parametrize(
    ("output", "last_command"),
    [
        (b"", None),
        (BOOT, None),
        (STATUS, None),
        (b"[HTTP] --> GET /sessions \n[HTTP] <-- GET /sessions 404 1 ms - 9\n", None),
        (COMMAND + ANSWER, 101),
        (COMMAND + ANSWER + STATUS, 101),
        (b"[5dba1ce5][HTTP] --> GET /session/5dba1ce5-4faa/source \n" + ANSWER, 101),
        (b"[5dba1ce5][FakeDriver@3aea] --> BIDI message #3\n[FakeDriver@3aea] <-- BIDI message #3\n", 101),
        (b'[FakeDriver@3aea] text: "[HTTP] --> POST /session"\n', None),
    ],
)
def test_the_last_command_is_known_and_a_look_at_the_status_is_none(
    output: bytes, last_command: float | None, journal: Journal
) -> None:
    journal.feed(output)
    assert journal.last_command == last_command


def test_a_server_is_in_use_while_it_carries_out_a_command(journal: Journal) -> None:
    journal.feed(COMMAND)
    assert journal.last_command == 101
    assert journal.last_command == 102
    journal.feed(ANSWER)
    assert journal.last_command == 103
    assert journal.last_command == 103


def test_an_answer_without_a_question_does_not_outweigh_the_next_command(journal: Journal) -> None:
    journal.feed(ANSWER + COMMAND)
    assert [journal.last_command, journal.last_command] == [102, 103]


def test_lines_are_read_whole_however_they_arrive(journal: Journal) -> None:
    for byte in BOOT + COMMAND + ANSWER:
        journal.feed(bytes([byte]))
    assert journal.listens
    assert journal.last_command == 101


def test_the_tail_is_bounded(journal: Journal) -> None:
    journal.feed(b"".join(b"line %d\n" % number for number in range(1000)) + b"x" * 10_000_000)
    lines = journal.tail.splitlines()
    assert len(lines) == 20
    assert lines[-2].strip() == "line 999"
    assert len(lines[-1]) < 400


def test_what_a_test_types_is_not_in_the_tail(journal: Journal) -> None:
    journal.feed(b'[1a][HTTP] --> POST /session/1a/element/2/value {"text":"my-password"}\n')
    assert journal.tail.strip() == "[1a][HTTP] --> POST /session/1a/element/2/value"


def test_a_taken_port_is_told_apart(journal: Journal) -> None:
    journal.feed(b"[Appium] Original error: listen EADDRINUSE: address already in use 127.0.0.1:48733\n")
    assert journal.port_taken
    assert not journal.listens
