"""Calls side by side: all of them end, whatever one of them raises, and whoever interrupts them."""

import signal
import threading

import pytest

from pytest_device.sessions.roster import run_concurrently

PATIENCE_SECONDS = 60.0


class RefusedError(Exception):
    """What a call raises."""


def refused() -> None:
    raise RefusedError


def test_several_calls_are_under_way_at_the_same_time() -> None:
    meeting = threading.Barrier(3)

    run_concurrently([lambda: meeting.wait(PATIENCE_SECONDS)] * 3)

    assert not meeting.broken


def test_one_call_is_made_by_the_caller_and_none_is_fine() -> None:
    threads: list[threading.Thread] = []

    run_concurrently([lambda: threads.append(threading.current_thread())])
    run_concurrently([])

    assert threads == [threading.current_thread()]


def test_what_one_raises_keeps_no_other_from_its_end() -> None:
    ended: list[int] = []

    with pytest.raises(RefusedError):
        run_concurrently([lambda: ended.append(1), refused, lambda: ended.append(3)])

    assert sorted(ended) == [1, 3]


def test_an_interrupt_comes_through_when_all_have_ended() -> None:
    main = threading.main_thread().ident
    assert main is not None
    go, ended = threading.Event(), list[int]()

    def call() -> None:
        go.wait(PATIENCE_SECONDS)
        ended.append(1)

    def interrupt() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        threading.Timer(0.05, go.set).start()
        ended.append(2)

    with pytest.raises(KeyboardInterrupt):
        run_concurrently([call, interrupt, call])

    assert ended.count(1) >= 1  # one may have been struck itself
    assert "pytest-device-stop" not in {thread.name for thread in threading.enumerate()}


def test_an_interrupt_of_a_call_comes_before_other_errors() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_concurrently([refused, interrupted, refused])
