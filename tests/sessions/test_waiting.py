"""Calls are retried while the service has no capacity; a create call that may have succeeded is not repeated."""

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import httpx
import pytest

from pytest_device import (
    ConfigError,
    DeviceClient,
    LeaseTimeoutError,
    NoCapacityError,
    NotAttemptedError,
    NotFoundError,
    ServiceError,
    Session,
    SessionRequest,
    SessionTimeoutError,
    StatusError,
    UnauthorizedError,
    WaitPolicy,
    lease,
)
from pytest_device.events import (
    Created,
    CreateUnknown,
    StateChanged,
    detail_of,
    session_id_of,
)
from pytest_device.sessions.breaker import RunBreaker
from pytest_device.sessions.budget import Budget
from pytest_device.verdict import Verdict
from tests.fakes.local_service import APP_ID
from tests.fakes.network import FakeNetwork, Fault
from tests.fakes.reporter import RecordingReporter
from tests.sessions.pool_harness import PoolHarness, requirement, shared_breaker
from tests.sessions.references import ref_of

REQUEST = SessionRequest.from_arguments(
    app_id=APP_ID,
    platform="android",
    type="appium",
    name="a test",
    max_duration_minutes=20,
)
HTML = "<html><title>503 Backend fetch failed</title>"
CODE = '{"errors": [{"code": "NO_CAPACITY", "message": "no device is free"}]}'


def answer(status: int, body: str = "", *, after: str | None = None) -> Fault:
    headers = {} if after is None else {"Retry-After": after}
    return lambda _request, _carry_out: httpx.Response(
        status, text=body, headers=headers
    )


class RecordedLease:
    """A lease with records of its pauses and the times of its requests."""

    def __init__(self, client: DeviceClient, network: FakeNetwork) -> None:
        self.client, self.network = client, network
        self.reporter = RecordingReporter()
        self.times: dict[str, list[float]] = {}
        self.began = network.clock()

    def fault(self, operation: str, *faults: Fault) -> None:
        """Inject faults in turn; record the times of all such requests."""
        times = self.times.setdefault(operation, [])

        def timed(fault: Fault) -> Fault:
            def strike(
                request: httpx.Request, carry_out: Callable[[], httpx.Response]
            ) -> httpx.Response:
                times.append(self.network.clock() - self.began)
                return fault(request, carry_out)

            return strike

        self.network.faults[operation] = [
            timed(fault) for fault in (*faults, *[carried_out] * 50)
        ]

    def lease(
        self,
        *,
        timeout_seconds: float = 900.0,
        jitter: float = 0.0,
        random: Callable[[], float] = lambda: 0.5,
    ) -> Session:
        policy = WaitPolicy(
            timeout_seconds=timeout_seconds, jitter=jitter, random=random
        )
        clock = self.network.clock
        with lease(
            self.client,
            REQUEST,
            policy=policy,
            clock=clock,
            sleep=clock.sleep,
            on_event=self.reporter.event,
        ) as session:
            return session

    def states(self) -> Sequence[str]:
        return [
            detail_of(event)
            for event in self.reporter.events
            if isinstance(event, StateChanged)
        ]


def carried_out(
    _request: httpx.Request, carry_out: Callable[[], httpx.Response]
) -> httpx.Response:
    return carry_out()


@pytest.fixture
def recorded(client: DeviceClient, network: FakeNetwork) -> RecordedLease:
    return RecordedLease(client, network)


@pytest.mark.parametrize(
    "refusal",
    [
        answer(429, after="12"),
        answer(503, after="12"),
        answer(503, CODE, after="12"),
        answer(429, HTML, after="12"),
    ],
)
def test_a_temporarily_refused_create_is_retried_at_the_requested_time(
    recorded: RecordedLease, refusal: Fault
) -> None:
    recorded.fault("create", refusal, refusal)

    recorded.lease()

    assert recorded.times["create"] == [0, 12, 24]
    assert recorded.network.statuses() == ["stopped"]


