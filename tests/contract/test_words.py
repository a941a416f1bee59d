"""The shared words and numbers match the document."""

import pytest

from pytest_device import spec
from tests.contract.document import Row, each, table

pytestmark = pytest.mark.every_python


@each("words")
def test_every_documented_word_is_known(row: Row) -> None:
    assert getattr(spec, row["set"])(row["word"]).value == row["word"]


@pytest.mark.parametrize("name", sorted({row["set"] for row in table("words")}))
def test_no_other_word_is_known(name: str) -> None:
    assert {word.value for word in getattr(spec, name)} == {
        row["word"] for row in table("words") if row["set"] == name
    }


@each("limits")
def test_limits_match_the_document(row: Row) -> None:
    assert getattr(spec, row["constant"]) == row["value"]


@each("session_types")
def test_session_types_can_be_requested_as_documented(row: Row) -> None:
    assert (row["type"] in spec.REQUESTABLE_SESSION_TYPES) == row["requestable"]


def test_the_default_session_type_matches_the_document() -> None:
    assert [spec.DEFAULT_SESSION_TYPE.value] == [
        row["type"] for row in table("session_types") if row["default"]
    ]


@each("session_types")
def test_a_type_without_controller_has_nothing_but_a_preview(row: Row) -> None:
    fields = {
        config["field"]
        for config in table("remote_config")
        if config["type"] == row["type"]
    }

    assert bool(fields - {"webPreviewUrl"}) == row["controller"]
