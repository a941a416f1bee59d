"""The local service validates requests as documented."""

import re

import pytest

from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.request import SessionRequest
from tests.contract.document import (
    Row,
    accepted,
    arguments,
    each,
    refused,
    request_body,
)
from tests.contract.local_service import BASE_URL, ROBOT_TOKEN, DocumentedService

pytestmark = pytest.mark.every_python

REQUESTS = ("request_fields", "request_combinations")


def assert_refused(row: Row, service: DocumentedService) -> None:
    at_fault = "|".join(row["at_fault"])

    reply = service.call("create", body=request_body(row))

    messages = [error["message"] for error in reply.json()["errors"]]
    assert reply.status_code == 400
    assert messages
    assert [
        message for message in messages if not re.match(rf"({at_fault})\b", message)
    ] == []
    assert row.get("hint", "") in " ".join(messages)


@each(*REQUESTS, where=accepted)
def test_the_service_accepts_a_valid_request(row: Row) -> None:
    assert DocumentedService().call("create", body=request_body(row)).status_code == 200


@each(*REQUESTS, where=accepted)
def test_the_service_accepts_the_clients_form_of_a_valid_request(row: Row) -> None:
    request = SessionRequest.from_arguments(**arguments(request_body(row)))

    with DeviceClient(
        BASE_URL, ROBOT_TOKEN, transport=DocumentedService().transport
    ) as client:
        session = client.create(request)

    assert (session.app_id, session.platform, session.type) == (
        request.app_id,
        request.platform,
        request.type,
    )


@each(*REQUESTS, where=refused)
def test_the_service_refuses_an_invalid_request_and_names_the_option(row: Row) -> None:
    assert_refused(row, DocumentedService())


@each("account_limit", where=accepted)
def test_the_service_accepts_a_duration_within_the_limit_of_the_account(
    row: Row,
) -> None:
    service = DocumentedService(limit_minutes=row["limit_minutes"])

    session = service.session("create", body=request_body(row))

    assert session["maxDurationMinutes"] <= row["limit_minutes"]


@each("account_limit", where=refused)
def test_the_service_refuses_a_duration_above_the_limit_of_the_account(
    row: Row,
) -> None:
    assert_refused(row, DocumentedService(limit_minutes=row["limit_minutes"]))


@each("session_types")
def test_the_service_accepts_an_idle_limit_for_types_that_have_one(row: Row) -> None:
    body = request_body({"change": {"type": row["type"], "maxIdleTimeMinutes": 10}})

    assert (DocumentedService().call("create", body=body).status_code == 200) == row[
        "idle_timeout"
    ]