def test_a_retry_date_is_waited_for(recorded: RecordedLease) -> None:
    def fault(
        _request: httpx.Request, _carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        headers = {
            "Date": "Fri, 15 Jan 2027 08:00:00 GMT",
            "Retry-After": "Fri, 15 Jan 2027 08:00:40 GMT",
        }
        return httpx.Response(503, headers=headers)

    recorded.fault("create", fault)

    recorded.lease()

    assert recorded.times["create"] == [0, 40]


@pytest.mark.parametrize("refusal", [answer(429), answer(503, CODE)])
def test_without_a_retry_after_the_pauses_grow_up_to_a_limit(
    recorded: RecordedLease, refusal: Fault
) -> None:
    recorded.fault("create", *[refusal] * 6)

    recorded.lease()

    assert recorded.times["create"] == [0, 5, 15, 35, 75, 115, 155]


def test_a_retry_after_of_a_day_is_shortened_to_five_minutes(
    recorded: RecordedLease,
) -> None:
    recorded.fault("create", answer(429, after="86400"))

    recorded.lease()

    assert recorded.times["create"] == [0, 300]


def test_a_retry_after_of_zero_is_extended_to_a_second(recorded: RecordedLease) -> None:
    recorded.fault("create", answer(429, after="0"))

    recorded.lease()

    assert recorded.times["create"] == [0, 1]


@pytest.mark.parametrize(
    ("number", "pause"), [(0.0, 100.0), (0.5, 110.0), (1.0, 120.0)]
)
def test_requests_with_a_retry_after_are_spread(
    recorded: RecordedLease, number: float, pause: float
) -> None:
    recorded.fault("create", answer(429, after="100"))

    recorded.lease(jitter=0.1, random=lambda: number)

    assert recorded.times["create"][1] == pytest.approx(pause, abs=0.01)


@pytest.mark.parametrize(("number", "pause"), [(0.0, 2.5), (0.5, 5.0), (1.0, 7.5)])
def test_requests_without_a_retry_after_are_spread(
    recorded: RecordedLease, number: float, pause: float
) -> None:
    recorded.fault("create", answer(429))

    recorded.lease(random=lambda: number)

    assert recorded.times["create"][1] == pytest.approx(pause, abs=0.01)


def test_the_wait_for_capacity_is_reported_immediately_and_then_from_time_to_time(
    recorded: RecordedLease,
) -> None:
    recorded.fault("create", *[answer(429, after="12")] * 6)

    recorded.lease()

    text = "the service has no capacity (429), retrying in 12 s"
    reported = [event for event in recorded.reporter.events if detail_of(event) == text]
    assert [
        (ref_of(event).waited_seconds, session_id_of(event)) for event in reported
    ] == [(0, ""), (36, "")]


def test_a_timeout_without_capacity_is_reported_with_the_last_response(
    recorded: RecordedLease,
) -> None:
    recorded.fault(
        "create",
        *[answer(503, '{"message": "all devices are in use"}', after="20")] * 9,
    )

    with pytest.raises(LeaseTimeoutError) as caught:
        recorded.lease(timeout_seconds=50)

    message = str(caught.value)
    assert message.startswith(
        "the service had no capacity for 50 s. Last response: create: the service has no capacity"
    )
    assert "(status 503): all devices are in use" in message
    assert "--device-wait-timeout-seconds" in message
    assert recorded.times["create"] == [0, 20, 40]
    assert recorded.network.statuses() == []
    assert CreateUnknown not in recorded.reporter.kinds()


def test_the_wait_timeout_includes_queueing_and_booting(
    recorded: RecordedLease,
) -> None:
    recorded.fault("create", answer(429, after="40"))

    with pytest.raises(SessionTimeoutError, match="not ready after 50 s"):
        recorded.lease(timeout_seconds=50)

    assert recorded.network.statuses() == ["stopped"]


@pytest.mark.parametrize(
    "fault",
    [
        answer(503),
        answer(503, HTML, after="5"),
        answer(500, after="5"),
        answer(502),
        answer(504, CODE, after="5"),
    ],
)
def test_a_create_call_is_not_repeated_after_a_gateways_error(
    recorded: RecordedLease, fault: Fault
) -> None:
    recorded.fault("create", fault)

    with pytest.raises(StatusError) as caught:
        recorded.lease()

    assert recorded.times["create"] == [0]
    assert recorded.reporter.kinds() == [CreateUnknown]
    assert "may be running" in caught.value.__notes__[0]


def test_a_truncated_refusal_is_not_trusted(recorded: RecordedLease) -> None:
    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        carry_out()
        return httpx.Response(
            429, headers={"Content-Length": "536"}, stream=httpx.ByteStream(b"{}")
        )

    recorded.fault("create", fault)

    with pytest.raises(Exception, match="2 of 536 bytes"):
        recorded.lease()

    assert recorded.reporter.kinds() == [CreateUnknown]


PAGE_503 = answer(503, HTML, after="5")
BLOCKED = "<html><title>no such page</title>"


def unreachable(
    _request: httpx.Request, _carry_out: Callable[[], httpx.Response]
) -> httpx.Response:
    raise httpx.ConnectError("no route")


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_create_call_that_a_gateway_refuses_with_its_page_is_sent_again_after_15_and_30_seconds(
    recorded: RecordedLease, status: int
) -> None:
    recorded.fault("create", *[answer(status, BLOCKED)] * 2)

    recorded.lease()

    assert recorded.times["create"] == [0, 15, 45]
    assert "asking again in 15 s" in recorded.states()[0]
    assert recorded.network.statuses() == ["stopped"]


def test_a_page_that_stays_is_raised_after_three_calls(recorded: RecordedLease) -> None:
    recorded.fault("create", *[answer(404, BLOCKED)] * 9)

    with pytest.raises(NotFoundError):
        recorded.lease()

    assert recorded.times["create"] == [0, 15, 45]


def test_a_pause_does_not_outlast_the_wait_timeout(recorded: RecordedLease) -> None:
    recorded.fault("create", *[answer(404, BLOCKED)] * 9)

    with pytest.raises(NotFoundError):
        recorded.lease(timeout_seconds=40)

    assert recorded.times["create"] == [0, 15]
    assert recorded.network.clock() - recorded.began == 15


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (503, HTML),
        (502, BLOCKED),
        (504, BLOCKED),
        (500, BLOCKED),
        (302, BLOCKED),
        (403, "{}"),
    ],
)
def test_a_create_call_is_not_sent_again_after_any_other_page_or_refusal(
    recorded: RecordedLease, status: int, body: str
) -> None:
    recorded.fault("create", *[answer(status, body)] * 9)

    with pytest.raises(StatusError):
        recorded.lease()

    assert recorded.times["create"] == [0]


