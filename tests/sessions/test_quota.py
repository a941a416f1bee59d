"""The session limit: slots are taken all or none, waits are reported, and dead processes free their slots."""

import dis
import inspect
import os
import stat
import sys
import threading
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from pytest_device import ConfigError, LeaseTimeoutError
from pytest_device.sessions.quota import slots_directory
from tests.fakes.clock import FakeClock
from tests.fakes.reporter import RecordingReporter
from tests.sessions.slots import (
    SharedSlots,
    Taken,
    another_process,
    has_taken,
    release,
    slots_at,
)

QUOTA = str(Path(inspect.getfile(slots_directory)).parent)
"""The directory of the traced code."""
CALLS = ("CALL", "RESUME", "BEFORE_WITH", "WITH_EXCEPT_START")
"""How the names of the instructions begin that call something, or start a function."""


@pytest.fixture
def slots_of(tmp_path: Path) -> SharedSlots:
    """Provide two slots as another run sees them."""
    return SharedSlots(lambda: tmp_path / "slots")


def test_slots_up_to_the_limit_are_taken_without_waiting(slots_of: SharedSlots) -> None:
    clock = FakeClock()

    taken = slots_of(3, clock=clock).acquire(1) + slots_of(3, clock=clock).acquire(2)

    assert (len(taken), clock()) == (3, 0)
    release(taken)


def test_zero_sessions_need_no_slot(slots_of: SharedSlots) -> None:
    held = slots_of().acquire(2)

    assert slots_of().acquire(0) == []
    release(held)


def test_beyond_the_limit_a_claim_waits_for_a_release(slots_of: SharedSlots) -> None:
    first, second = slots_of().acquire(2)
    pauses: list[float] = []

    def give_one_back_in_the_third_pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            second.release()

    third = slots_of(on_pause=give_one_back_in_the_third_pause).acquire(1)

    assert len(pauses) == 3
    release([first, *third])


def test_the_pauses_are_short_and_random(slots_of: SharedSlots) -> None:
    held, clock = slots_of().acquire(2), FakeClock()

    with pytest.raises(LeaseTimeoutError):
        slots_of(clock=clock, timeout_seconds=10).acquire(1)

    *pauses, last = clock.slept
    # One may end earlier, for the first message.
    assert sum(not 0.03 <= pause <= 0.09 for pause in pauses) <= 1
    assert len(set(pauses)) > len(pauses) / 2
    assert 0 < last <= 0.09
    assert clock() == pytest.approx(10)
    release(held)


def test_dispensable_slots_are_released_before_the_wait(slots_of: SharedSlots) -> None:
    (held, spare), clock = slots_of().acquire(2), FakeClock()
    others = [held, spare]

    def give_one_way() -> bool:
        if len(others) > 1:
            others.pop().release()
            return True
        return False

    taken = slots_of(clock=clock).acquire(1, give_one_way)

    assert (others, clock()) == ([held], 0)
    release([held, *taken])


def test_slots_that_cannot_be_released_are_waited_for(slots_of: SharedSlots) -> None:
    held, clock = slots_of().acquire(2), FakeClock()

    with pytest.raises(LeaseTimeoutError):
        slots_of(clock=clock, timeout_seconds=10).acquire(1, lambda: False)

    assert clock() == pytest.approx(10)
    release(held)


def test_a_claim_on_two_slots_is_not_overtaken_by_a_claim_on_one(
    slots_of: SharedSlots,
) -> None:
    free, held = slots_of().acquire(2)
    free.release()
    seen: list[bool] = []

    def look_and_give_back(_seconds: float) -> None:
        seen.append(slots_of.are_free(1))
        held.release()

    both = slots_of(on_pause=look_and_give_back).acquire(2)

    assert seen == [False]
    assert len(both) == 2
    release(both)


