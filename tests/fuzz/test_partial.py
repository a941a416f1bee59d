"""Any bytes are searched for a session's ID, page and end without an error."""

import json
from typing import Any
from uuid import UUID

from hypothesis import example, given
from hypothesis.strategies import binary, dictionaries, sampled_from

from pytest_device.sessions.partial import says_stopped, session_id_in, url_in
from tests.contract.document import example_session
from tests.fuzz.values import any_json, any_text

FIELDS = ["id", "url", "status"]


def read(body: bytes) -> tuple[str | None, str, bool]:
    return (
        session_id_in(body),
        url_in(body),
        says_stopped(body, example_session()["id"]),
    )


def replied(data: object) -> bytes:
    return json.dumps({"data": data}).encode()


@given(binary() | any_json.map(replied))
@example(b'{"data":' + b"[" * 100_000)
def test_any_bytes_are_read(body: bytes) -> None:
    session_id, page, ended = read(body)

    assert session_id is None or str(UUID(session_id))
    assert page.isprintable()
    assert not ended


@given(dictionaries(sampled_from(FIELDS) | any_text, any_json))
def test_a_session_is_read_with_any_changes(changes: dict[str, Any]) -> None:
    session = example_session(status="stopped") | changes

    session_id, page, ended = read(replied(session))

    assert session_id == session["id"] or "id" in changes
    assert page == session["url"] or "url" in changes
    assert ended == (
        session["id"] == example_session()["id"]
        and session["status"] in ("stopped", "errored")
    )
