"""The real client with the local service: a session from its creation to its stop."""

import pytest
from pydantic import SecretStr

from pytest_device import errors
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.lease import lease
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from tests.contract.document import (
    Row,
    arguments,
    each,
    example_config,
    request_body,
    snake_case,
    table,
)
from tests.contract.local_service import BASE_URL, ROBOT_TOKEN, DocumentedService

pytestmark = pytest.mark.every_python

TYPES = [row["type"] for row in table("session_types") if row["requestable"]]
TRIGGER_OF = {
    "new": "get",
    "in-progress": "ready",
    "stopped": "stop",
    "errored": "fail",
}


def is_possible(row: Row) -> bool:
    """Return whether the local service itself sends such replies; other tests send the others to the client."""
    return all(
        status in TRIGGER_OF and has_config == (status == "in-progress")
        for status, has_config in row["replies"]
    )


def request_for(session_type: str) -> SessionRequest:
    return SessionRequest.from_arguments(
        **arguments(request_body({"change": {"type": session_type}}))
    )


def client_of(service: DocumentedService) -> DeviceClient:
    return DeviceClient(BASE_URL, ROBOT_TOKEN, transport=service.transport)


@pytest.mark.parametrize("session_type", TYPES)
def test_a_session_is_created_gets_ready_and_is_stopped(session_type: str) -> None:
    service = DocumentedService()

    with client_of(service) as client:
        created = client.create(request_for(session_type))
        service.trigger("ready", str(created.id))
        ready, stopped, again = (
            client.get(created.id),
            client.stop(created.id),
            client.stop(created.id),
        )

    assert [session.status for session in (created, ready, stopped)] == [
        "new",
        "in-progress",
        "stopped",
    ]
    assert [session.remote_config is None for session in (created, ready, stopped)] == [
        True,
        False,
        True,
    ]
    assert again == stopped


@each("remote_config")
def test_a_connection_detail_reaches_the_client(row: Row) -> None:
    service = DocumentedService()

    with client_of(service) as client:
        session_id = client.create(request_for(row["type"])).id
        service.trigger("ready", str(session_id))
        value = getattr(client.get(session_id).remote_config, snake_case(row["field"]))

    assert (value.get_secret_value() if isinstance(value, SecretStr) else value) == row[
        "example"
    ]


def leased(service: DocumentedService, row: Row) -> Session:
    """Lease a session that takes the state of the row's next reply at each pause of the client."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        (session_id,) = service.runner.records
        service.trigger(TRIGGER_OF[row["replies"][len(waited)][0]], session_id)

    policy = WaitPolicy(timeout_seconds=row.get("timeout_seconds", 900), jitter=0)
    with (
        client_of(service) as client,
        lease(
            client,
            request_for("appium"),
            policy=policy,
            clock=lambda: sum(waited),
            sleep=sleep,
        ) as session,
    ):
        return session


@each("waiting", where=is_possible)
def test_however_waiting_ends_no_session_is_left_running(row: Row) -> None:
    service = DocumentedService()

    if row["outcome"] == "ready":
        config = leased(service, row).remote_config
        assert config is not None
        assert config.model_dump(by_alias=True, exclude_none=True) == example_config(
            "appium"
        )
    else:
        with pytest.raises(getattr(errors, row["outcome"])):
            leased(service, row)

    (session_id,) = service.runner.records
    assert service.session("get", session_id=session_id)["status"] in {
        "stopped",
        "errored",
    }
