"""Any suite, assigned to any workers: each test runs once, whatever the limit, whichever worker dies."""

from collections import Counter
from itertools import count
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from pytest_device.plugin.output.plan import at_once, sessions_of
from pytest_device.scheduling.dispatcher import simulated
from pytest_device.scheduling.test_plan import TestPlan
from pytest_device.scheduling.work import DeviceGroup
from tests.scheduling.test_dispatcher import ANDROID, BOTH, IOS, dispatcher_of

GROUPS = [
    DeviceGroup(),
    ANDROID,
    IOS,
    BOTH,
    DeviceGroup((3,), (0,), is_shareable=False),
    DeviceGroup((4,), (1,), is_shareable=False, is_unshared=True),
]


@given(
    tests=st.lists(
        st.tuples(st.integers(0, 4), st.none() | st.floats(0.0, 300.0)), max_size=40
    ),
    width=st.integers(1, 6),
    most=st.sampled_from([2.0, 3.0, 5.0, inf]),
    boot=st.floats(0.0, 200.0),
)
def test_every_test_runs_once_within_the_limit(
    tests: list[tuple[int, float | None]], width: int, most: float, boot: float
) -> None:
    steps = simulated(
        dispatcher_of(GROUPS, tests, boot=boot, width=width, max_devices=most), width
    )

    assert Counter(step.test for step in steps) == Counter(range(len(tests)))
    if len({group for group, _ in tests if group}) <= 1 and all(
        group != 3 for group, _ in tests
    ):
        plan = TestPlan(GROUPS, ["", ""], tests, may_order=True)  # type: ignore[arg-type]
        assert at_once(sessions_of(steps, plan, [boot, boot])) <= max(most, 1)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0.0, 100.0)), max_size=30),
    st.integers(1, 4),
    st.data(),
)
def test_every_test_runs_or_was_assigned_whichever_worker_dies_at_any_time(
    tests: list[tuple[int, float]], width: int, data: st.DataObject
) -> None:
    dispatcher = dispatcher_of(GROUPS, tests, width=width, max_devices=3)
    alive, over, run, names = set(range(width)), set[int](), set[int](), count(width)
    for worker in alive:
        dispatcher.add_worker(worker)
    for now in range(200):
        over |= {
            worker for worker, _, is_over in dispatcher.assign(float(now)) if is_over
        }
        able = [
            worker
            for worker in alive
            if len(dispatcher.pending(worker)) > (0 if worker in over else 1)
        ]
        if not able:
            break
        worker = data.draw(st.sampled_from(able))
        run.add(dispatcher.pending(worker)[0].test)
        if data.draw(st.integers(0, 9)) == 0:
            dispatcher.remove_worker(worker)
            alive.remove(worker)
            alive.add(fresh := next(names))
            dispatcher.add_worker(fresh)
        else:
            dispatcher.done(
                worker, dispatcher.pending(worker)[0].test, None, float(now)
            )

    assert run == set(range(len(tests)))
