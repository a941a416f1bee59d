"""Unknown durations are guessed from tests that are alike, and corrected during the run."""

from collections.abc import Mapping, Sequence
from math import inf

import pytest

from pytest_device.scheduling.dispatcher import Dispatcher
from pytest_device.scheduling.history import History
from pytest_device.scheduling.test_plan import NO_BOND, TestPlan
from pytest_device.scheduling.work import DeviceGroup, Limits

GROUPS = [DeviceGroup(), DeviceGroup((0,), (0,)), DeviceGroup((1,), (1,))]
A, B = "test_it.py::test_a", "test_it.py::test_b"


def cases(function: str, number: int) -> list[str]:
    return [f"{function}[{case}]" for case in range(number)]


def dispatcher_of(
    nodeids: Sequence[str],
    known: Mapping[str, float] | None = None,
    *,
    sizes: Sequence[int] = (),
    group: int = 1,
    groups: Sequence[int] = (),
    may_order: bool = True,
) -> Dispatcher[int]:
    """Return a dispatcher for two workers, of which only the first has joined: it gets the tests one by one."""
    history = History(None)
    for nodeid, seconds in (known or {}).items():
        history.add_test(nodeid, seconds)

    tests = [(of, NO_BOND) for of in groups or [group] * len(nodeids)]
    plan = TestPlan(GROUPS, ["android", "ios"], tests, may_order, sizes=sizes)
    boots: list[float | None] = [1.0, 1.0]
    dispatcher = plan.dispatcher(nodeids, history, boots, Limits(2, inf))
    dispatcher.add_worker(0)
    return dispatcher


def started(
    dispatcher: Dispatcher[int],
    nodeids: Sequence[str],
    seconds: Mapping[str, float] | None = None,
) -> list[str]:
    """Return the tests in the order of one worker; ``seconds`` is how long those of a function take."""
    order: list[str] = []
    now = 0.0
    for _ in range(2 * len(nodeids)):
        list(dispatcher.assign(now))
        if pending := dispatcher.pending(0):
            nodeid = nodeids[pending[0].test]
            order.append(nodeid)
            took = (seconds or {}).get(nodeid.partition("[")[0], 10.0)
            now += took
            dispatcher.done(0, pending[0].test, took, now)
    return order


def test_one_case_of_each_function_starts_first() -> None:
    nodeids = [*cases(A, 3), *cases(B, 3)]

    order = started(dispatcher_of(nodeids), nodeids)

    assert set(order[:2]) == {f"{A}[0]", f"{B}[0]"}


@pytest.mark.parametrize("group", [0, 1], ids=["without a device", "with a device"])
@pytest.mark.parametrize("of", ["test_it.py", "test_it.py::TestIt"])
def test_further_cases_of_the_function_that_took_longest_come_first(
    of: str, group: int
) -> None:
    short, long = f"{of}::test_short", f"{of}::test_long"
    nodeids = [*cases(short, 6), *cases(long, 6)]
    dispatcher = dispatcher_of(nodeids, group=group)

    order = started(dispatcher, nodeids, {short: 5.0, long: 50.0})

    # Three are assigned before the first long one is done.
    assert set(order[4:8]) <= set(cases(long, 6))
    assert set(order[-4:]) <= set(cases(short, 6))


def test_a_case_counts_like_others_of_its_function_with_other_devices() -> None:
    nodeids = [*cases(A, 2), *cases(B, 2)]
    groups = [1, 2, 2, 1]
    known = {f"{A}[0]": 1.0, f"{B}[1]": 100.0}

    dispatcher = dispatcher_of(nodeids, known, groups=groups)

    assert expected(dispatcher, 2) > expected(dispatcher, 1)


def expected(dispatcher: Dispatcher[int], test: int) -> float:
    return dispatcher.estimates.of(test, plain=False)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("test_it.py::TestShort", "test_it.py::TestLong"),
        ("test_short.py", "test_long.py"),
        ("test_short.py::TestIt", "test_long.py::TestIt"),
    ],
    ids=["class", "file", "class of the same name"],
)
def test_a_new_test_counts_like_those_of_its_class_or_file(
    short: str, long: str
) -> None:
    nodeids = [f"{of}::test_{n}" for n in range(4) for of in (short, long)]
    known = {nodeid: 90.0 if long in nodeid else 10.0 for nodeid in nodeids[2:]}

    dispatcher = dispatcher_of(nodeids, known)

    assert expected(dispatcher, 0) < 40
    assert expected(dispatcher, 1) > 60


def test_a_group_begins_with_the_function_that_took_longest_on_other_devices() -> None:
    nodeids = [*cases(B, 6), *cases(A, 6)]
    groups = [1, 1, 1, 1, 2, 2] * 2

    order = started(dispatcher_of(nodeids, groups=groups), nodeids, {A: 50.0, B: 5.0})

    assert order[8:10] == [f"{A}[4]", f"{A}[5]"]


def test_few_tests_move_an_estimate_less_than_many() -> None:
    nodeids = [*cases(A, 9), *cases(B, 9)]
    others = dict.fromkeys(cases(B, 9), 10.0)

    one = dispatcher_of(nodeids, others | {f"{A}[0]": 100.0})
    many = dispatcher_of(nodeids, others | dict.fromkeys(cases(A, 8), 100.0))

    assert 30 < expected(one, 8) < 80
    assert 80 < expected(many, 8) < 100


def test_without_unknown_durations_the_longest_test_comes_first() -> None:
    nodeids = [*cases(A, 3), *cases(B, 3)]
    known = {nodeid: float(10 + place) for place, nodeid in enumerate(nodeids)}

    assert started(dispatcher_of(nodeids, known), nodeids) == nodeids[::-1]


def test_the_tests_with_the_largest_source_start_first() -> None:
    nodeids = [f"test_a.py::test_{number}" for number in range(4)]

    order = started(dispatcher_of(nodeids, sizes=[100, 400, 50, 200]), nodeids)

    assert [nodeid[-1] for nodeid in order] == ["1", "3", "0", "2"]


def test_a_test_counts_like_those_with_a_source_of_similar_size() -> None:
    nodeids = [f"test_{number}.py::test" for number in range(6)]
    sizes = [100, 1000, 100, 1000, 100, 1000]
    known = {nodeids[0]: 10.0, nodeids[1]: 90.0, nodeids[2]: 10.0, nodeids[3]: 90.0}

    dispatcher = dispatcher_of(nodeids, known, sizes=sizes)

    assert expected(dispatcher, 4) < 40
    assert expected(dispatcher, 5) > 60


def test_the_order_of_the_suite_is_kept_if_it_must_be() -> None:
    nodeids = [*cases(A, 3), *cases(B, 3)]
    dispatcher = dispatcher_of(nodeids, sizes=[1, 2, 3, 4, 5, 6], may_order=False)

    assert started(dispatcher, nodeids, {A: 5.0, B: 50.0}) == nodeids
