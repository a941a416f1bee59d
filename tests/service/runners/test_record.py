import itertools

import pytest

from pytest_device.service.runners.base import Record


@pytest.fixture
def record() -> Record:
    seconds = itertools.count(100)
    return Record("one", {}, clock=lambda: next(seconds))


def test_a_server_is_in_use_while_it_carries_out_a_command(record: Record) -> None:
    record.begin_request()
    assert record.last_activity == 101
    assert record.last_activity == 102
    record.end_request()
    assert record.last_activity == 103
    assert record.last_activity == 103


def test_an_answer_without_a_question_does_not_outweigh_the_next_command(record: Record) -> None:
    record.end_request()
    record.begin_request()
    assert [record.last_activity, record.last_activity] == [102, 103]