NOT_SHARED = requirement(sharing_key="")


@pytest.fixture
def harness(client: DeviceClient, network: FakeNetwork) -> PoolHarness:
    return PoolHarness(client, network.clock, breaker=shared_breaker(network))


def fresh(harness: PoolHarness, *, timeout_seconds: float = 900) -> None:
    """Use a session of its own."""
    harness.use(NOT_SHARED, again=False, timeout_seconds=timeout_seconds)


@pytest.mark.parametrize(
    "faults",
    # A call that was never sent is repeated twice at once.
    [
        [answer(401, "{}")],
        [unreachable] * 3,
    ],
    ids=["401", "unreachable"],
)
def test_a_call_that_contradicts_earlier_ones_is_sent_again(
    harness: PoolHarness, recorded: RecordedLease, faults: list[Fault]
) -> None:
    fresh(harness)
    recorded.fault("create", *faults)
    before = recorded.network.clock()

    fresh(harness)

    assert recorded.times["create"][-1] - (before - recorded.began) >= 15
    assert recorded.network.statuses() == ["stopped"] * 2


@pytest.mark.parametrize(
    "fault", [answer(401, "{}"), unreachable], ids=["401", "unreachable"]
)
def test_what_has_never_worked_fails_at_once(
    recorded: RecordedLease, fault: Fault
) -> None:
    recorded.fault("create", *[fault] * 9)

    with pytest.raises(ServiceError):
        recorded.lease()

    assert recorded.network.clock() - recorded.began < 5


