"""First come, first served: the same for slots in a directory and for slots on a Redis server."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from pytest_device import LeaseTimeoutError
from pytest_device.sessions.quota import Slot, Slots
from pytest_device.sessions.quota.redis_store import RedisConfig, RedisStore
from pytest_device.sessions.reporter import SilentReporter
from pytest_device.testing import FakeClock
from tests.sessions.redis_server import redis_server
from tests.waiting import eventually

SLOT_SECONDS = 2.0

TAKES = f"""
import sys
from pathlib import Path
from pytest_device.sessions.quota import Slots
from pytest_device.sessions.reporter import SilentReporter as Silent
address, key, most = sys.argv[1:]
if address.startswith("redis:"):
    from pytest_device.sessions.quota.redis_store import RedisStore, RedisConfig
    seconds = dict(slot_seconds={SLOT_SECONDS}, settle_seconds=0)
    place = RedisStore(RedisConfig(address, "DEVICE_SLOTS_URL", key, Silent(), **seconds))
else:
    place = Path(address)
slots = Slots(place, int(most), holder="run other", timeout_seconds=60, reporter=Silent()).acquire(1)
print("taken", flush=True)
sys.stdin.read()
"""


class MakeSlots(Protocol):
    """Provides the slots as another process sees them, with its own clock or the real one."""

    def __call__(
        self,
        most: int,
        *,
        sleep: Callable[[float], None] = ...,
        timeout_seconds: float = ...,
        is_real: bool = ...,
    ) -> Slots: ...


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


@pytest.fixture(params=["files", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the slots are: a directory, or a server."""
    return str(
        tmp_path / "slots"
        if request.param == "files"
        else request.getfixturevalue("redis_url")
    )


@pytest.fixture
def slots_of(address: str, tmp_path: Path) -> MakeSlots:
    def make(
        most: int,
        *,
        sleep: Callable[[float], None] = lambda _seconds: None,
        timeout_seconds: float = 60,
        is_real: bool = False,
    ) -> Slots:
        terms = RedisConfig(
            address,
            "DEVICE_SLOTS_URL",
            str(tmp_path),
            SilentReporter(),
            slot_seconds=SLOT_SECONDS,
            settle_seconds=0,
        )
        clock = FakeClock()

        def pause(seconds: float) -> None:
            clock.sleep(seconds)
            sleep(seconds)

        return Slots(
            RedisStore(terms) if address.startswith("redis:") else Path(address),
            most,
            holder="run a",
            timeout_seconds=timeout_seconds,
            clock=time.monotonic if is_real else clock,
            sleep=(lambda _seconds: time.sleep(0.01)) if is_real else pause,
            reporter=SilentReporter(),
        )

    return make


@pytest.fixture
def place_of_next(slots_of: MakeSlots) -> Callable[[int], int]:
    """Return the queue position of another claim."""

    def place(most: int) -> int:
        try:
            release(slots_of(most, timeout_seconds=0).acquire(1))
        except LeaseTimeoutError as error:
            found = re.search(r"position in the queue: (\d+)", str(error))
            return int(found[1]) if found else 0
        return 0

    return place


