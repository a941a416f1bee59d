"""The OpenAPI document of the REST interface as this service implements it."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, Final

from pytest_device.service import replies
from pytest_device.service.rules import FIELDS, TEXT, Schema
from pytest_device.spec import (
    DEFAULT_SESSION_TYPE,
    SESSIONS_PATH,
    UNAUTHORIZED_ERROR,
    Platform,
    SessionType,
    Status,
)

_UUID: Final = FIELDS["appId"].schema
_WEB_URL: Final[Schema] = TEXT | {"format": "uri", "pattern": "^https?://"}
_TIMESTAMP: Final[Schema] = TEXT | {
    "format": "date-time",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
}


def _with(option: str, value: object = None) -> Schema:
    """Return the schema of a body that has an option, with any value or with this one."""
    schema: Schema = {"required": [option]}
    if value is not None:
        schema["properties"] = {option: {"const": value}}
    return schema


def _never_together(*schemas: Schema) -> Schema:
    return {"not": {"allOf": list(schemas)}}


def _needs(option: str, *any_of: Schema) -> Schema:
    return {"if": _with(option), "then": {"anyOf": list(any_of)}}


_SOURCES: Final = (
    _with("buildId"),
    _with("applicationArchiveUrl"),
    _with("vendorGo", value=True),
)

_MORE: Final[Mapping[str, Schema]] = {
    "type": {"default": DEFAULT_SESSION_TYPE},
    "maxDurationMinutes": {"description": "The account may set a lower limit."},
    "maxIdleTimeMinutes": {
        "description": "Below maxDurationMinutes where both are given."
    },
}

CREATE_BODY: Final[Schema] = {
    "type": "object",
    "required": ["appId", "platform"],
    "additionalProperties": False,
    "properties": {
        name: rule.schema | _MORE.get(name, {}) for name, rule in FIELDS.items()
    },
    "allOf": [
        *(
            _never_together(source, other)
            for source, other in combinations(_SOURCES, 2)
        ),
        _needs("sdkVersion", _SOURCES[-1]),
        _needs("launchArgs", *_SOURCES),
        _needs("openUrl", *_SOURCES),
        _never_together(
            _with("maxIdleTimeMinutes"), _with("type", SessionType.WEB_PREVIEW_ONLY)
        ),
    ],
}
"""The rules as a schema, except those that a schema cannot express: the account's limit, the order of the two limits,
and ports."""


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _details(required: Mapping[str, Schema], optional: Mapping[str, Schema]) -> Schema:
    properties = {**required, **optional}
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


_PREVIEW: Final = {"webPreviewUrl": _WEB_URL}
_SECRET: Final = TEXT | {"format": "password"}

REMOTE_CONFIGS: Final[Mapping[str, Schema]] = {
    SessionType.AGENT_DEVICE: _details(
        {
            "agentDeviceRemoteSessionUrl": _WEB_URL,
            "agentDeviceRemoteSessionToken": _SECRET,
        },
        _PREVIEW,
    ),
    SessionType.ARGENT: _details(
        {"toolsUrl": _WEB_URL}, {"toolsAuthToken": _SECRET, **_PREVIEW}
    ),
    SessionType.APPIUM: _details(
        {"appiumUrl": _WEB_URL, "capabilities": {"type": "object"}}, _PREVIEW
    ),
    SessionType.WEB_PREVIEW_ONLY: _details(_PREVIEW, {}),
}
"""The connection details of each type."""

_SESSION_FIELDS: Final[Mapping[str, Schema]] = {
    "id": _UUID,
    "appId": _UUID,
    "url": _WEB_URL,
    "jobRunId": TEXT,
    "name": _nullable(FIELDS["name"].schema),
    "type": {"enum": list(SessionType)},
    "packageVersion": _nullable(TEXT),
    "buildId": _nullable(_UUID),
    "applicationArchiveUrl": _nullable(TEXT),
    "platform": {"enum": list(Platform)},
    "status": {"enum": list(Status)},
    "remoteConfig": {"type": ["object", "null"]},
    "maxDurationMinutes": FIELDS["maxDurationMinutes"].schema,
    "maxIdleTimeMinutes": _nullable(FIELDS["maxIdleTimeMinutes"].schema),
    "startedAt": _nullable(_TIMESTAMP),
    "finishedAt": _nullable(_TIMESTAMP),
    "createdAt": _TIMESTAMP,
    "updatedAt": _TIMESTAMP,
}


def _when(field: str, value: str, then: Mapping[str, Schema]) -> Schema:
    return {"if": _with(field, value), "then": {"properties": then}}


_NULL: Final[Schema] = {"type": "null"}

SESSION: Final[Schema] = {
    "type": "object",
    "required": list(_SESSION_FIELDS),
    "additionalProperties": False,
    "properties": _SESSION_FIELDS,
    "allOf": [
        *(
            _when("type", kind, {"remoteConfig": _nullable(details)})
            for kind, details in REMOTE_CONFIGS.items()
        ),
        _when(
            "status",
            Status.NEW,
            {"remoteConfig": _NULL, "startedAt": _NULL, "finishedAt": _NULL},
        ),
        _when(
            "status",
            Status.IN_PROGRESS,
            {
                "remoteConfig": {"type": "object"},
                "startedAt": _TIMESTAMP,
                "finishedAt": _NULL,
            },
        ),
        _when(
            "status", Status.STOPPED, {"remoteConfig": _NULL, "finishedAt": _TIMESTAMP}
        ),
        _when("status", Status.ERRORED, {"remoteConfig": _NULL, "finishedAt": _NULL}),
    ],
}


def _refusal(meaning: str, *codes: str) -> Schema:
    fields = {
        "code": {"enum": list(codes)},
        "message": TEXT,
        "option": {"type": ["string", "null"]},
    }
    error = {
        "type": "object",
        "required": list(fields),
        "properties": fields,
        "additionalProperties": False,
    }
    errors = {"type": "array", "minItems": 1, "items": error}
    schema = {
        "type": "object",
        "required": ["errors"],
        "properties": {"errors": errors},
        "additionalProperties": False,
    }
    return {"description": meaning, "content": {"application/json": {"schema": schema}}}


def _header(value: str) -> Schema:
    return {"required": True, "schema": {"const": value}}


_NO_HEADER: Final = "the Authorization header is missing"
_REFUSED_EVERYWHERE: Final[Mapping[str, Schema]] = {
    "400": _refusal(
        f"The id is not a UUID, or {_NO_HEADER}.",
        replies.VALIDATION_ERROR,
        UNAUTHORIZED_ERROR,
    ),
    "401": _refusal("The access token is not valid.", replies.INVALID_TOKEN)
    | {"headers": {"WWW-Authenticate": _header("Bearer")}},
    "403": _refusal("The access token lacks permission.", replies.FORBIDDEN),
    "404": _refusal("No such project or session.", replies.NOT_FOUND),
    "421": _refusal(
        "The Host header does not name this machine.", replies.FOREIGN_HOST
    ),
}
_REFUSED_ON_CREATE: Final[Mapping[str, Schema]] = {
    "400": _refusal(
        f"The body is invalid, the account has no simulator access, there is no such device, or {_NO_HEADER}.",
        replies.VALIDATION_ERROR,
        replies.SIMULATOR_ACCESS_ERROR,
        replies.NO_DEVICE,
        UNAUTHORIZED_ERROR,
    ),
    "413": _refusal("The body is too large.", replies.BODY_TOO_LARGE),
    "429": _refusal(
        "As many sessions are running as the service allows.", replies.NO_CAPACITY
    ),
}


def _link(operation: str) -> Schema:
    return {"operationId": operation, "parameters": {_ID: "$response.body#/data/id"}}


_ID: Final = "deviceRunSessionId"


def _session_reply(links: Iterable[str]) -> Schema:
    schema = {"type": "object", "required": ["data"], "additionalProperties": False}
    data = {"data": {"$ref": "#/components/schemas/Session"}}
    return {
        "description": "The session.",
        "headers": {name: _header(value) for name, value in replies.NOT_STORED.items()},
        "content": {"application/json": {"schema": schema | {"properties": data}}},
        "links": {operation: _link(operation) for operation in links},
    }


def _operation(
    operation: str, summary: str, links: Iterable[str] = (), **refused: Schema
) -> dict[str, Any]:
    answers = {"200": _session_reply(links), **_REFUSED_EVERYWHERE, **refused}
    return {"operationId": operation, "summary": summary, "responses": answers}


DOCUMENT: Final[Schema] = {
    "openapi": "3.1.0",
    "info": {"title": "Device sessions", "version": "2"},
    "servers": [{"url": "/"}],
    "security": [{"accessToken": []}],
    "paths": {
        SESSIONS_PATH: {
            "post": _operation(
                "create", "Create a session.", ["get", "stop"], **_REFUSED_ON_CREATE
            )
            | {
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/CreateBody"}
                        }
                    },
                }
            }
        },
        f"{SESSIONS_PATH}/{{{_ID}}}": {
            "parameters": [{"$ref": f"#/components/parameters/{_ID}"}],
            "get": _operation("get", "Get a session."),
        },
        f"{SESSIONS_PATH}/{{{_ID}}}/stop": {
            "parameters": [{"$ref": f"#/components/parameters/{_ID}"}],
            "post": _operation(
                "stop",
                "Stop a session; one that has ended is returned unchanged.",
                ["get", "stop"],
            ),
        },
    },
    "components": {
        "schemas": {"CreateBody": CREATE_BODY, "Session": SESSION},
        "parameters": {
            _ID: {"name": _ID, "in": "path", "required": True, "schema": _UUID}
        },
        "securitySchemes": {"accessToken": {"type": "http", "scheme": "bearer"}},
    },
}
"""The whole document, ready for JSON. It does not include the test interface."""