def test_a_token_that_no_longer_works_is_final_after_three_calls(
    harness: PoolHarness,
    recorded: RecordedLease,
) -> None:
    fresh(harness)
    recorded.fault("create", *[answer(401, "{}")] * 9)
    with pytest.raises(UnauthorizedError):
        fresh(harness)

    with pytest.raises(NotAttemptedError):
        fresh(harness)

    assert len(recorded.times["create"]) == 3


def test_during_a_deployment_two_tests_fail_and_the_third_gets_its_device(
    harness: PoolHarness,
    recorded: RecordedLease,
) -> None:
    # Each may have created a session: neither call is repeated.
    recorded.fault("create", *[PAGE_503] * 2)

    for _ in range(2):
        with pytest.raises(StatusError):
            fresh(harness)
    fresh(harness)

    assert recorded.times["create"] == [0, 15, 45]


def test_a_pause_that_lasts_longer_than_the_wait_ends_it_at_once(
    harness: PoolHarness,
    recorded: RecordedLease,
) -> None:
    recorded.fault("create", *[PAGE_503] * 9)
    with pytest.raises(StatusError):
        fresh(harness)

    with pytest.raises(NotAttemptedError, match="503"):
        fresh(harness, timeout_seconds=10)

    assert recorded.network.clock() == recorded.began


def test_a_session_is_not_created_once_the_budget_was_used_up_during_its_wait_for_capacity(
    client: DeviceClient, network: FakeNetwork
) -> None:
    # One boot, and less than the shortest pause after a refusal.
    budget = Budget(0.27, network.clock)
    breaker = RunBreaker(2, network.clock, interval_seconds=5, budget=budget)
    harness = PoolHarness(client, network.clock, breaker=breaker)
    harness.use(requirement("first"))
    network.faults["create"] = [answer(429)]

    with pytest.raises(NotAttemptedError, match="budget") as caught:
        harness.acquire(requirement("second"))

    assert caught.value.verdict is Verdict.BUDGET
    assert network.requests.count("create") == 2
    assert network.statuses() == ["in-progress"]


def test_an_error_after_a_refusal_is_raised(recorded: RecordedLease) -> None:
    recorded.fault("create", answer(429, after="5"), answer(403))

    with pytest.raises(StatusError, match="403"):
        recorded.lease()


def test_a_client_without_a_pool_raises_the_refusal_with_its_retry_time(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["create"] = [answer(429, '{"message": "later"}', after="33")]

    with pytest.raises(NoCapacityError, match="later") as caught:
        client.create(REQUEST)

    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 33)
    assert network.requests == ["create"]


def test_a_failed_poll_is_reported_at_once_then_every_30_seconds_and_when_the_error_changes(
    recorded: RecordedLease,
) -> None:
    down, away = answer(502, "down", after="10"), answer(503, "away", after="10")
    recorded.fault("get", *[down] * 5, away)

    recorded.lease()

    reported = [
        (event, detail_of(event))
        for event in recorded.reporter.events
        if isinstance(event, StateChanged)
    ]
    said = [(ref_of(event).waited_seconds, text[-4:]) for event, text in reported]
    assert said == [(5, "down"), (35, "down"), (55, "away")]


