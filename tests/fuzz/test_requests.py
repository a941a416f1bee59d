"""The client, the local service and its document agree about every create request."""

import datetime as dt
import json
import re
import string
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jsonschema_rs
from hypothesis import example, given, settings
from hypothesis.strategies import (
    binary,
    builds,
    dictionaries,
    from_type,
    lists,
    one_of,
    sampled_from,
    sets,
    text,
    uuids,
)

from pytest_device.errors import ConfigError
from pytest_device.service.openapi import CREATE_BODY
from pytest_device.service.rules import InvalidBodyError, check
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import Platform, SessionType
from tests.contract.document import arguments, snake_case
from tests.fuzz.values import NEAR, any_json, bodies

SCHEMA = jsonschema_rs.Draft202012Validator(dict(CREATE_BODY))
NOT_IN_THE_SCHEMA = {"applicationArchiveUrl", "maxIdleTimeMinutes", "name"}
"""Options with a rule that a schema can't express: hosts and ports, the order of the limits, blank text."""

ARGUMENTS = sorted(map(snake_case, NEAR))
python_values = one_of(
    any_json,
    binary(),
    uuids(),
    lists(uuids()),
    sets(text()),
    text().map(lambda one: (one,)),
    sampled_from([*Platform, *SessionType, object, Ellipsis, NotImplemented]),
    builds(object),
    from_type(Decimal),
    from_type(Fraction),
    from_type(complex),
    from_type(dt.datetime),
)


def problems(body: Any) -> set[str | None]:
    """Return the options that the service rejects."""
    try:
        check(body)
    except InvalidBodyError as error:
        return {problem.option for problem in error.problems}
    return set()


def outcome(
    given_arguments: dict[str, Any],
) -> tuple[SessionRequest | None, Sequence[str]]:
    """Return the request, or the client's problems with the arguments."""
    try:
        return SessionRequest.from_arguments(**given_arguments), ()
    except ConfigError as error:
        return None, error.problems


@settings(max_examples=settings().max_examples * 5)
@given(bodies() | bodies(any_json))
def test_client_and_service_accept_the_same_requests(body: dict[str, Any]) -> None:
    # None is left out.
    given_body = {option: value for option, value in body.items() if value is not None}

    request, _reported = outcome(arguments(given_body))

    assert (request is None) == bool(problems(given_body))


@settings(max_examples=settings().max_examples * 5)
@given(bodies() | bodies(any_json))
def test_service_and_document_accept_the_same_requests(body: dict[str, Any]) -> None:
    at_fault = problems(body)

    if at_fault <= NOT_IN_THE_SCHEMA:
        assert at_fault or is_in_the_schema(body)
    else:
        assert not is_in_the_schema(body)


def is_in_the_schema(body: Any) -> bool:
    try:
        return SCHEMA.is_valid(
            json.loads(json.dumps(body, ensure_ascii=False).encode())
        )
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


@given(
    bodies(python_values).map(arguments)
    | dictionaries(
        sampled_from(ARGUMENTS) | text(string.ascii_letters + "_", min_size=1),
        python_values,
    )
)
@example(
    {
        "app_id": "0b8e4d52-9c1f-4f3a-a7d6-5e2c8b9f1043",
        "platform": Platform.IOS,
        "launch_args": {"a"},
    }
)
def test_any_arguments_produce_a_valid_request_or_an_error_that_names_one(
    given_arguments: dict[str, Any],
) -> None:
    request, reported = outcome(given_arguments)

    names = "|".join(sorted({*ARGUMENTS, *given_arguments}, key=len, reverse=True))
    assert [
        problem for problem in reported if not re.match(rf"({names})\b", problem)
    ] == []
    assert (
        request is None or problems(json.loads(json.dumps(request.to_wire()))) == set()
    )
