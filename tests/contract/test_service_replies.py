"""The local service returns sessions, states and refusals as documented."""

from typing import Any

import httpx
import pytest

from pytest_device import errors
from pytest_device.service.runners.base import Running
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.sessions.models import Session
from pytest_device.sessions.replies import read_session
from tests.contract.document import Row, each, example_config, is_a, request_body, table
from tests.contract.local_service import OPERATIONS, TARGETS, DocumentedService

pytestmark = pytest.mark.every_python

STATUSES = [row["word"] for row in table("words") if row["set"] == "Status"]
TYPES = [row["type"] for row in table("session_types") if row["requestable"]]


def assert_is(expected: str, value: object, before: object) -> None:
    match expected:
        case "null":
            assert value is None
        case "set":
            assert value is not None
        case "same":
            assert value == before
        case _:
            raise ValueError(expected)


@pytest.mark.parametrize("status", STATUSES)
@each("session_fields")
def test_every_field_is_present_with_its_type(row: Row, status: str) -> None:
    session = DocumentedService().session_in(
        status, name="a name", maxIdleTimeMinutes=10
    )

    value = session[row["field"]]

    assert row["nullable"] if value is None else is_a(row["type"], value)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("session_type", TYPES)
def test_there_are_no_other_fields_and_the_client_reads_them(
    session_type: str, status: str
) -> None:
    wire = DocumentedService().session_in(status, type=session_type)

    session = Session.from_wire(wire)

    assert (session.type, session.status, session.model_extra) == (
        session_type,
        status,
        {},
    )


@each("echo")
def test_the_requested_values_are_reported(row: Row) -> None:
    value = DocumentedService().create(**row["change"])[row["field"]]

    match row["expected"]:
        case {"type": str(kind)}:
            assert is_a(kind, value)
        case expected:
            assert value == expected


def test_the_page_of_a_session_is_not_its_preview() -> None:
    session = DocumentedService().session_in("in-progress", type="web-preview-only")

    assert session["url"] != session["remoteConfig"]["webPreviewUrl"]


@each("session_states")
def test_a_status_has_its_fields(row: Row) -> None:
    assert_is(
        row["expected"],
        DocumentedService().session_in(row["status"])[row["field"]],
        None,
    )


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("session_type", TYPES)
def test_connection_details_match_the_type_and_exist_only_while_in_progress(
    session_type: str, status: str
) -> None:
    config = DocumentedService().session_in(status, type=session_type)["remoteConfig"]

    assert config == (example_config(session_type) if status == "in-progress" else None)


@pytest.mark.parametrize("session_type", TYPES)
def test_simulated_devices_return_the_connection_details_of_their_type(
    session_type: str,
) -> None:
    rows = {
        row["field"]: row
        for row in table("remote_config")
        if row["type"] == session_type
    }
    runner = SimulatedRunner(clock=lambda: 0.0)
    runner.start("a-session", {"type": session_type, "platform": "android"})

    boot = runner.record("a-session").boot

    assert isinstance(boot, Running)
    assert (
        {field for field, row in rows.items() if row["required"]}
        <= boot.remote_config.keys()
        <= rows.keys()
    )
    assert all(
        is_a(rows[field]["json"], value) for field, value in boot.remote_config.items()
    )


@each("transitions")
def test_a_trigger_leads_to_its_state(row: Row) -> None:
    _, after = played(row)

    assert after["status"] == row["to"]


@pytest.mark.parametrize("field", ["startedAt", "finishedAt", "remoteConfig"])
@each("transitions")
def test_a_trigger_has_its_effects(row: Row, field: str) -> None:
    before, after = played(row)

    assert_is(row[field], after[field], before.get(field))


@each("transitions", where=lambda row: bool(row.get("unchanged")))
def test_a_trigger_without_effect_changes_nothing(row: Row) -> None:
    before, after = played(row)

    assert after == before


@each("transitions")
def test_timestamps_are_in_order(row: Row) -> None:
    _, session = played(row)

    times = [
        session[name]
        for name in ("createdAt", "startedAt", "finishedAt")
        if session[name]
    ]

    assert times == sorted(times)
    assert session["updatedAt"] >= times[-1]


@each("operations")
def test_a_success_has_the_documented_status(row: Row) -> None:
    assert known_call(row["operation"]).status_code == row["success"]


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@each("headers", where=lambda row: row["on"] == "success")
def test_a_success_has_all_documented_headers(row: Row, operation: str) -> None:
    reply = known_call(operation)

    assert [
        value.partition(";")[0] for value in reply.headers.get_list(row["name"])
    ] == [row["value"]]


@each("statuses")
def test_a_caller_gets_the_documented_status(row: Row) -> None:
    reply = call_of(row)

    assert reply.status_code == row["status"]
    assert row.get("code", "") in reply.text
    assert row.get("reported", "") in reply.text


@each("statuses", where=lambda row: row["status"] != 200)
def test_the_client_raises_the_right_error_for_a_refusal(row: Row) -> None:
    reply = call_of(row)

    with pytest.raises(errors.StatusError) as caught:
        read_session(row["operation"], reply.status_code, reply.content)

    assert type(caught.value) is getattr(errors, row["error"])
    assert caught.value.status == row["status"]


def played(row: Row) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a session before and after the trigger of a transition."""
    service = DocumentedService()
    if row["from"] is None:
        return {}, service.create()
    before = service.session_in(row["from"])
    return before, service.trigger(row["trigger"], before["id"])


def known_call(operation: str, caller: str = "robot-developer") -> httpx.Response:
    service = DocumentedService()
    return service.call(
        operation,
        session_id=service.create()["id"],
        body=request_body({}),
        caller=caller,
    )


def call_of(row: Row) -> httpx.Response:
    if row["caller"] == "without-simulator-access":
        return DocumentedService(simulator_access=False).call(
            row["operation"], body=request_body({})
        )
    if row["target"] == "known":
        return known_call(row["operation"], row["caller"])
    target = TARGETS[row["target"]]
    body = request_body({"change": {"appId": target}})
    return DocumentedService().call(
        row["operation"], session_id=target, body=body, caller=row["caller"]
    )
