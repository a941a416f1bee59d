"""Which worker gets which tests next."""

from collections.abc import Iterable, Sequence
from itertools import count
from math import inf

import pytest

from pytest_device.scheduling.dispatcher import Dispatcher, Step, simulated
from pytest_device.scheduling.history import History
from pytest_device.scheduling.test_plan import NO_BOND, TestPlan, in_order
from pytest_device.scheduling.work import DeviceGroup, Limits

ANDROID, IOS = DeviceGroup((0,), (0,)), DeviceGroup((1,), (1,))
BOTH = DeviceGroup((0, 1), (0, 1))


def dispatcher_of(
    groups: Sequence[DeviceGroup],
    tests: Iterable[tuple[int, float | None]],
    *,
    boot: float | None = 60.0,
    width: int = 2,
    max_devices: float = inf,
) -> Dispatcher[int]:
    """Return a dispatcher for tests given by group and seconds."""
    tests = list(tests)
    units = [
        [(test,) for test, (of, _) in enumerate(tests) if of == group]
        for group in range(len(groups))
    ]
    seconds = [of_test for _, of_test in tests]
    return Dispatcher(groups, units, seconds, [boot] * 9, Limits(width, max_devices))


def by_worker(steps: Sequence[Step]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for step in steps:
        found.setdefault(step.worker, []).append(step.test)
    return found


def test_a_worker_stays_with_its_group() -> None:
    steps = simulated(
        dispatcher_of([ANDROID, IOS], [(n % 2, 30.0) for n in range(20)]), 2
    )

    assert [{test % 2 for test in tests} for tests in by_worker(steps).values()] == [
        {0},
        {1},
    ]


def test_the_longest_tests_come_first() -> None:
    seconds = [10.0, 50.0, 20.0, 40.0, 30.0]

    steps = simulated(
        dispatcher_of([ANDROID], [(0, one) for one in seconds], width=1), 1
    )

    assert [seconds[step.test] for step in steps] == sorted(seconds, reverse=True)


def test_the_longest_test_has_a_worker_to_itself_if_others_can_run_the_rest() -> None:
    steps = simulated(
        dispatcher_of([ANDROID], [(0, 100.0), *[(0, 25.0)] * 4], boot=1.0), 2
    )

    assert sorted(by_worker(steps).values()) == [[0], [1, 2, 3, 4]]


def test_a_group_is_spread_only_over_workers_that_shorten_the_run() -> None:
    steps = simulated(
        dispatcher_of([ANDROID], [(0, 100.0), *[(0, 10.0)] * 4], width=8), 8
    )

    assert len(by_worker(steps)) == 2


def test_work_shorter_than_a_boot_is_not_taken_over() -> None:
    steps = simulated(
        dispatcher_of([ANDROID, IOS], [*[(0, 30.0)] * 4, *[(1, 30.0)] * 3], boot=60.0),
        2,
    )

    assert sorted(map(len, by_worker(steps).values())) == [3, 4]


def test_work_longer_than_a_boot_is_taken_over_near_the_end() -> None:
    steps = simulated(
        dispatcher_of([ANDROID, IOS], [*[(0, 30.0)] * 40, *[(1, 30.0)] * 3], boot=60.0),
        2,
    )

    assert {step.worker for step in steps if step.group == 0} == {0, 1}
    assert max(step.ends for step in steps) < 60 + 40 * 30 * 0.65


def test_a_worker_with_little_work_moves_on_even_without_known_durations() -> None:
    tests = [*[(0, None)] * 2, *[(1, None)] * 60]

    steps = simulated(dispatcher_of([ANDROID, IOS], tests, boot=None), 2)

    assert {step.worker for step in steps if step.group == 1} == {0, 1}


def test_a_worker_with_its_last_test_does_not_end_during_a_long_boot() -> None:
    dispatcher = dispatcher_of(
        [ANDROID, IOS], [*[(0, None)] * 2, *[(1, None)] * 60], boot=None
    )
    dispatcher.add_worker(0)
    dispatcher.add_worker(1)
    at_once = {name: tests for name, tests, _ in dispatcher.assign(0.0)}
    few = next(name for name, tests in at_once.items() if set(tests) <= {0, 1})

    dispatcher.estimates.confirm(ANDROID.models)
    dispatcher.done(few, at_once[few][0], 30.0, 90.0)
    ((name, more, is_over),) = dispatcher.assign(90.0)

    assert (name, is_over) == (few, False)
    assert set(more) <= set(range(2, 62))


def test_a_test_with_two_devices_delays_another_worker_only_for_its_duration() -> None:
    tests = [(2, 30.0), *[(0, 30.0)] * 20, *[(1, 30.0)] * 20]

    steps = simulated(dispatcher_of([ANDROID, IOS, BOTH], tests, max_devices=2), 2)

    assert sorted(map(len, by_worker(steps).values())) == [20, 21]
    assert max(step.ends for step in steps) <= 60 + 30 + 60 + 20 * 30


def test_one_worker_does_not_get_all_short_tests_during_its_boot() -> None:
    steps = simulated(
        dispatcher_of(
            [DeviceGroup(), ANDROID], [*[(0, 0.001)] * 300, *[(1, 30.0)] * 2]
        ),
        2,
    )

    at_device = {step.worker for step in steps if step.group == 1}
    assert all(
        sum(step.group == 0 for step in steps if step.worker == worker) <= 50
        for worker in at_device
    )
    assert len(steps) == 302


def test_a_worker_that_ends_gets_no_more_tests_and_its_group_continues_elsewhere() -> (
    None
):
    dispatcher = dispatcher_of([ANDROID], [(0, 30.0)] * 6)
    dispatcher.add_worker(1)
    started = [test for _, tests, _ in dispatcher.assign(0.0) for test in tests]
    dispatcher.end_worker(1)
    dispatcher.add_worker(2)

    assigned = [(name, tests) for name, tests, _ in dispatcher.assign(1.0)]

    assert [name for name, _ in assigned] == [2]
    assert not set(assigned[0][1]) & set(started)
    assert [one.test for one in dispatcher.pending(1)] == started


def test_tests_without_a_device_fill_the_boot() -> None:
    steps = simulated(
        dispatcher_of(
            [DeviceGroup(), ANDROID], [*[(0, 20.0)] * 3, (1, 30.0)], boot=60.0, width=1
        ),
        1,
    )

    assert [step.group for step in steps] == [0, 0, 0, 1]
    assert max(step.ends for step in steps) == 90.0


def test_the_next_devices_boot_during_the_last_tests_of_the_previous_group() -> None:
    tests = [*[(0, 50.0)] * 4, *[(1, 40.0)] * 4]

    steps = simulated(dispatcher_of([ANDROID, IOS], tests, width=1, max_devices=2), 1)

    assert max(step.ends for step in steps) < 2 * 60 + 360 - 40


def test_with_a_limit_of_one_groups_boot_one_after_another() -> None:
    tests = [*[(0, 50.0)] * 4, *[(1, 40.0)] * 4]

    steps = simulated(dispatcher_of([ANDROID, IOS], tests, width=3, max_devices=1), 3)

    assert max(step.ends for step in steps) == 2 * 60 + 360
    assert sorted(by_worker(steps).values()) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_group_that_needs_more_devices_comes_first() -> None:
    tests = [*[(0, 90.0)] * 6, *[(1, 90.0)] * 6, (2, 10.0)]

    steps = simulated(
        dispatcher_of([ANDROID, IOS, BOTH], tests, width=2, max_devices=2), 2
    )

    assert steps[0].group == 2


def test_existing_devices_are_reused() -> None:
    tests = [*[(0, 30.0)] * 2, *[(1, 30.0)] * 2, *[(2, 30.0)] * 2]

    steps = simulated(
        dispatcher_of(
            [ANDROID, DeviceGroup((2,), (2,)), BOTH], tests, width=1, max_devices=2
        ),
        1,
    )

    assert [step.group for step in steps] == [2, 2, 0, 0, 1, 1]


def test_the_unstarted_tests_of_a_dead_worker_are_reassigned() -> None:
    dispatcher = dispatcher_of([ANDROID], [(0, 10.0)] * 6, width=1)
    dispatcher.add_worker(0)
    ((_, assigned, _),) = dispatcher.assign(0.0)

    assert dispatcher.remove_worker(0) == assigned
    dispatcher.add_worker(1)
    rest = assign_all(dispatcher, 1)

    assert sorted(rest) == sorted(set(range(6)) - {assigned[0]})


def test_a_dead_workers_group_is_left_to_the_worker_that_is_free_first() -> None:
    groups = [DeviceGroup((number,), (number,)) for number in range(3)]
    tests = [(0, 100.0), (0, 90.0), (1, 105.0), (1, 5.0), *[(2, 0.1)] * 6]
    dispatcher = dispatcher_of(groups, tests, width=3)
    for worker in range(3):
        dispatcher.add_worker(worker)
    group_of = {name: tests[new[0]][0] for name, new, _ in dispatcher.assign(0.0)}
    later, first, dead = sorted(group_of, key=lambda name: group_of[name])

    dispatcher.remove_worker(dead)
    dispatcher.done(later, 0, 100.0, 160.0)
    assert [new for _, new, _ in dispatcher.assign(160.0)] == [[]]
    dispatcher.done(first, 2, 105.0, 165.0)
    ((name, new, _),) = dispatcher.assign(165.0)

    assert (name, {tests[test][0] for test in new}) == (first, {2})


def assign_all(dispatcher: Dispatcher[int], worker: int) -> list[int]:
    """Return all that one worker gets, as it does it."""
    done: list[int] = []
    for now in count():
        assigned = [over for _, _, over in dispatcher.assign(float(now))]
        pending = dispatcher.pending(worker)
        if not pending:
            return done
        assert len(pending) > 1 or not assigned or any(assigned)
        done.append(pending[0].test)
        dispatcher.done(worker, pending[0].test, None, float(now))
    raise AssertionError


@pytest.mark.parametrize("number", [1_000])
def test_many_tests_with_unshared_devices_are_all_assigned(number: int) -> None:
    groups = [
        DeviceGroup((n,), (0,), is_shareable=False, is_unshared=True)
        for n in range(number)
    ]

    steps = simulated(
        dispatcher_of(groups, [(n, None) for n in range(number)], width=4), 4
    )

    assert len(steps) == number


@pytest.mark.parametrize(
    ("groups", "order"),
    [
        ([1, 1, 1, 1], [0, 1, 2, 3]),
        ([1, 2, 1, 2], [0, 2, 1, 3]),
        ([1, 0, 2, 1], [1, 0, 3, 2]),
    ],
    ids=["one device", "two devices", "without a device"],
)
def test_one_process_runs_tests_without_devices_first_and_those_of_a_device_together(
    groups: Sequence[int], order: list[int]
) -> None:
    known = [DeviceGroup((), ()), ANDROID, IOS]
    tests = [(group, NO_BOND) for group in groups]
    plan = TestPlan(known, ["android", "ios"], tests, may_order=True)

    assert in_order(plan, list("abcd"), History(None)) == order


def test_tests_that_share_fixtures_run_with_the_device_of_the_first_one() -> None:
    # The first two share fixtures; the device of the first is that of the last.
    tests = [(0, 7), (1, 7), (1, NO_BOND), (0, NO_BOND)]
    plan = TestPlan([ANDROID, DeviceGroup()], ["android"], tests, may_order=True)

    assert in_order(plan, list("abcd"), History(None)) == [2, 0, 1, 3]


@pytest.mark.parametrize(
    ("whole", "sizes"), [((), [1, 1]), ((3,), [2, 0])], ids=["split", "whole"]
)
def test_tests_with_a_bond_are_spread_over_workers_unless_it_is_whole(
    whole: Sequence[int], sizes: list[int]
) -> None:
    plan = TestPlan([ANDROID], ["android"], [(0, 3), (0, 3)], True, whole)
    dispatcher: Dispatcher[str] = TestPlan.from_wire(plan.to_wire()).dispatcher(
        ["a", "b"], History(None), [1.0], Limits(2)
    )
    dispatcher.add_worker("one")
    dispatcher.add_worker("two")

    assigned = dispatcher.assign(0.0)

    assert [len(tests) for _, tests, _ in assigned] == sizes
