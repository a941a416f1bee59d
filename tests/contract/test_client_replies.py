"""The client reads sessions as documented."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import pytest
from pydantic import SecretStr

from pytest_device.errors import UnexpectedReplyError
from pytest_device.sessions.models import Session
from tests.contract.document import (
    Row,
    each,
    example_config,
    example_session,
    snake_case,
    table,
)

pytestmark = pytest.mark.every_python

MEANING: Final[dict[str, Callable[[Any], object]]] = {
    "uuid": UUID,
    "timestamp": datetime.fromisoformat,
    "string": str,
    "url": str,
    "integer": int,
}
REQUIRED: Final = ("id", "status")
WRONG: Final[dict[str, object]] = {"string": 17, "url": 17, "object": "a text"}


@each("session_fields", where=lambda row: row["type"] != "object")
def test_a_field_has_the_documented_meaning(row: Row) -> None:
    value = row["example"] or example_session()["updatedAt"]

    session = Session.from_wire(example_session(**{row["field"]: value}))

    assert getattr(session, snake_case(row["field"])) == MEANING[row["type"]](value)


@each("session_fields", where=lambda row: row["nullable"])
def test_a_nullable_field_can_be_null(row: Row) -> None:
    session = Session.from_wire(example_session(**{row["field"]: None}))

    assert getattr(session, snake_case(row["field"])) is None


@each("session_fields", where=lambda row: row["field"] in REQUIRED)
def test_a_reply_without_id_or_status_is_not_a_session(row: Row) -> None:
    without = {
        name: value for name, value in example_session().items() if name != row["field"]
    }

    for wire in (without, example_session(**{row["field"]: None})):
        with pytest.raises(UnexpectedReplyError, match=row["field"]):
            Session.from_wire(wire)


@each(
    "session_fields",
    where=lambda row: not row["nullable"] and row["field"] not in REQUIRED,
)
def test_any_other_missing_field_is_tolerated_and_named(row: Row) -> None:
    without = {
        name: value for name, value in example_session().items() if name != row["field"]
    }

    for wire in (
        without,
        example_session(**{row["field"]: None}),
        example_session(**{row["field"]: [object()]}),
    ):
        session = Session.from_wire(wire)

        assert getattr(session, snake_case(row["field"])) is None
        assert session.invalid_fields == [row["field"]]
        assert str(session.id) == wire["id"]


@each("session_values", where=lambda row: row["readable"])
def test_a_documented_value_is_read(row: Row) -> None:
    wire = example_session(**{row["field"]: row["value"]})

    read = Session.from_wire(wire).model_dump(by_alias=True)[row["field"]]

    assert str(read) == str(
        datetime.fromisoformat(row["value"])
        if row["field"].endswith("At")
        else row["value"]
    )


@each(
    "session_values",
    where=lambda row: not row["readable"] and row["field"] not in REQUIRED,
)
def test_any_other_value_is_tolerated_and_named(row: Row) -> None:
    at_fault = row.get("at_fault", row["field"])

    session = Session.from_wire(example_session(**{row["field"]: row["value"]}))

    assert getattr(session, snake_case(at_fault)) is None
    assert {name.partition(".")[0] for name in session.invalid_fields} == {at_fault}


@each(
    "session_values", where=lambda row: not row["readable"] and row["field"] in REQUIRED
)
def test_any_other_id_or_status_is_an_unexpected_reply(row: Row) -> None:
    with pytest.raises(UnexpectedReplyError, match=row["field"]):
        Session.from_wire(example_session(**{row["field"]: row["value"]}))


def test_the_id_survives_an_invalid_status() -> None:
    wire = example_session(status=[object()])

    with pytest.raises(UnexpectedReplyError) as caught:
        Session.from_wire(wire)

    assert caught.value.session_id == wire["id"]


@pytest.mark.parametrize(
    "name", ["error", "errorMessage", "failureReason", "reason", "message"]
)
@pytest.mark.parametrize(
    "value", ["no\x1b disk", {"code": 7, "message": "no\x1b disk"}]
)
def test_the_reason_of_an_errored_session_is_read_from_any_field(
    name: str, value: object
) -> None:
    wire = example_session(status="errored", remoteConfig=None, **{name: value})

    assert Session.from_wire(wire).reason == "no? disk"
    assert Session.from_wire(example_session()).reason == ""


def test_an_undocumented_field_is_kept() -> None:
    assert Session.from_wire(example_session(mood="sunny")).model_extra == {
        "mood": "sunny"
    }


@each("remote_config")
def test_a_connection_detail_is_read(row: Row) -> None:
    wire = example_session(type=row["type"], remoteConfig=example_config(row["type"]))

    value = getattr(Session.from_wire(wire).remote_config, snake_case(row["field"]))

    assert (value.get_secret_value() if isinstance(value, SecretStr) else value) == row[
        "example"
    ]


@each("remote_config", where=lambda row: row["required"])
def test_a_session_is_not_ready_without_a_required_connection_detail(row: Row) -> None:
    config = example_config(row["type"], without=row["field"]) or {}

    for details in (
        config,
        {**config, row["field"]: None},
        {**config, row["field"]: WRONG[row["json"]]},
    ):
        session = Session.from_wire(
            example_session(
                type=row["type"], status="in-progress", remoteConfig=details
            )
        )

        assert session.remote_config is None
        assert (
            session.described_status
            == f"in-progress without remoteConfig.{row['field']}"
        )


@each("remote_config", where=lambda row: not row["required"])
def test_an_optional_connection_detail_can_be_missing(row: Row) -> None:
    config = example_config(row["type"], without=row["field"])

    session = Session.from_wire(example_session(type=row["type"], remoteConfig=config))

    assert getattr(session.remote_config, snake_case(row["field"])) is None


@each("remote_config", where=lambda row: not row["required"])
def test_an_optional_connection_detail_of_the_wrong_type_is_ignored(row: Row) -> None:
    config = {**(example_config(row["type"]) or {}), row["field"]: WRONG[row["json"]]}

    session = Session.from_wire(example_session(type=row["type"], remoteConfig=config))

    assert session.remote_config is not None
    assert getattr(session.remote_config, snake_case(row["field"])) is None
    assert session.invalid_fields == [f"remoteConfig.{row['field']}"]


@pytest.mark.parametrize(
    "session_type", sorted({row["type"] for row in table("remote_config")})
)
def test_connection_details_have_their_class_even_without_a_type(
    session_type: str,
) -> None:
    wire = example_session(type=session_type, remoteConfig=example_config(session_type))

    assert type(Session.from_wire({**wire, "type": None}).remote_config) is type(
        Session.from_wire(wire).remote_config
    )


@each("remote_config", where=lambda row: row["secret"])
def test_a_secret_is_never_shown(row: Row) -> None:
    config = example_config(row["type"])
    session = Session.from_wire(example_session(type=row["type"], remoteConfig=config))
    with pytest.raises(UnexpectedReplyError) as caught:
        Session.from_wire(
            example_session(type=row["type"], remoteConfig=config, status=1)
        )

    shown = f"{session} {session!r} {session.remote_config} {session.remote_config!r} {caught.value!r}"

    assert row["example"] not in shown
    assert row["example"] in set(
        session.remote_config.secrets() if session.remote_config else ()
    )


@pytest.mark.parametrize(
    "session_type", sorted({row["type"] for row in table("remote_config")})
)
def test_an_undocumented_connection_detail_is_kept(session_type: str) -> None:
    config = {
        **(example_config(session_type) or {}),
        "videoUrl": "https://video.example.com",
    }

    session = Session.from_wire(example_session(type=session_type, remoteConfig=config))

    assert session.remote_config is not None
    assert session.remote_config.model_extra == {
        "videoUrl": "https://video.example.com"
    }


@each("session_types")
def test_a_session_of_every_type_is_read(row: Row) -> None:
    wire = example_session(type=row["type"], remoteConfig=example_config(row["type"]))

    assert Session.from_wire(wire).type == row["type"]