def test_a_session_waiting_for_capacity_reports_it_and_retries_only_when_due(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    network.faults["create"] = [answer(429, after="20")]
    session = harness.new_session(NOT_SHARED)

    session.advance()
    assert not session.is_created
    assert session.due == network.clock() + 20
    network.clock.sleep(5)
    session.advance()
    assert session.due == network.clock() + 15
    assert network.requests == ["create"]

    network.clock.sleep(15)
    session.advance()
    assert session.is_created
    assert session.due == network.clock() + 5
    session.stop()


def test_a_session_is_not_requested_after_its_timeout(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    network.faults["create"] = [answer(429, after="20")]
    session = harness.new_session(NOT_SHARED, timeout_seconds=20)
    session.advance()
    network.clock.sleep(20)

    with pytest.raises(LeaseTimeoutError):
        session.advance()

    assert network.requests == ["create"]


def test_a_session_that_was_never_created_needs_no_stop(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    network.faults["create"] = [answer(429, after="20")]
    session = harness.new_session(NOT_SHARED)
    session.advance()

    session.stop()

    assert network.requests == ["create"]


def test_the_remaining_cost_of_a_session_counts_from_its_creation(
    recorded: RecordedLease,
) -> None:
    recorded.fault("create", answer(429, after="300"))

    recorded.lease()

    created = next(
        event for event in recorded.reporter.events if isinstance(event, Created)
    )
    assert (created.session.waited_seconds, created.session.minutes) == (300, 25)


def test_a_poll_is_not_repeated_before_the_requested_time(
    recorded: RecordedLease,
) -> None:
    recorded.fault("get", answer(429, after="30"))

    recorded.lease()

    assert recorded.times["get"] == [5, 35]


def test_a_short_retry_after_is_waited_for_within_one_poll(
    recorded: RecordedLease,
) -> None:
    recorded.fault("get", answer(503, after="3"))

    recorded.lease()

    assert recorded.times["get"][:2] == [5, 8]


def test_postponed_polls_end_at_the_wait_timeout(recorded: RecordedLease) -> None:
    recorded.fault("get", *[answer(429, after="3600")] * 3)

    with pytest.raises(SessionTimeoutError):
        recorded.lease(timeout_seconds=60)

    assert recorded.times["get"] == [5, 60]


@pytest.mark.parametrize(
    ("after", "times"), [("3", [0, 3, 6]), ("3600", [0, 15, 30]), ("0", [0, 0.5, 1.5])]
)
def test_a_stop_respects_retry_after_up_to_a_limit(
    recorded: RecordedLease,
    client: DeviceClient,
    network: FakeNetwork,
    after: str,
    times: list[float],
) -> None:
    recorded.fault("stop", answer(429, after=after), answer(503, after=after))
    session = client.create(REQUEST)

    client.stop(session.id)

    assert recorded.times["stop"] == times
    assert network.statuses() == ["stopped"]


@pytest.mark.parametrize(("number", "pause"), [(0.0, 4.5), (0.5, 5.0), (1.0, 5.5)])
def test_polls_are_spread_by_a_tenth(
    recorded: RecordedLease, number: float, pause: float
) -> None:
    recorded.fault("get")

    recorded.lease(jitter=WaitPolicy().jitter, random=lambda: number)

    assert recorded.times["get"] == pytest.approx([pause, 2 * pause, 3 * pause])


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("poll_interval_seconds", 0.0, "greater than 0"),
        ("poll_interval_seconds", nan, "greater than 0"),
        ("timeout_seconds", -1.0, "at least 0"),
        ("timeout_seconds", nan, "at least 0"),
    ],
)
def test_a_policy_without_pauses_or_without_end_is_refused(
    field: str, value: float, rule: str
) -> None:
    arguments: dict[str, Any] = {field: value}

    with pytest.raises(ConfigError, match=f"{field}={value} .* must be {rule}"):
        WaitPolicy(**arguments)
