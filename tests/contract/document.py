"""The tables of the document, ready to parametrize tests."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import pytest

Row = Mapping[str, Any]

TABLES: Final = Path(__file__).parent.parent / "spec"
_MILLISECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|\+00:00)")


def table(name: str) -> list[Row]:
    rows: list[Row] = json.loads((TABLES / f"{name}.json").read_text("utf-8"))
    return rows


def each(
    *names: str, where: Callable[[Row], bool] = lambda _row: True
) -> pytest.MarkDecorator:
    """Run a test for each such row of some tables, as its argument ``row``."""
    rows = [row for name in names for row in table(name) if where(row)]
    if not rows:
        raise LookupError(f"no such row in {names}")
    return pytest.mark.parametrize("row", rows, ids=[row["id"] for row in rows])


def accepted(row: Row) -> bool:
    """Return whether the document allows the request of a row."""
    return bool(row.get("accepted"))


def refused(row: Row) -> bool:
    """Return whether the request of a row breaks a rule; ``at_fault`` are its options, any of which can be named."""
    return not accepted(row)


def example_session(**changes: Any) -> dict[str, Any]:
    """Return a session in progress as documented."""
    return {row["field"]: row["example"] for row in table("session_fields")} | changes


def example_config(session_type: str, *, without: str = "") -> dict[str, Any] | None:
    """Return the connection details of a type, None for a type without any in the document."""
    rows = [row for row in table("remote_config") if row["type"] == session_type]
    return {
        row["field"]: row["example"] for row in rows if row["field"] != without
    } or None


def request_body(row: Row) -> dict[str, Any]:
    """Return the create body of a row: the required options and the row's own, without those it omits."""
    needed = {"appId": example_session()["appId"], "platform": "android"}
    body = needed | {
        name: _spelled_out(value) for name, value in row.get("change", {}).items()
    }
    return {
        name: value
        for name, value in body.items()
        if name not in row.get("without", ())
    }


def _spelled_out(value: object) -> object:
    """Return the long texts that a row only describes."""
    match value:
        case {"text": str(text), "times": int(times)}:
            return text * times
        case {"start": str(start), "length": int(length)}:
            return start.ljust(length, "a")
        case _:
            return value


def snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the create body as the arguments that a user of the client passes."""
    return {snake_case(name): value for name, value in body.items()}


def is_a(kind: str, value: object) -> bool:
    """Return whether a JSON value has one of the document's types."""
    match kind:
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case _:
            return isinstance(value, str) and _TEXTS[kind](value)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_url(text: str) -> bool:
    return urlsplit(text).scheme in {"http", "https"} and bool(urlsplit(text).hostname)


def _is_timestamp(text: str) -> bool:
    return (
        bool(_MILLISECONDS.fullmatch(text))
        and datetime.fromisoformat(text).utcoffset() == timedelta()
    )


_TEXTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "string": lambda _text: True,
    "uuid": _is_uuid,
    "url": _is_url,
    "timestamp": _is_timestamp,
}
