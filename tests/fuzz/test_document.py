"""The OpenAPI document matches the rules and the tables of the device session document."""

import pytest
from jsonschema_rs import Draft202012Validator, meta

from pytest_device.service.openapi import CREATE_BODY, DOCUMENT, REMOTE_CONFIGS, SESSION
from pytest_device.service.rules import CreateBody
from tests.contract.document import (
    Row,
    accepted,
    each,
    example_config,
    example_session,
    refused,
    request_body,
    table,
)
from tests.contract.local_service import OPERATIONS, DocumentedService
from tests.contract.test_service_replies import STATUSES, TYPES, call_of

BODY = Draft202012Validator(dict(CREATE_BODY))
REPORTED = Draft202012Validator(dict(SESSION), validate_formats=True)
REQUESTS = ("request_fields", "request_combinations")
NOT_IN_A_SCHEMA = {
    "archive-without-host",
    "archive-open-bracket",
    "archive-port-a-word",
    "archive-port-too-large",
    "archive-port-0",
    "idle-equal-to-duration",
    "idle-above-duration",
    "idle-above-duration-zero",
}
"""Rows with a rule that a schema can't express."""


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_every_schema_in_the_document_is_valid(name: str) -> None:
    meta.validate(DOCUMENT["components"]["schemas"][name])


def test_the_document_has_all_options_of_the_rules() -> None:
    assert CREATE_BODY["properties"].keys() == CreateBody.__annotations__.keys()


@each(*REQUESTS, where=accepted)
def test_a_valid_request_matches_the_document(row: Row) -> None:
    assert BODY.is_valid(request_body(row))


@each(*REQUESTS, where=refused)
def test_an_invalid_request_does_not_unless_a_schema_cannot_express_the_rule(
    row: Row,
) -> None:
    assert BODY.is_valid(request_body(row)) == (row["id"] in NOT_IN_A_SCHEMA)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("session_type", TYPES)
def test_the_services_sessions_match_the_document(
    session_type: str, status: str
) -> None:
    REPORTED.validate(DocumentedService().session_in(status, type=session_type))


@each("session_fields")
def test_a_session_without_a_field_does_not_match(row: Row) -> None:
    session = example_session(
        remoteConfig=example_config("agent-device"),
        status="in-progress",
        finishedAt=None,
    )

    assert REPORTED.is_valid(session)
    assert not REPORTED.is_valid(
        {name: value for name, value in session.items() if name != row["field"]}
    )


# Here it may be stopped while new.
@each("session_states", where=lambda row: row["id"] != "stopped-started-at")
def test_a_status_without_its_fields_does_not_match(row: Row) -> None:
    session = DocumentedService().session_in(row["status"])
    wrong = (
        None
        if row["expected"] == "set"
        else example_config("agent-device") or "2026-03-04T05:36:37.001Z"
    )

    assert not REPORTED.is_valid(session | {row["field"]: wrong})


def test_every_type_with_connection_details_matches_the_document() -> None:
    rows = table("remote_config")

    assert {row["type"] for row in rows} == set(REMOTE_CONFIGS)
    assert {(row["type"], row["field"], row["required"]) for row in rows} == {
        (kind, field, field in details["required"])
        for kind, details in REMOTE_CONFIGS.items()
        for field in details["properties"]
    }


@each("statuses")
def test_every_response_matches_the_document(row: Row) -> None:
    reply = call_of(row)
    operation = OPERATIONS[row["operation"]]
    path = operation["path"].replace(":deviceRunSessionId", "{deviceRunSessionId}")
    answers = DOCUMENT["paths"][path][operation["method"].lower()]["responses"]

    schema = answers[str(reply.status_code)]["content"]["application/json"]["schema"]

    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(
        reply.json()
    )
