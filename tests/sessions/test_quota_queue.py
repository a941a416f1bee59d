"""The queue for slots: the same for slots in a directory and for slots on a Redis server."""

import threading
from collections.abc import Callable, Generator
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
            let_expire(client, str(key))


def in_turn(*acts: Callable[[], object]) -> Callable[[float], None]:
    """Return a pause that does one of these each time."""
    left = iter(acts)

    def pause(_seconds: float) -> None:
        next(left, lambda: None)()

    return pause


def test_all_waiting_claims_are_served(slots_of: SharedSlots) -> None:
    (held,), served = slots_of(1).acquire(1), list[int]()

    def wait(number: int) -> None:
        taken = slots_of.in_real_time(1).acquire(1)
        served.append(number)
        release(taken)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    assert eventually(lambda: slots_of.is_waited_for(1))
    held.release()
    for thread in threads:
        thread.join(60)

    assert sorted(served) == [0, 1, 2, 3, 4]


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
    assert eventually(lambda: slots_of.is_waited_for(3))

    def give_one_way() -> bool:
        idle.pop().release()
        return True

    mine = process.acquire(1, give_one_way)

    first.join(60)
    assert (len(idle), len(taken), len(mine)) == (1, 1, 1)
    release([*idle, *taken, *mine])


def test_a_killed_waiter_loses_its_place(
    slots_of: SharedSlots,
    address: str,
    tmp_path: Path,
) -> None:
    (held,) = slots_of(1).acquire(1)
    with another_process(
        address, 1, key=str(tmp_path), slot_seconds=SLOT_SECONDS
    ) as process:
        assert eventually(lambda: slots_of.is_waited_for(1))
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
        assert slots_of.is_waited_for(1)
        if seconds > 1:
            raise KeyboardInterrupt

    with pytest.raises((LeaseTimeoutError, KeyboardInterrupt)) as caught:
        slots_of(1, on_pause=in_turn(interrupt), timeout_seconds=seconds).acquire(1)

    assert not slots_of.is_waited_for(1)
    del caught  # only now, since what it refers to is freed with it
    release(held)
