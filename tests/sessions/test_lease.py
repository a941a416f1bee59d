"""A leased session is always stopped, and what happened to it is reported."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pytest_device import (
    AppiumConfig,
    ConfigError,
    DeviceClient,
    InvalidRequestError,
    NotFoundError,
    ServiceError,
    Session,
    SessionFailedError,
    SessionRequest,
    SessionStoppedError,
    SessionTimeoutError,
    StatusError,
    StopFailedError,
    TransportError,
    UnauthorizedError,
    UnexpectedReplyError,
    WaitPolicy,
    lease,
)
from pytest_device.events import (
    Created,
    CreateUnknown,
    Note,
    Ready,
    StateChanged,
    StopFailed,
    Stopped,
    detail_of,
    is_proof,
)
from tests.fakes.local_service import APP_ID
from tests.fakes.network import FakeNetwork, Fault
from tests.fakes.reporter import RecordingReporter

pytestmark = pytest.mark.every_python

REQUEST = SessionRequest.from_arguments(
    app_id=APP_ID,
    platform="android",
    type="appium",
    name="a test",
    max_duration_minutes=20,
)


class BlockError(Exception):
    """What a test raises."""


def leased(
    client: DeviceClient,
    network: FakeNetwork,
    *,
    timeout_seconds: float = 900.0,
    error: BaseException | None = None,
    reporter: RecordingReporter | None = None,
) -> Session:
    policy, clock = WaitPolicy(timeout_seconds=timeout_seconds, jitter=0), network.clock
    with lease(
        client,
        REQUEST,
        policy=policy,
        clock=clock,
        sleep=clock.sleep,
        on_event=reporter.event if reporter else None,
    ) as got:
        if error:
            raise error
    return got


def answer(status: int, body: str = "") -> Fault:
    return lambda _request, _carry_out: httpx.Response(status, text=body)


def compressed(
    _request: httpx.Request, carry_out: Callable[[], httpx.Response]
) -> httpx.Response:
    return gzipped(gzip.compress(carry_out().content))


def gzipped(compressed: bytes) -> httpx.Response:
    return httpx.Response(
        200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(compressed)
    )


def lost(error: type[httpx.TransportError], *, carried_out: bool) -> Fault:
    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        if carried_out:
            carry_out()
        raise error("lost on the way")

    return fault


def done(status: int) -> Fault:
    """Perform the call, and return an unrelated response."""

    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        carry_out()
        return httpx.Response(status)

    return fault


def passed() -> Fault:
    return lambda _request, carry_out: carry_out()


def changed(**fields: Any) -> Fault:
    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        return httpx.Response(
            200, json={"data": {**json.loads(carry_out().read())["data"], **fields}}
        )

    return fault


def test_a_session_is_created_waited_for_and_stopped(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    session = leased(client, network, reporter=reporter)

    assert isinstance(session.remote_config, AppiumConfig)
    assert network.requests == ["create", "get", "get", "get", "stop"]
    assert network.statuses() == ["stopped"]
    assert reporter.kinds() == [Created, Ready, Stopped]


def test_a_session_is_polled_every_five_seconds(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    leased(client, network, reporter=reporter)

    ready = next(event for event in reporter.events if isinstance(event, Ready))
    assert ready.session.waited_seconds == 15


@pytest.mark.parametrize(
    "error", [BlockError("a test"), KeyboardInterrupt(), SystemExit(1), GeneratorExit()]
)
def test_a_session_is_stopped_however_its_block_ends(
    client: DeviceClient, network: FakeNetwork, error: BaseException
) -> None:
    with pytest.raises(type(error)) as caught:
        leased(client, network, error=error)

    assert caught.value is error
    assert network.statuses() == ["stopped"]


def test_an_errored_session_is_an_error_with_its_page(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["get"] = [changed(status="errored", remoteConfig=None)]

    with pytest.raises(SessionFailedError, match="failed to start") as caught:
        leased(client, network)

    assert (caught.value.url or "no page") in str(caught.value)
    assert network.requests == ["create", "get", "stop"]


def test_a_session_stopped_by_someone_else_is_an_error(
    client: DeviceClient, network: FakeNetwork
) -> None:
    def stop_first(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        (session,) = network.service.sessions
        network.service.sessions.stop(session.id, "by somebody else")
        return carry_out()

    network.faults["get"] = [stop_first]

    with pytest.raises(SessionStoppedError, match="stopped before it was ready"):
        leased(client, network)


def test_a_session_that_is_not_ready_in_time_is_stopped(
    client: DeviceClient, network: FakeNetwork
) -> None:
    with pytest.raises(
        SessionTimeoutError,
        match=r"not ready after 9 s, it is starting .*device_wait_timeout",
    ) as caught:
        leased(client, network, timeout_seconds=9)

    assert (caught.value.url or "no page") in str(caught.value)
    assert network.statuses() == ["stopped"]


def test_a_session_in_progress_without_connection_details_is_not_ready(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["get"] = [changed(status="in-progress", remoteConfig=None)] * 2

    leased(client, network)

    assert network.requests.count("get") == 3


def test_an_undocumented_status_is_reported_and_the_wait_continues(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    network.faults["get"] = [changed(status="thawing")]

    leased(client, network, reporter=reporter)

    assert any("'thawing' (unknown)" in detail_of(event) for event in reporter.events)


@pytest.mark.parametrize(
    "fault",
    [
        answer(500),
        answer(503, "<html><title>busy</title></html>"),
        answer(429, '{"message": "slow down"}'),
        lost(httpx.ReadTimeout, carried_out=True),
        lost(httpx.ConnectError, carried_out=False),
        lost(httpx.RemoteProtocolError, carried_out=True),
    ],
)
def test_temporary_errors_are_tolerated_while_waiting(
    client: DeviceClient, network: FakeNetwork, fault: Fault
) -> None:
    network.faults["get"] = [fault] * 7

    leased(client, network)

    assert network.statuses() == ["stopped"]


def test_a_lasting_error_ends_in_a_timeout(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["get"] = [answer(500, "the disk is full")] * 100

    with pytest.raises(SessionTimeoutError) as caught:
        leased(client, network, timeout_seconds=60)

    assert "the disk is full" in str(caught.value)
    assert network.statuses() == ["stopped"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (answer(403, "no"), StatusError),
        (changed(id="7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3d"), UnexpectedReplyError),
    ],
)
def test_a_final_error_ends_the_wait_and_the_session(
    client: DeviceClient, network: FakeNetwork, fault: Fault, error: type[ServiceError]
) -> None:
    network.faults["get"] = [fault]

    with pytest.raises(error):
        leased(client, network)

    assert network.statuses() == ["stopped"]


ODD = [
    (answer(404, '{"errors": [{"code": "NOT_FOUND"}]}'), NotFoundError),
    (answer(401, '{"message": "the cache of tokens is cold"}'), UnauthorizedError),
    (answer(404, "<html>no such page</html>"), NotFoundError),
    (answer(403, "<html>blocked</html>"), StatusError),
    (answer(302, "<html>Moved</html>"), StatusError),
    (answer(200, "<html>Welcome</html>"), UnexpectedReplyError),
    (answer(200, '{"data": {}}'), UnexpectedReplyError),
]


@pytest.mark.parametrize("fault", [fault for fault, _ in ODD])
def test_responses_of_lagging_replicas_and_gateways_are_tolerated(
    client: DeviceClient,
    network: FakeNetwork,
    reporter: RecordingReporter,
    fault: Fault,
) -> None:
    network.faults["get"] = [fault] * 3

    leased(client, network, reporter=reporter)

    assert network.requests == ["create", *["get"] * 4, "stop"]
    assert reporter.kinds().count(Ready) == 1


@pytest.mark.parametrize(("fault", "error"), ODD)
def test_such_responses_for_a_minute_end_the_wait_and_the_session(
    client: DeviceClient, network: FakeNetwork, fault: Fault, error: type[ServiceError]
) -> None:
    network.faults["get"] = [fault] * 100
    began = network.clock()

    with pytest.raises(error):
        leased(client, network)

    assert 60 <= network.clock() - began < 70
    assert network.statuses() == ["stopped"]


def test_a_refused_create_is_not_repeated(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["create"] = [
        answer(400, '{"message": "simulator access is not enabled"}')
    ]

    with pytest.raises(InvalidRequestError, match="simulator access is not enabled"):
        leased(client, network)

    assert network.requests == ["create"]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_create_that_fails_in_the_service_is_not_repeated(
    client: DeviceClient, network: FakeNetwork, status: int
) -> None:
    network.faults["create"] = [answer(status)]

    with pytest.raises(StatusError):
        leased(client, network)

    assert network.requests == ["create"]


@pytest.mark.parametrize(
    "error",
    [httpx.ReadTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError],
)
def test_a_create_with_an_unusable_response_is_not_repeated_and_reported_as_unknown(
    client: DeviceClient,
    network: FakeNetwork,
    reporter: RecordingReporter,
    error: type[httpx.TransportError],
) -> None:
    network.faults["create"] = [lost(error, carried_out=True)]

    with pytest.raises(TransportError) as caught:
        leased(client, network, reporter=reporter)

    assert caught.value.sent
    (note,) = caught.value.__notes__
    assert "'a test'" in note
    # The maximum duration and the five minutes of cleaning up.
    assert "25 minutes" in note
    assert network.requests == ["create"]
    assert reporter.kinds() == [CreateUnknown]


def test_a_create_that_was_certainly_not_sent_is_repeated(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["create"] = [
        lost(httpx.ConnectError, carried_out=False),
        lost(httpx.ConnectTimeout, carried_out=False),
    ]

    leased(client, network)

    assert network.requests[:3] == ["create"] * 3
    assert network.statuses() == ["stopped"]


def test_a_session_with_an_unreadable_create_response_is_stopped_by_its_id(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["create"] = [changed(status=7)]

    with pytest.raises(UnexpectedReplyError, match="status"):
        leased(client, network)

    assert network.statuses() == ["stopped"]


def test_invalid_optional_fields_are_tolerated_and_named(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    fields = {
        "createdAt": "yesterday",
        "jobRunId": None,
        "url": "/x",
        "maxDurationMinutes": None,
        "platform": None,
    }
    odd = changed(**fields, type=7)
    network.faults = {
        "create": [odd],
        "get": [odd] * 2 + [changed(**fields, type=7, startedAt="later")],
        "stop": [odd],
    }

    session = leased(client, network, reporter=reporter)

    assert isinstance(session.remote_config, AppiumConfig)
    assert (session.type, session.platform, session.max_duration_minutes) == (
        "appium",
        "android",
        20,
    )
    assert isinstance(reporter.events[-1], Stopped)
    invalid_fields = (
        "createdAt, jobRunId, maxDurationMinutes, platform, startedAt, type, url"
    )
    assert [event.text for event in reporter.events if isinstance(event, Note)] == [
        f"ignored unusable fields in the service's sessions: {invalid_fields}"
    ]


@pytest.mark.parametrize(
    ("details", "missing"),
    [
        ({"capabilities": {}}, "appiumUrl"),
        ({"appiumUrl": "http://devices.example:4723"}, "capabilities"),
        (
            {"appiumUrl": "http://devices.example:4723", "capabilities": None},
            "capabilities",
        ),
    ],
)
def test_a_timeout_names_the_missing_connection_detail(
    client: DeviceClient,
    network: FakeNetwork,
    details: dict[str, object],
    missing: str,
) -> None:
    network.faults["get"] = [changed(status="in-progress", remoteConfig=details)] * 100

    with pytest.raises(
        SessionTimeoutError, match=rf"in-progress without remoteConfig\.{missing}"
    ):
        leased(client, network, timeout_seconds=60)

    assert network.statuses() == ["stopped"]


@pytest.mark.parametrize("operation", ["create", "get"])
def test_a_session_of_another_platform_than_requested_is_not_used_but_stopped(
    client: DeviceClient, network: FakeNetwork, operation: str
) -> None:
    network.faults[operation] = [changed(platform="ios")]

    error = f"^{operation}: requested android appium, the service returned ios appium"
    with pytest.raises(UnexpectedReplyError, match=error):
        leased(client, network)

    assert network.statuses() == ["stopped"]


def test_a_platform_or_type_that_the_document_lacks_is_not_another_one(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["create"] = [changed(platform="hologram", type="hologram")]

    leased(client, network)

    assert network.statuses() == ["stopped"]


URL_ONLY = {"appiumUrl": "http://devices.example:4723"}


def test_capabilities_that_come_late_are_used(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    incomplete = changed(status="in-progress", remoteConfig=URL_ONLY)
    complete = changed(
        status="in-progress",
        remoteConfig={**URL_ONLY, "capabilities": {"appium:udid": "x"}},
    )
    network.faults["get"] = [*[incomplete] * 3, complete]

    session = leased(client, network, reporter=reporter)

    assert isinstance(session.remote_config, AppiumConfig)
    assert session.remote_config.capabilities == {"appium:udid": "x"}
    assert Note not in reporter.kinds()


@pytest.mark.parametrize(
    "reason",
    [
        {"failureReason": "no disk"},
        {"error": "", "errorMessage": "no disk"},
        {"error": {"code": "E17", "details": {"host": "h1"}, "message": "no disk"}},
        {"error": {"code": None}, "reason": [{"text": "no disk"}]},
    ],
)
def test_the_reason_of_an_errored_session_is_reported(
    client: DeviceClient, network: FakeNetwork, reason: dict[str, object]
) -> None:
    network.faults["get"] = [changed(status="errored", remoteConfig=None, **reason)]

    with pytest.raises(SessionFailedError, match="failed to start: no disk"):
        leased(client, network)


@pytest.mark.parametrize(
    "fault",
    [answer(status) for status in (429, 500, 400, 401, 403, 404, 409, 422, 423, 302)]
    + [answer(403, "<html>blocked"), lost(httpx.ReadTimeout, carried_out=False)],
)
def test_a_failed_stop_is_repeated(
    client: DeviceClient,
    network: FakeNetwork,
    reporter: RecordingReporter,
    fault: Fault,
) -> None:
    network.faults["stop"] = [fault] * 2

    leased(client, network, reporter=reporter)

    assert network.statuses() == ["stopped"]
    assert network.requests[-5:] == ["stop", "get", "stop", "get", "stop"]
    assert is_proof(reporter.events[-1])


@pytest.mark.parametrize(
    "fault", [done(204), done(202), done(500), done(404), changed(status="in-progress")]
)
def test_a_session_is_looked_up_before_its_stop_counts_as_unconfirmed(
    client: DeviceClient,
    network: FakeNetwork,
    reporter: RecordingReporter,
    fault: Fault,
) -> None:
    network.faults["stop"] = [fault] * 100

    leased(client, network, reporter=reporter)

    assert network.requests[-2:] == ["stop", "get"]
    assert isinstance(reporter.events[-1], Stopped)


def test_a_404_to_a_stop_proves_nothing(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    network.faults["stop"] = [answer(404, '{"errors": [{"code": "NOT_FOUND"}]}')] * 100
    network.faults["get"] = [
        passed(),
        passed(),
        passed(),
        *[answer(404, '{"errors": [{"code": "NOT_FOUND"}]}')] * 100,
    ]

    with pytest.raises(StopFailedError, match="404"):
        leased(client, network, reporter=reporter)

    assert reporter.kinds()[-1] is StopFailed


def test_a_session_that_the_service_never_knew_does_not_count_as_stopped(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    another = "9a9a9a9a-0f4c-4f2e-9b0a-0c9d6a1f2b3c"
    network.faults["create"] = [changed(id=another)]

    with pytest.raises(NotFoundError) as caught:
        leased(client, network, reporter=reporter)

    assert reporter.kinds()[-1] is StopFailed
    assert "returned 404 for a session" in caught.value.__notes__[0]


@pytest.mark.parametrize("fault", [answer(500, "on fire"), answer(403)])
def test_a_session_that_cannot_be_stopped_is_reported_with_page_limit_and_command(
    client: DeviceClient,
    network: FakeNetwork,
    reporter: RecordingReporter,
    fault: Fault,
) -> None:
    network.faults["stop"] = [fault] * 3

    with pytest.raises(StopFailedError) as caught:
        leased(client, network, reporter=reporter)

    message = str(caught.value)
    assert "25 more minutes" in message
    assert (
        f"pytest-device stop --url {client.base_url} {caught.value.session_id}"
        in message
    )
    assert (caught.value.url or "no page") in message
    assert reporter.kinds()[-1] is StopFailed


def test_a_failed_stop_does_not_hide_the_error_of_the_block(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["stop"] = [answer(500)] * 3

    with pytest.raises(BlockError) as caught:
        leased(client, network, error=BlockError("a test"))

    (note,) = caught.value.__notes__
    assert "could not be stopped" in note


def test_running_time_is_counted_by_the_services_timestamps(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    with lease(
        client,
        REQUEST,
        clock=network.clock,
        sleep=network.clock.sleep,
        on_event=reporter.event,
    ):
        network.clock.sleep(30)

    stopped = reporter.events[-1]
    assert isinstance(stopped, Stopped)
    assert stopped.running_seconds == 30


def body(status: int, text: str) -> Fault:
    """Perform the create call, and return its session in an unexpected form."""

    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        session_id = json.loads(carry_out().read())["data"]["id"]
        return httpx.Response(status, text=text.replace("ID", session_id))

    return fault


@pytest.mark.parametrize(
    "fault",
    [
        body(200, '{"id": "ID"}'),
        body(200, '{"data": {"id": "ID"}} trailing'),
        body(200, '{"data": {"id": "ID", "status": "ne'),
        body(201, '{"data": {"id": "ID"}}'),
        changed(type="argent"),
        changed(platform="ios"),
    ],
)
def test_a_session_in_an_invalid_response_is_still_stopped(
    client: DeviceClient,
    network: FakeNetwork,
    reporter: RecordingReporter,
    fault: Fault,
) -> None:
    network.faults["create"] = [fault]

    with pytest.raises(UnexpectedReplyError):
        leased(client, network, reporter=reporter)

    assert network.statuses() == ["stopped"]
    assert reporter.kinds() == [Created, Stopped]


@pytest.mark.parametrize(
    "fault",
    [body(200, "<html>"), body(202, ""), body(502, "bad gateway"), body(200, "{}")],
)
def test_a_create_response_without_a_session_is_reported_as_unknown(
    client: DeviceClient,
    network: FakeNetwork,
    reporter: RecordingReporter,
    fault: Fault,
) -> None:
    network.faults["create"] = [fault]

    with pytest.raises(ServiceError) as caught:
        leased(client, network, reporter=reporter)

    assert "may be running" in caught.value.__notes__[0]
    assert reporter.kinds() == [CreateUnknown]


def test_an_interrupt_during_create_is_reported_as_unknown(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    def interrupt(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        carry_out()
        raise KeyboardInterrupt

    network.faults["create"] = [interrupt]

    with pytest.raises(KeyboardInterrupt):
        leased(client, network, reporter=reporter)

    assert reporter.kinds() == [CreateUnknown]


def test_an_interrupt_during_the_stop_does_not_prevent_it(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    def interrupt(
        _request: httpx.Request, _carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        raise KeyboardInterrupt

    network.faults["stop"] = [interrupt]

    with pytest.raises(KeyboardInterrupt):
        leased(client, network, reporter=reporter)

    assert network.statuses() == ["stopped"]
    assert reporter.kinds()[-1] is Stopped


def test_a_stop_response_with_another_session_proves_nothing(
    client: DeviceClient, network: FakeNetwork
) -> None:
    another = changed(id="7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3d")
    network.faults["stop"] = [another]

    leased(client, network)  # the lookup proves it

    network.faults["stop"], network.faults["get"] = (
        [another] * 3,
        [changed()] * 3 + [another] * 3,
    )
    with pytest.raises(StopFailedError, match="returned session 7d7a1f0e"):
        leased(client, network)
    assert network.requests[-6:] == ["stop", "get"] * 3


def test_a_compressed_response_is_refused_before_decompression(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["get"] = [
        lambda _request, _carry_out: httpx.Response(
            200, headers={"Content-Encoding": "br"}
        )
    ] * 100

    with pytest.raises(UnexpectedReplyError, match="compressed"):
        leased(client, network)

    assert network.statuses() == ["stopped"]


def test_responses_compressed_by_a_proxy_are_decompressed(
    client: DeviceClient, network: FakeNetwork
) -> None:
    for operation in ("create", "get", "stop"):
        network.faults[operation] = [compressed] * 100

    leased(client, network)

    assert network.statuses() == ["stopped"]


def test_an_overlarge_compressed_response_is_refused(
    client: DeviceClient, network: FakeNetwork
) -> None:
    compressed = gzip.compress(bytes(4 * 1024 * 1024))
    network.faults["get"] = [lambda _request, _carry_out: gzipped(compressed)] * 100

    with pytest.raises(
        UnexpectedReplyError,
        match="the decompressed response is larger than 1048576 bytes",
    ):
        leased(client, network)

    assert network.statuses() == ["stopped"]


def test_an_unchanged_wait_is_reported_from_time_to_time(
    client: DeviceClient, network: FakeNetwork, reporter: RecordingReporter
) -> None:
    network.faults["get"] = [changed(status="new", remoteConfig=None)] * 20

    leased(client, network, reporter=reporter)

    assert [
        detail_of(event) for event in reporter.events if isinstance(event, StateChanged)
    ] == ["new"] * 3


def test_no_connection_detail_in_an_unreadable_response_is_shown(
    client: DeviceClient, network: FakeNetwork
) -> None:
    network.faults["get"] = [
        answer(200, '{"data": {"remoteConfig": {"toolsAuthToken": "sesame-open"}}} x')
    ] * 100

    with pytest.raises(UnexpectedReplyError) as caught:
        leased(client, network)

    assert "sesame" not in str(caught.value)


def test_an_invalid_id_is_refused_before_anything_is_sent(
    client: DeviceClient, network: FakeNetwork
) -> None:
    with pytest.raises(ConfigError, match=r"'\.\./x' must be a UUID"):
        client.stop("../x")

    assert network.requests == []


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_an_unusable_proxy_is_reported_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "nonsense://127.0.0.1:1")

    with pytest.raises(ConfigError, match=variable):
        DeviceClient("https://devices.example", "open-sesame-open")


def test_an_unusable_service_url_is_a_configuration_error(
    network: FakeNetwork, reporter: RecordingReporter
) -> None:
    client = DeviceClient("https://xn--", "open-sesame-open")

    with pytest.raises(ConfigError, match="xn--"):
        leased(client, network, reporter=reporter)

    assert reporter.events == []
