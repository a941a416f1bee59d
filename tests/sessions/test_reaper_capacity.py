"""A create call that the service refuses for now can be sent again through the reaper, and leaves nothing behind."""

import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from pytest_device import NoCapacityError, StatusError
from pytest_device.events import CreateUnknown, Event
from pytest_device.testing import FaultyService
from tests.fakes.http_server import scripted_server, unavailable
from tests.sessions.reaper_clients import (
    Served,
    either_way,
    entries,
    reaper_client,
    reaper_client_at,
    request_at,
    states,
)
from tests.waiting import Checkpoint

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="ends processes as Unix does"
)

IN_30: Mapping[str, Any] = {
    "body": '{"message": "full"}',
    "headers": {"Retry-After": "30"},
}


@either_way
@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_has_its_retry_time_and_leaves_nothing(
    service: FaultyService, tmp_path: Path, status: int, *, is_detached: bool
) -> None:
    service.add_fault("create", "reply", status=status, **IN_30)
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        with pytest.raises(NoCapacityError, match="full") as caught:
            client.create(request_at(service))

        assert (caught.value.status, caught.value.retry_after_seconds) == (status, 30)
        assert not client.leaves_unknown(caught.value)
        assert (entries(tmp_path), client.unfinished(), client.close(5)) == ([], 0, [])


def test_after_a_refusal_the_same_call_creates_a_session(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("create", "reply", status=429)
    with reaper_client(service, tmp_path) as client:
        with pytest.raises(NoCapacityError):
            client.create(request_at(service))

        session = client.create(request_at(service))

        assert [entry.session_id for entry in entries(tmp_path)] == [str(session.id)]
        client.stop(session.id)
    assert service.statuses() == ["stopped"]


@pytest.mark.parametrize(
    "fault", [{"body": "<html>"} | {"headers": {"Retry-After": "5"}}, {"body": "busy"}]
)
def test_a_503_from_a_gateway_stays_in_the_ledger_as_lost(
    service: FaultyService, tmp_path: Path, fault: Mapping[str, Any]
) -> None:
    service.add_fault("create", "reply", status=503, carried_out=True, **fault)
    with reaper_client(service, tmp_path) as client:
        with pytest.raises(StatusError) as caught:
            client.create(request_at(service))

        assert client.leaves_unknown(caught.value)
        assert states(tmp_path) == ["lost"]


def test_a_stop_is_not_retried_before_the_requested_time(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("stop", "reply", status=503, headers={"Retry-After": "2"})
    with reaper_client(service, tmp_path, stop_seconds=60) as client:
        session = client.create(request_at(service))
        began = time.monotonic()

        client.stop(session.id)

        assert time.monotonic() - began >= 2
        assert [
            status for operation, status in service.requests() if operation == "stop"
        ] == [503, 200]


@pytest.mark.parametrize(
    ("headers", "reported"), [({"Retry-After": "5"}, []), ({}, [CreateUnknown])]
)
def test_an_interrupted_create_is_unknown_unless_it_is_refused_later(
    tmp_path: Path,
    headers: dict[str, str],
    reported: list[type[Event]],
) -> None:
    checkpoint = Checkpoint()

    def interrupt() -> None:
        checkpoint.reached.wait(60)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with scripted_server(unavailable(checkpoint, headers)) as server:
        served = Served(server.url, "open-sesame-open", str(UUID(int=1)))
        client = reaper_client_at(served, tmp_path)
        interrupting = threading.Thread(target=interrupt)
        try:
            interrupting.start()
            with pytest.raises(KeyboardInterrupt):
                client.create(request_at(served))
        finally:
            checkpoint.may_go.set()
            interrupting.join(60)
            events = client.close(60)

    assert [type(event) for event in events] == reported
