"""The JSON of requests and responses: sessions in the document's spelling, errors in our format."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pytest_device.service.lifecycle import Session

NOT_STORED: Final = {"Cache-Control": "private, no-store", "Pragma": "no-cache"}
"""For successful responses only, as the document specifies."""

VALIDATION_ERROR: Final = "VALIDATION_ERROR"
SIMULATOR_ACCESS_ERROR: Final = "SIMULATOR_ACCESS_ERROR"
NO_DEVICE: Final = "NO_DEVICE"
NO_CAPACITY: Final = "NO_CAPACITY"
INVALID_TOKEN: Final = "INVALID_TOKEN"  # noqa: S105 - the name of an error
FORBIDDEN: Final = "FORBIDDEN"
NOT_FOUND: Final = "NOT_FOUND"
METHOD_NOT_ALLOWED: Final = "METHOD_NOT_ALLOWED"
BODY_TOO_LARGE: Final = "BODY_TOO_LARGE"
FOREIGN_HOST: Final = "FOREIGN_HOST"
INTERNAL_ERROR: Final = "INTERNAL_ERROR"


class RefusalError(Exception):
    """A request that the service refuses; ``status``, ``code`` and the message are the response."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers


def invalid(message: str) -> RefusalError:
    return RefusalError(400, VALIDATION_ERROR, message)


async def json_of(request: Request) -> object:
    """Return the JSON of a request. Raises RefusalError unless it is JSON, declared as such."""
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise invalid("the body must be JSON: send 'Content-Type: application/json'")
    return _json_in(await request.body())


def object_in(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in a body. Raises RefusalError."""
    return as_object(_json_in(body))


def as_object(fields: object) -> Mapping[str, Any]:
    """Return a JSON object. Raises RefusalError for any other JSON."""
    if not isinstance(fields, dict):
        raise invalid("the body must be a JSON object")
    return cast("dict[str, Any]", fields)


def _json_in(body: bytes) -> object:
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant)
    # Not JSON or not UTF-8, or nested too deeply.
    except (ValueError, RecursionError) as error:
        raise invalid(f"the body is not JSON: {error}") from error


def _refuse_constant(text: str) -> object:
    """Raise ValueError for NaN and infinities, which Python's parser accepts, but JSON does not have."""
    raise ValueError(f"{text} is not a JSON value")


def refusal(
    status: int,
    code: str,
    problems: Iterable[tuple[str, str | None]],
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error: its code and, for each problem, the message and the invalid option of the body.

    Not in the document; chosen here: the format, ``{"errors": [{"code", "message", "option"}]}`` with ``option`` null
    if none is invalid, and the codes, except ``UNAUTHORIZED_ERROR``.
    """
    errors = [
        {"code": code, "message": message, "option": option}
        for message, option in problems
    ]
    return JSONResponse({"errors": errors}, status, headers=headers)


def success(
    session: Session, base_url: str, remote_config: Mapping[str, Any] | None
) -> Response:
    """Return the response of every successful operation: the session inside ``data``."""
    return JSONResponse(
        {"data": to_document(session, base_url, remote_config)}, headers=NOT_STORED
    )


def to_document(
    session: Session, base_url: str, remote_config: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return a session in the document's spelling. Its ``url`` is the session page at the service's current address."""
    return {
        "id": session.id,
        "appId": session.app_id,
        "url": f"{base_url}/sessions/{session.id}",
        "jobRunId": session.job_run_id,
        "name": session.name,
        "type": session.type,
        "packageVersion": session.package_version,
        "buildId": session.build_id,
        "applicationArchiveUrl": session.application_archive_url,
        "platform": session.platform,
        "status": session.status,
        "remoteConfig": remote_config,
        "maxDurationMinutes": session.max_duration_minutes,
        "maxIdleTimeMinutes": session.max_idle_time_minutes,
        "startedAt": timestamp(session.started_at),
        "finishedAt": timestamp(session.finished_at),
        "createdAt": timestamp(session.created_at),
        "updatedAt": timestamp(session.updated_at),
    }


def timestamp(seconds: float | None) -> str | None:
    """Return Unix seconds as ISO 8601 in UTC with milliseconds."""
    if seconds is None:
        return None

    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
