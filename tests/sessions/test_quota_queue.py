"""First come, first served: the same for slots in a directory and for slots on a Redis server."""

import threading
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import pytest
import redis

from pytest_device import LeaseTimeoutError
from tests.sessions.redis_server import redis_server
from tests.sessions.slots import (
    SharedSlots,
    Taken,
    another_process,
    has_taken,
    let_expire,
    release,
)
from tests.sessions.takes_slots import place_at
from tests.waiting import eventually

SLOT_SECONDS = 30.0


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


@pytest.fixture(params=["files", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the slots are: a directory, or a server."""
    if request.param == "files":
        return str(tmp_path / "slots")
    return str(request.getfixturevalue("redis_url"))


@pytest.fixture
def slots_of(address: str, tmp_path: Path) -> SharedSlots:
    return SharedSlots(lambda: place_at(address, str(tmp_path), SLOT_SECONDS))


def pass_time_of_the_dead(address: str, key: Path) -> None:
    """Let the time pass after which a server forgets a dead process; with a directory, it is forgotten at once."""
    if address.startswith("redis:"):
        with redis.Redis.from_url(address, decode_responses=True) as client:
            let_expire(client, str(key), SLOT_SECONDS)


def in_turn(*acts: Callable[[], object]) -> Callable[[float], None]:
    """Return a pause that does one of these each time."""
    left = iter(acts)

    def pause(_seconds: float) -> None:
        next(left, lambda: None)()

    return pause


def test_waiting_claims_are_served_in_order(slots_of: SharedSlots) -> None:
    (held,), served = slots_of(1).acquire(1), list[int]()

    def has_next_position(position: int) -> bool:
        return slots_of.queue_position(1) == position

    def wait(number: int) -> None:
        taken = slots_of.in_real_time(1).acquire(1)
        served.append(number)
        release(taken)

    threads: list[threading.Thread] = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        assert eventually(partial(has_next_position, number + 2))
    held.release()
    for thread in threads:
        thread.join(60)

    assert served == [0, 1, 2, 3, 4]


def test_a_claim_on_two_slots_does_not_starve(slots_of: SharedSlots) -> None:
    held, passed = slots_of(2).acquire(2), list[object]()

    def give_one_back_and_take_it_again() -> None:
        held.pop().release()
        passed.append(slots_of(2).try_acquire(1))

    both = slots_of(
        2,
        on_pause=in_turn(
            give_one_back_and_take_it_again, give_one_back_and_take_it_again
        ),
    ).acquire(2)

    assert passed == [None, None]
    assert len(both) == 2
    release(both)


def test_insufficient_slots_are_not_counted_twice(slots_of: SharedSlots) -> None:
    held, looks = slots_of(2).acquire(1), list[float]()

    def wait(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:  # one of two was free at each look
            release(held)

    both = slots_of(2, on_pause=wait).acquire(2)

    assert len(looks) == 3
    assert [slot.is_held for slot in both] == [True, True]
    assert slots_of(2).try_acquire(1) is None
    release(both)


@pytest.mark.parametrize("address", ["files"], indirect=True)
def test_claims_check_less_often_the_more_claims_are_before_them(
    slots_of: SharedSlots,
) -> None:
    held, pauses = slots_of(1).acquire(1), dict[int, list[float]]()

    def wait_behind(others: int) -> Callable[[float], None]:
        def wait(seconds: float) -> None:
            pauses.setdefault(others, []).append(seconds)
            if len(pauses[others]) == 1 and others < 8:
                with pytest.raises(LeaseTimeoutError):
                    slots_of(
                        1, on_pause=wait_behind(others + 1), timeout_seconds=3
                    ).acquire(1)
                if not others:
                    release(held)

        return wait

    release(slots_of(1, on_pause=wait_behind(0)).acquire(1))

    # The first one follows an attempt without a ticket.
    soon, later = pauses[1][1:-1], pauses[8][1:-1]
    assert all(0.03 <= pause <= 0.09 for pause in soon)
    assert all(0.4 <= pause <= 1.2 for pause in later)


def test_a_try_takes_slots_immediately_or_not_at_all(slots_of: SharedSlots) -> None:
    first = slots_of(2).try_acquire(1)
    assert first is not None

    assert slots_of(2).try_acquire(2) is None
    second = slots_of(2).try_acquire(1)

    assert second is not None
    assert slots_of(2).try_acquire(1) is None
    assert slots_of(2).try_acquire(3) is None
    release([*first, *second])


def test_a_process_with_a_slot_in_use_is_served_before_those_without(
    slots_of: SharedSlots,
) -> None:
    other, process = slots_of(2).acquire(1), slots_of(2)
    in_use, more = process.acquire(1), Taken()
    acts = (
        lambda: release(other),
        # Else both would wait until their time is over.
        lambda: more.extend(process.acquire(1)),
        lambda: release([*in_use, *more]),
    )

    both = slots_of(2, on_pause=in_turn(*acts)).acquire(2)

    assert (len(more), len(both)) == (1, 2)
    release(both)


def test_a_process_with_a_slot_in_use_is_not_overtaken(slots_of: SharedSlots) -> None:
    others, refused = slots_of(3).acquire(2), list[LeaseTimeoutError]()

    def free_one_that_another_wants() -> None:
        others.pop().release()
        with pytest.raises(LeaseTimeoutError) as caught:
            slots_of(3).acquire(1)
        refused.append(caught.value)
        release(others)

    process = slots_of(3, on_pause=in_turn(free_one_that_another_wants))
    in_use = process.acquire(1)
    more = process.acquire(2)

    assert len(refused) == 1
    release([*in_use, *more])


def test_idle_slots_are_released_only_for_claims_served_earlier(
    slots_of: SharedSlots,
) -> None:
    taken = Taken()
    first = threading.Thread(
        target=lambda: taken.extend(slots_of.in_real_time(3).acquire(1))
    )

    def until_the_first_is_served(_seconds: float) -> None:
        assert eventually(lambda: bool(taken))

    process = slots_of(3, on_pause=until_the_first_is_served)
    idle = process.acquire(3)
    first.start()
    assert eventually(lambda: slots_of.queue_position(3) == 2)

    def give_one_way() -> bool:
        idle.pop().release()
        return True

    mine = process.acquire(1, give_one_way)

    first.join(60)
    assert (len(idle), len(taken), len(mine)) == (1, 1, 1)
    release([*idle, *taken, *mine])


def test_a_claim_with_a_lower_limit_does_not_block_one_with_a_higher_limit(
    slots_of: SharedSlots,
) -> None:
    held, more = slots_of(1).acquire(1), list[object]()

    def take_what_is_not_waited_for() -> None:
        taken = slots_of(3).try_acquire(2)
        more.append(taken)
        release(taken or ())

    one = slots_of(
        1, on_pause=in_turn(take_what_is_not_waited_for, lambda: release(held))
    ).acquire(1)

    assert more != [None]
    release(one)


def test_a_killed_waiter_loses_its_place(
    slots_of: SharedSlots,
    address: str,
    tmp_path: Path,
) -> None:
    (held,) = slots_of(1).acquire(1)
    with another_process(
        address, 1, key=str(tmp_path), slot_seconds=SLOT_SECONDS
    ) as process:
        assert eventually(lambda: slots_of.queue_position(1) == 2)
        process.kill()
        process.wait()
        held.release()
        pass_time_of_the_dead(address, tmp_path)

        release(slots_of.in_real_time(1).acquire(1))


def test_a_killed_holder_releases_its_slots(
    slots_of: SharedSlots, address: str, tmp_path: Path
) -> None:
    with another_process(
        address, 1, key=str(tmp_path), slot_seconds=SLOT_SECONDS
    ) as process:
        assert has_taken(process)
        assert slots_of(1).try_acquire(1) is None
        process.kill()
        process.wait()
        pass_time_of_the_dead(address, tmp_path)

        release(slots_of.in_real_time(1).acquire(1))


@pytest.mark.parametrize("seconds", [0.5, 60])
def test_interrupts_and_timeouts_leave_no_queue_place(
    slots_of: SharedSlots, seconds: float
) -> None:
    held = slots_of(1).acquire(1)

    def interrupt() -> None:
        assert slots_of.queue_position(1) == 2
        if seconds > 1:
            raise KeyboardInterrupt

    with pytest.raises((LeaseTimeoutError, KeyboardInterrupt)) as caught:
        slots_of(1, on_pause=in_turn(interrupt), timeout_seconds=seconds).acquire(1)

    assert slots_of.queue_position(1) == 1
    del caught  # only now, since what it refers to is freed with it
    release(held)
