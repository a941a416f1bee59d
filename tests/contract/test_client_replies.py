"""The client reads sessions as the document describes them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import pytest
from pydantic import SecretStr

from pytest_device.errors import UnexpectedReplyError
from pytest_device.sessions.models import Session
from tests.contract.document import Row, each, example_config, example_session, snake_case, table

MEANING: Final[dict[str, Callable[[Any], object]]] = {
    "uuid": UUID,
    "timestamp": datetime.fromisoformat,
    "string": str,
    "url": str,
    "integer": int,
}
WRONG: Final[dict[str, object]] = {"string": 17, "url": 17, "object": "a text"}


@each("session_fields", where=lambda row: row["type"] != "object")
def test_a_field_means_what_the_document_says(row: Row) -> None:
    value = row["example"] or example_session()["updatedAt"]

    session = Session.from_wire(example_session(**{row["field"]: value}))

    assert getattr(session, snake_case(row["field"])) == MEANING[row["type"]](value)


@each("session_fields", where=lambda row: row["nullable"])
def test_a_nullable_field_may_be_null(row: Row) -> None:
    session = Session.from_wire(example_session(**{row["field"]: None}))

    assert getattr(session, snake_case(row["field"])) is None


@each("session_fields", where=lambda row: not row["nullable"])
def test_another_field_must_not_be_null(row: Row) -> None:
    with pytest.raises(UnexpectedReplyError, match=row["field"]):
        Session.from_wire(example_session(**{row["field"]: None}))


@each("session_fields", where=lambda row: not row["nullable"])
def test_a_field_that_is_never_null_is_missed(row: Row) -> None:
    wire = example_session()
    del wire[row["field"]]

    with pytest.raises(UnexpectedReplyError, match=row["field"]):
        Session.from_wire(wire)


@each("session_values", where=lambda row: row["readable"])
def test_a_value_of_the_document_is_read(row: Row) -> None:
    wire = example_session(**{row["field"]: row["value"]})

    read = Session.from_wire(wire).model_dump(by_alias=True)[row["field"]]

    assert str(read) == str(datetime.fromisoformat(row["value"]) if row["field"].endswith("At") else row["value"])


@each("session_values", where=lambda row: not row["readable"])
def test_any_other_value_is_an_unexpected_reply(row: Row) -> None:
    with pytest.raises(UnexpectedReplyError, match=row.get("at_fault", row["field"])):
        Session.from_wire(example_session(**{row["field"]: row["value"]}))


@each("session_fields", where=lambda row: row["field"] != "id")
def test_the_id_survives_what_is_wrong_with_another_field(row: Row) -> None:
    wire = example_session(**{row["field"]: [object()]})

    with pytest.raises(UnexpectedReplyError) as caught:
        Session.from_wire(wire)

    assert caught.value.session_id == wire["id"]


def test_a_field_the_document_does_not_know_is_kept() -> None:
    assert Session.from_wire(example_session(mood="sunny")).model_extra == {"mood": "sunny"}


@each("remote_config")
def test_a_connection_detail_is_read(row: Row) -> None:
    wire = example_session(type=row["type"], remoteConfig=example_config(row["type"]))

    value = getattr(Session.from_wire(wire).remote_config, snake_case(row["field"]))

    assert (value.get_secret_value() if isinstance(value, SecretStr) else value) == row["example"]


@each("remote_config", where=lambda row: row["required"])
def test_a_connection_detail_that_must_be_there_is_missed(row: Row) -> None:
    config = example_config(row["type"], without=row["field"]) or {}

    with pytest.raises(UnexpectedReplyError, match=row["field"]):
        Session.from_wire(example_session(type=row["type"], remoteConfig=config))


@each("remote_config", where=lambda row: not row["required"])
def test_an_optional_connection_detail_may_be_missing(row: Row) -> None:
    config = example_config(row["type"], without=row["field"])

    session = Session.from_wire(example_session(type=row["type"], remoteConfig=config))

    assert getattr(session.remote_config, snake_case(row["field"])) is None


@each("remote_config")
def test_a_connection_detail_of_the_wrong_type_is_an_unexpected_reply(row: Row) -> None:
    config = {**(example_config(row["type"]) or {}), row["field"]: WRONG[row["json"]]}

    with pytest.raises(UnexpectedReplyError, match=row["field"]):
        Session.from_wire(example_session(type=row["type"], remoteConfig=config))


@each("remote_config", where=lambda row: row["secret"])
def test_a_secret_is_never_shown(row: Row) -> None:
    config = example_config(row["type"])
    session = Session.from_wire(example_session(type=row["type"], remoteConfig=config))
    with pytest.raises(UnexpectedReplyError) as caught:
        Session.from_wire(example_session(type=row["type"], remoteConfig=config, status=1))

    shown = f"{session} {session!r} {session.remote_config} {session.remote_config!r} {caught.value!r}"

    assert row["example"] not in shown
    assert row["example"] in set(session.remote_config.secrets() if session.remote_config else ())


@pytest.mark.parametrize("session_type", sorted({row["type"] for row in table("remote_config")}))
def test_a_connection_detail_the_document_does_not_know_is_kept(session_type: str) -> None:
    config = {**(example_config(session_type) or {}), "videoUrl": "https://video.example.com"}

    session = Session.from_wire(example_session(type=session_type, remoteConfig=config))

    assert session.remote_config is not None
    assert session.remote_config.model_extra == {"videoUrl": "https://video.example.com"}


@each("session_types")
def test_a_session_of_every_type_is_read(row: Row) -> None:
    wire = example_session(type=row["type"], remoteConfig=example_config(row["type"]))

    assert Session.from_wire(wire).type == row["type"]