@contextmanager
def another_process(
    address: str, key: Path, most: int
) -> Generator["subprocess.Popen[str]"]:
    """Run a process that takes a slot, reports it, and keeps it."""
    command = [sys.executable, "-c", TAKES, address, str(key), str(most)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def release(slots: Iterable[Slot]) -> None:
    for slot in slots:
        slot.release()


def in_turn(*acts: Callable[[], object]) -> Callable[[float], None]:
    """Return a pause that does one of these each time."""
    left = iter(acts)

    def pause(_seconds: float) -> None:
        next(left, lambda: None)()

    return pause


def test_waiting_claims_are_served_in_order(
    slots_of: MakeSlots, place_of_next: Callable[[int], int]
) -> None:
    (held,), served = slots_of(1).acquire(1), list[int]()

    def is_place_of_next(place: int) -> bool:
        return place_of_next(1) == place

    def wait(number: int) -> None:
        taken = slots_of(1, is_real=True).acquire(1)
        served.append(number)
        release(taken)

    threads: list[threading.Thread] = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        assert eventually(partial(is_place_of_next, number + 2))
    held.release()
    for thread in threads:
        thread.join(60)

    assert served == [0, 1, 2, 3, 4]


def test_a_claim_on_two_slots_does_not_starve(slots_of: MakeSlots) -> None:
    held, passed = slots_of(2).acquire(2), list[object]()

    def give_one_back_and_take_it_again() -> None:
        held.pop().release()
        passed.append(slots_of(2).try_acquire(1))

    both = slots_of(
        2,
        sleep=in_turn(give_one_back_and_take_it_again, give_one_back_and_take_it_again),
    ).acquire(2)

    assert passed == [None, None]
    assert len(both) == 2
    release(both)


def test_insufficient_slots_are_not_counted_twice(slots_of: MakeSlots) -> None:
    held, looks = slots_of(2).acquire(1), list[float]()

    def wait(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:  # one of two was free at each look
            release(held)

    both = slots_of(2, sleep=wait).acquire(2)

    assert len(looks) == 3
    assert [slot.is_held for slot in both] == [True, True]
    assert slots_of(2).try_acquire(1) is None
    release(both)


@pytest.mark.parametrize("address", ["files"], indirect=True)
def test_claims_check_less_often_the_more_claims_are_before_them(
    slots_of: MakeSlots,
) -> None:
    held, pauses = slots_of(1).acquire(1), dict[int, list[float]]()

    def wait_behind(others: int) -> Callable[[float], None]:
        def wait(seconds: float) -> None:
            pauses.setdefault(others, []).append(seconds)
            if len(pauses[others]) == 1 and others < 8:
                with pytest.raises(LeaseTimeoutError):
                    slots_of(
                        1, sleep=wait_behind(others + 1), timeout_seconds=3
                    ).acquire(1)
                if not others:
                    release(held)

        return wait

    release(slots_of(1, sleep=wait_behind(0)).acquire(1))

    # The first one follows an attempt without a ticket.
    soon, later = pauses[1][1:-1], pauses[8][1:-1]
    assert all(0.03 <= pause <= 0.09 for pause in soon)
    assert all(0.4 <= pause <= 1.2 for pause in later)


def test_a_try_takes_slots_immediately_or_not_at_all(slots_of: MakeSlots) -> None:
    first = slots_of(2).try_acquire(1)
    assert first is not None

    assert slots_of(2).try_acquire(2) is None
    second = slots_of(2).try_acquire(1)

    assert second is not None
    assert slots_of(2).try_acquire(1) is None
    assert slots_of(2).try_acquire(3) is None
    release([*first, *second])


def test_a_process_with_a_slot_in_use_is_served_before_those_without(
    slots_of: MakeSlots,
) -> None:
    other, process = slots_of(2).acquire(1), slots_of(2)
    in_use, more = process.acquire(1), list[Slot]()
    acts = (
        lambda: release(other),
        # Else both would wait until their time is over.
        lambda: more.extend(process.acquire(1)),
        lambda: release([*in_use, *more]),
    )

    both = slots_of(2, sleep=in_turn(*acts)).acquire(2)

    assert (len(more), len(both)) == (1, 2)
    release(both)


def test_a_process_with_a_slot_in_use_is_not_overtaken(slots_of: MakeSlots) -> None:
    others, refused = slots_of(3).acquire(2), list[LeaseTimeoutError]()

    def free_one_that_another_wants() -> None:
        others.pop().release()
        with pytest.raises(LeaseTimeoutError) as caught:
            slots_of(3).acquire(1)
        refused.append(caught.value)
        release(others)

    process = slots_of(3, sleep=in_turn(free_one_that_another_wants))
    in_use = process.acquire(1)
    more = process.acquire(2)

    assert len(refused) == 1
    release([*in_use, *more])


def test_idle_slots_are_released_only_for_claims_served_earlier(
    slots_of: MakeSlots, place_of_next: Callable[[int], int]
) -> None:
    taken = list[Slot]()
    first = threading.Thread(
        target=lambda: taken.extend(slots_of(3, is_real=True).acquire(1))
    )

    def until_the_first_is_served(_seconds: float) -> None:
        assert eventually(lambda: bool(taken))

    process = slots_of(3, sleep=until_the_first_is_served)
    idle = process.acquire(3)
    first.start()
    assert eventually(lambda: place_of_next(3) == 2)

    def give_one_way() -> bool:
        idle.pop().release()
        return True

    mine = process.acquire(1, give_one_way)

    first.join(60)
    assert (len(idle), len(taken), len(mine)) == (1, 1, 1)
    release([*idle, *taken, *mine])


def test_a_claim_with_a_lower_limit_does_not_block_one_with_a_higher_limit(
    slots_of: MakeSlots,
) -> None:
    held, more = slots_of(1).acquire(1), list[object]()

    def take_what_is_not_waited_for() -> None:
        taken = slots_of(3).try_acquire(2)
        more.append(taken)
        release(taken or ())

    one = slots_of(
        1, sleep=in_turn(take_what_is_not_waited_for, lambda: release(held))
    ).acquire(1)

    assert more != [None]
    release(one)


def test_a_killed_waiter_loses_its_place(
    slots_of: MakeSlots,
    address: str,
    tmp_path: Path,
    place_of_next: Callable[[int], int],
) -> None:
    (held,) = slots_of(1).acquire(1)
    with another_process(address, tmp_path, 1) as process:
        assert eventually(lambda: place_of_next(1) == 2)
        process.kill()
        process.wait()
        held.release()

        release(slots_of(1, is_real=True).acquire(1))


def test_a_killed_holder_releases_its_slots(
    slots_of: MakeSlots, address: str, tmp_path: Path
) -> None:
    with another_process(address, tmp_path, 1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        assert slots_of(1).try_acquire(1) is None
        process.kill()
        process.wait()

        release(slots_of(1, is_real=True).acquire(1))


@pytest.mark.parametrize("seconds", [0.5, 60])
def test_interrupts_and_timeouts_leave_no_queue_place(
    slots_of: MakeSlots, place_of_next: Callable[[int], int], seconds: float
) -> None:
    held = slots_of(1).acquire(1)

    def interrupt() -> None:
        assert place_of_next(1) == 2
        if seconds > 1:
            raise KeyboardInterrupt

    with pytest.raises((LeaseTimeoutError, KeyboardInterrupt)) as caught:
        slots_of(1, sleep=in_turn(interrupt), timeout_seconds=seconds).acquire(1)

    assert place_of_next(1) == 1
    del caught  # only now, since what it refers to is freed with it
    release(held)
