"""Concurrent calls: all of them end, whatever one of them raises or interrupts."""

import signal
import threading

import pytest

from pytest_device.sessions.concurrently import run_concurrently

PATIENCE_SECONDS = 60.0


class RefusedError(Exception):
    """What a call raises."""


def refused() -> None:
    raise RefusedError


def test_several_calls_run_concurrently() -> None:
    meeting = threading.Barrier(3)

    run_concurrently([lambda: meeting.wait(PATIENCE_SECONDS)] * 3)

    assert not meeting.broken


def test_a_single_call_runs_in_the_callers_thread_and_none_is_fine() -> None:
    threads: list[threading.Thread] = []

    run_concurrently([lambda: threads.append(threading.current_thread())])
    run_concurrently([])

    assert threads == [threading.current_thread()]


def test_an_exception_in_one_call_does_not_interrupt_the_others() -> None:
    ended: list[int] = []

    with pytest.raises(RefusedError):
        run_concurrently([lambda: ended.append(1), refused, lambda: ended.append(3)])

    assert sorted(ended) == [1, 3]


def test_without_another_thread_the_calls_run_one_after_the_other() -> None:
    ended: list[int] = []
    # No address space has room for such a stack: the system refuses the thread.
    before = threading.stack_size(1 << 46)
    try:
        run_concurrently([lambda: ended.append(1)] * 3)
    finally:
        threading.stack_size(before)

    assert ended == [1, 1, 1]


def test_an_interrupt_is_raised_after_all_calls_have_ended() -> None:
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


def test_an_interrupt_takes_precedence_over_other_errors() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_concurrently([refused, interrupted, refused])
