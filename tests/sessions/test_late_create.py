"""A create call stays open until its session would have ended by itself: a late response still names a session."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx
import pytest

from pytest_device import (
    CreateDelayedError,
    DeviceClient,
    SessionRequest,
    WaitPolicy,
    lease,
)
from pytest_device.events import CreateUnknown, Event, Note, Stopped, detail_of
from pytest_device.report.lines import line_of
from pytest_device.testing import FaultyService
from tests.fakes.http_server import scripted_server, unavailable
from tests.fakes.local_service import APP_ID
from tests.fakes.network import FakeNetwork
from tests.fakes.reporter import RecordingReporter
from tests.sessions.reaper_clients import (
    RUN,
    Served,
    either_way,
    reaper_client,
    reaper_client_at,
    reapers,
    request_at,
    states,
)
from tests.waiting import Checkpoint, eventually

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="ends processes as Unix does"
)

TOKEN: Final = "open-sesame-open"
REQUEST: Final = SessionRequest.from_arguments(
    app_id=APP_ID, platform="android", type="appium"
)
IMPATIENT: Final[dict[str, Any]] = {"min_create_seconds": 0.2}
GIVES_UP: Final = 0.2


def kinds(events: list[Event]) -> list[type[Event]]:
    return [type(event) for event in events]


@either_way
def test_a_session_that_is_created_after_its_test_has_given_up_is_stopped_and_reported(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    service.add_fault("create", "delay", seconds=3600)
    with reaper_client(
        service, tmp_path, is_detached=is_detached, **IMPATIENT
    ) as client:
        with pytest.raises(
            CreateDelayedError, match=r"no response within 0 s\. The call stays open"
        ) as delayed:
            client.create(request_at(service), timeout_seconds=GIVES_UP)

        assert not client.leaves_unknown(delayed.value)  # not yet
        assert eventually(lambda: ("create", None) in service.requests())
        service.remove_faults()
        events = client.close(60)

    assert service.statuses() == ["stopped"]
    assert kinds(events) == [Note, Stopped]
    assert re.fullmatch(
        r"the response to a create call arrived after \d+ s, when its test had given up: android appium named 'a test': "
        "stopped",
        detail_of(events[0]),
    )
    assert not (tmp_path / "runs" / RUN).exists()


def test_the_end_of_the_run_does_not_wait_for_a_response_that_its_reaper_awaits(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    service.add_fault("create", "delay", seconds=3600)
    with reaper_client(service, tmp_path, late_seconds=0.2, **IMPATIENT) as client:
        with pytest.raises(CreateDelayedError):
            client.create(request_at(service), timeout_seconds=GIVES_UP)
        assert eventually(lambda: ("create", None) in service.requests())
        began = time.monotonic()

        (event,) = client.close(600)

        assert time.monotonic() - began < 60
        assert states(tmp_path) == ["asked"]
    assert isinstance(event, CreateUnknown)
    assert event.awaited_until
    assert event.session.minutes == 15
    assert line_of(event) == (
        "android appium: no response to the create call yet: a session named 'a test' may be running for up to 15 "
        f"minutes. Until {event.awaited_until}, the reaper waits for the response, and stops the session as soon as it "
        "has its ID"
    )
    service.remove_faults()
    assert eventually(lambda: service.statuses() == ["stopped"])
    # For the next run to report.
    assert eventually(lambda: states(tmp_path) == ["stopped"])
    assert eventually(lambda: not reapers(mark))


def test_without_a_reaper_the_end_of_the_run_waits_and_says_that_nobody_does_afterwards(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("create", "delay", seconds=3600)
    client = reaper_client_at(
        service, tmp_path, is_detached=False, late_seconds=0.2, **IMPATIENT
    )
    with pytest.raises(CreateDelayedError):
        client.create(request_at(service), timeout_seconds=GIVES_UP)
    began = time.monotonic()

    (event,) = client.close(1)

    assert time.monotonic() - began >= 1
    assert isinstance(event, CreateUnknown)
    assert not event.awaited_until
    service.remove_faults()
    # As long as this process lives.
    assert eventually(lambda: service.statuses() == ["stopped"])


def test_a_create_call_that_is_refused_late_leaves_nothing(tmp_path: Path) -> None:
    checkpoint = Checkpoint()
    with scripted_server(unavailable(checkpoint, {"Retry-After": "5"})) as server:
        served = Served(server.url, TOKEN, str(UUID(int=1)))
        client = reaper_client_at(served, tmp_path, **IMPATIENT)
        with pytest.raises(CreateDelayedError):
            client.create(request_at(served), timeout_seconds=GIVES_UP)
        checkpoint.may_go.set()

        events = client.close(60)

    assert kinds(events) == [Note]
    assert detail_of(events[0]).endswith("refused, no session was created")
    assert not (tmp_path / "runs" / RUN).exists()


def test_a_long_wait_for_the_response_is_shown(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("create", "delay", seconds=3600)
    recorder = RecordingReporter(on_progress=lambda _line: service.remove_faults())
    with reaper_client(
        service, tmp_path, progress_seconds=0.4, reporter=recorder
    ) as client:
        client.create(request_at(service))

    assert re.fullmatch(
        r"android appium: no response to the create call after \d+ s",
        recorder.lines[0],
    )


def test_a_direct_create_call_waits_as_long_as_its_test(
    client: DeviceClient, network: FakeNetwork
) -> None:
    silences: dict[str, float] = {}

    def noted(
        request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        silences[request.method] = request.extensions["timeout"]["read"]
        return carry_out()

    network.faults = {"create": [noted], "get": [noted]}
    clock = network.clock

    with lease(
        client,
        REQUEST,
        policy=WaitPolicy(timeout_seconds=300),
        clock=clock,
        sleep=clock.sleep,
    ):
        pass

    assert silences == {"POST": 300, "GET": 30}
