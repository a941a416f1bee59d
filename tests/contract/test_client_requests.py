"""The client validates requests as documented, before anything is sent."""

import re

import pytest

from pytest_device.errors import ConfigError
from pytest_device.sessions.request import SessionRequest
from tests.contract.document import (
    Row,
    accepted,
    arguments,
    each,
    refused,
    request_body,
    snake_case,
    table,
)

pytestmark = pytest.mark.every_python

REQUESTS = ("request_fields", "request_combinations")


def problems_of(row: Row) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        SessionRequest.from_arguments(**arguments(request_body(row)))
    return list(caught.value.problems)


@each(*REQUESTS, where=accepted)
def test_the_client_sends_a_valid_request_unchanged(row: Row) -> None:
    body = request_body(row)

    sent = SessionRequest.from_arguments(**arguments(body)).to_wire()

    assert sent == {"type": "agent-device"} | body | row.get("sent", {})


@each(*REQUESTS, where=refused)
def test_the_client_refuses_an_invalid_request_and_names_the_argument(row: Row) -> None:
    at_fault = "|".join(map(snake_case, row["at_fault"]))

    problems = problems_of(row)

    assert [
        problem for problem in problems if not re.match(rf"({at_fault})\b", problem)
    ] == []
    assert row.get("hint", "") in " ".join(problems)


@each(*REQUESTS, where=lambda row: refused(row) and len(row["at_fault"]) == 1)
def test_the_client_reports_the_invalid_value(row: Row) -> None:
    body, (name,) = request_body(row), row["at_fault"]
    reported = f"={body[name]!r}"[:50] if name in body else "missing"

    assert all(reported in problem for problem in problems_of(row))


@each("session_types")
def test_the_client_accepts_an_idle_limit_for_types_that_have_one(row: Row) -> None:
    wanted = arguments(
        request_body({"change": {"type": row["type"], "maxIdleTimeMinutes": 10}})
    )

    if row["idle_timeout"]:
        assert SessionRequest.from_arguments(**wanted).max_idle_time_minutes == 10
    else:
        with pytest.raises(ConfigError, match=r"^(max_idle_time_minutes|type)="):
            SessionRequest.from_arguments(**wanted)


def test_every_broken_rule_of_a_request_is_reported_at_once() -> None:
    rows = {row["id"]: row for row in table("request_fields")}
    together = {
        **rows["app-id-not-a-uuid"]["change"],
        **rows["name-256"]["change"],
        **rows["duration-116"]["change"],
    }

    reported = problems_of({"change": together})

    assert [problem.partition("=")[0] for problem in reported] == [
        "app_id",
        "name",
        "max_duration_minutes",
    ]


def test_an_account_can_have_its_own_vendor_prefix() -> None:
    request = SessionRequest.from_arguments(
        **arguments(request_body({"change": {"vendorGo": True}}))
    )

    sent = request.to_wire(vendor="maker")

    assert sent["makerGo"] is True
    assert "vendorGo" not in sent
