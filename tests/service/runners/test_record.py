"""The use of a controller, as its session's record counts it; ``test_gateway`` shows which requests count."""

import itertools

import pytest

from pytest_device.service.runners.base import Record


@pytest.fixture
def record() -> Record:
    seconds = itertools.count(100)
    return Record("one", {}, clock=lambda: next(seconds))


def test_a_server_is_in_use_during_a_command(record: Record) -> None:
    record.begin_request()
    assert record.last_activity == 101
    assert record.last_activity == 102
    record.end_request()
    assert record.last_activity == 103
    assert record.last_activity == 103


def test_an_unmatched_response_does_not_cancel_the_next_command(record: Record) -> None:
    record.end_request()
    record.begin_request()
    assert [record.last_activity, record.last_activity] == [102, 103]