@pytest.mark.timing
def test_many_claims_on_several_slots_are_all_served_within_the_limit(
    slots_of: SharedSlots,
) -> None:
    held, most_held, problems = 0, 0, list[str]()
    counting = threading.Lock()

    def take_again_and_again(count: int) -> None:
        nonlocal held, most_held
        slots = slots_of.in_real_time(3, pause_seconds=0.001)
        for _ in range(20):
            try:
                taken = slots.acquire(count)
            except (ConfigError, LeaseTimeoutError) as error:
                problems.append(str(error))
                return
            with counting:
                held += count
                most_held = max(held, most_held)
            with counting:
                held -= count
            release(taken)

    threads = [
        threading.Thread(target=take_again_and_again, args=(count,))
        for count in (1, 2, 2, 3, 3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert problems == []
    assert (held, most_held) == (0, 3)


def test_a_timeout_names_the_limit_the_holders_and_the_fix(
    slots_of: SharedSlots,
) -> None:
    held = slots_of(3, "run a gw0").acquire(2) + slots_of(3, "run b").acquire(1)

    with pytest.raises(LeaseTimeoutError) as caught:
        slots_of(3, timeout_seconds=90).acquire(2)

    pid = os.getpid()
    assert str(caught.value) == (
        "waited 90 s for 2 of 3 sessions (--device-max-sessions); "
        f"in use: 2 by run a gw0 (process {pid}), 1 by run b (process {pid}). "
        "Increase --device-max-sessions or --device-wait-timeout-seconds"
    )
    release(held)


def test_each_of_several_holders_is_named(slots_of: SharedSlots) -> None:
    held = slots_of(holder="run a").acquire(1) + slots_of(holder="run b").acquire(1)

    with pytest.raises(
        LeaseTimeoutError,
        match=r"in use: 1 by run a \(process \d+\), 1 by run b \(process \d+\)\.",
    ):
        slots_of().acquire(1)
    release(held)


def test_a_slot_names_its_current_holder_only(slots_of: SharedSlots) -> None:
    release(slots_of(1, "a run with a long name").acquire(1))
    held = slots_of(1, "run b").acquire(1)

    with pytest.raises(
        LeaseTimeoutError, match=r"in use: 1 by run b \(process \d+\)\."
    ):
        slots_of(1).acquire(1)
    release(held)


def test_a_run_that_released_its_slots_leaves_nothing(
    slots_of: SharedSlots, tmp_path: Path
) -> None:
    release(slots_of().acquire(2))

    assert sorted(path.name for path in (tmp_path / "slots").iterdir()) == [
        "0.lock",
        "1.lock",
        "queue.lock",
    ]


def test_a_holder_with_an_unreadable_name_still_counts(
    slots_of: SharedSlots, tmp_path: Path
) -> None:
    held = slots_of(1).acquire(1)
    (tmp_path / "slots" / "0.txt").unlink()

    with pytest.raises(LeaseTimeoutError, match="in use: 1 by an unknown process"):
        slots_of(1, timeout_seconds=1).acquire(1)
    release(held)


def test_a_wait_is_reported_after_five_seconds_and_then_each_half_minute(
    slots_of: SharedSlots,
) -> None:
    held, clock = slots_of(1, "run a").acquire(1), FakeClock()
    seconds: list[float] = []
    reporter = RecordingReporter(on_progress=lambda _text: seconds.append(clock()))

    with pytest.raises(LeaseTimeoutError):
        slots_of(1, clock=clock, reporter=reporter, timeout_seconds=70).acquire(1)

    assert seconds == pytest.approx([5, 35, 65], abs=1)
    assert reporter.lines[0] == (
        "waited 5 s for 1 of 1 sessions (--device-max-sessions); "
        f"in use: 1 by run a (process {os.getpid()})"
    )
    release(held)


def test_a_short_wait_is_not_reported(slots_of: SharedSlots) -> None:
    held, reporter = slots_of().acquire(2), RecordingReporter()

    with pytest.raises(LeaseTimeoutError):
        slots_of(reporter=reporter, timeout_seconds=4.9).acquire(1)

    assert reporter.lines == []
    release(held)


def test_more_slots_than_the_limit_are_refused_immediately(
    slots_of: SharedSlots,
) -> None:
    clock = FakeClock()

    with pytest.raises(
        ConfigError,
        match=r"3 sessions are needed at once, but .* allows 2: increase it",
    ):
        slots_of(clock=clock).acquire(3)

    assert clock() == 0


def test_releasing_a_slot_twice_does_not_free_another(slots_of: SharedSlots) -> None:
    (slot,) = slots_of(1).acquire(1)
    slot.release()
    held = slots_of(1, "the next run").acquire(1)

    slot.release()

    with pytest.raises(LeaseTimeoutError, match="in use: 1 by the next run"):
        slots_of(1).acquire(1)
    release(held)


def test_another_thread_can_release_a_slot(slots_of: SharedSlots) -> None:
    slots = slots_of().acquire(2)

    thread = threading.Thread(target=release, args=(slots,))
    thread.start()
    thread.join(10)

    assert slots_of.are_free(2)


def test_a_killed_process_frees_its_slots(
    slots_of: SharedSlots, tmp_path: Path
) -> None:
    with another_process(tmp_path / "slots", 2, 2) as process:
        assert has_taken(process)
        with pytest.raises(
            LeaseTimeoutError,
            match=rf"in use: 2 by run other \(process {process.pid}\)",
        ):
            slots_of().acquire(2)
        assert not slots_of.are_free(1)

        process.kill()
        process.wait()

        assert slots_of.are_free(2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_child_neither_frees_its_parents_slots_nor_keeps_them(
    slots_of: SharedSlots, tmp_path: Path
) -> None:
    with another_process(tmp_path / "slots", 2, 2, fork=True) as parent:
        assert has_taken(parent)
        assert not slots_of.are_free(1)
        assert (
            tmp_path / "slots" / "0.txt"
        ).read_text() == f"run other (process {parent.pid})"

        parent.kill()
        parent.wait()

        assert slots_of.are_free(2)  # the child lives on until its input ends


def test_an_interrupted_wait_leaves_no_slot_taken(slots_of: SharedSlots) -> None:
    (held,) = slots_of().acquire(1)

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slots_of(on_pause=interrupt).acquire(2)

    assert slots_of.are_free(1)
    held.release()
    assert slots_of.are_free(2)


@pytest.mark.timing
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("held", [0, 1])
def test_an_interrupt_at_any_point_leaves_no_slot_taken(
    slots_of: SharedSlots, held: int, step: int
) -> None:
    """In the gate at each seventh point: each takes as long as two acquisitions."""
    others = slots_of().acquire(2)
    release(others[: 2 - held])  # the first, so that it is taken and given back again
    point = 0
    while interrupt := interrupted(
        lambda: slots_of(timeout_seconds=0).acquire(2), at=point
    ):
        assert slots_of.are_free(2 - held), f"not after the interrupt at point {point}"
        del interrupt  # only now, since what it refers to is freed with it
        point += step

    assert point > 100
    release(others)


def interrupted(act: Callable[[], Taken], at: int) -> KeyboardInterrupt | None:
    """Interrupt at the n-th point of the package; return None if there are fewer."""
    left = at

    def enter(frame: FrameType, _event: str, _arg: object) -> Any:
        if not frame.f_code.co_filename.startswith(QUOTA):
            return None
        points = points_of(frame.f_code)

        def trace(frame: FrameType, event: str, _arg: object) -> Any:
            nonlocal left
            frame.f_trace_opcodes = True
            left -= event == "opcode" and frame.f_lasti in points
            if left < 0:
                raise KeyboardInterrupt
            return trace

        return trace(frame, "call", None)

    before, here = sys.gettrace(), inspect.currentframe()
    assert here is not None
    here.f_trace_opcodes = (
        True  # else the first trace of a process has none of them on Python 3.12.1
    )
    sys.settrace(enter)
    try:
        taken = act()
    except LeaseTimeoutError:
        return None
    except KeyboardInterrupt as interrupt:
        return interrupt
    finally:
        sys.settrace(before)
    release(taken)
    return None


@cache
def points_of(code: CodeType) -> frozenset[int]:
    """Return the offsets at which an interrupt arrives: before and after calls, at starts, at the jumps of loops.

    Python handles signals only there. After the last call of ``acquire`` only its return is left: what is interrupted
    then is its caller.
    """
    points = set[int]()
    for step, following in pairwise(dis.get_instructions(code)):
        is_over = code.co_name == "acquire" and following.opname.startswith("RETURN")
        if step.opname.startswith(CALLS):
            points.update([step.offset] if is_over else [step.offset, following.offset])
        elif "JUMP_BACKWARD" in step.opname:
            points.add(step.argval)
    return frozenset(points)


def test_runs_with_different_limits_never_exceed_the_highest(
    slots_of: SharedSlots,
) -> None:
    (first,), second = slots_of(1, "small").acquire(1), slots_of(3, "great").acquire(2)

    with pytest.raises(LeaseTimeoutError, match="in use: 1 by small"):
        slots_of(1).acquire(1)
    with pytest.raises(LeaseTimeoutError, match=r"in use: 1 by small .*, 2 by great"):
        slots_of(3).acquire(1)

    first.release()
    release([*slots_of(1).acquire(1), *second])


def test_each_service_has_its_own_slots_whose_name_does_not_reveal_its_url(
    tmp_path: Path,
) -> None:
    one, same, other = (
        slots_directory(tmp_path, url)
        for url in (
            "https://devices.example/api",
            "https://Devices.example/api/",
            "https://other.example/api",
        )
    )

    assert one == same != other
    assert one.parent == tmp_path
    assert "example" not in one.name


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_only_this_user_can_read_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "state" / "slots"
    before = os.umask(0)
    try:
        held = slots_at(directory, 1).acquire(1)
    finally:
        os.umask(before)

    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in [*tmp_path.rglob("*")]
    }
    assert modes == {
        "state": 0o700,
        "slots": 0o700,
        "0.lock": 0o600,
        "0.txt": 0o600,
        "queue.lock": 0o600,
    }
    release(held)


def test_an_unusable_slots_directory_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    slots = slots_at(tmp_path / "state" / "slots", 1)

    with pytest.raises(
        ConfigError,
        match=r"--device-max-sessions cannot be enforced: .*state.*--device-state-dir",
    ):
        slots.acquire(1)


def test_a_run_in_another_process_continues_when_a_slot_is_released(
    slots_of: SharedSlots, tmp_path: Path
) -> None:
    held = slots_of().acquire(2)
    with another_process(tmp_path / "slots", 2, 1) as process:
        held.pop().release()

        assert has_taken(process)
    release(held)
