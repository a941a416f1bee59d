"""The rules of a create request, and the messages for invalid bodies.

Not in the document; chosen here: unknown options are unsupported, and null is not a value of an optional one (leave it
out); a number with a fraction part is not an integer, not even 30.0; lengths count characters.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Required, TypedDict, cast
from urllib.parse import urlsplit

from pytest_device.redact import Redactor
from pytest_device.spec import (
    ARCHIVE_URL_MAX_LENGTH,
    DURATION_MAX_MINUTES,
    DURATION_MIN_MINUTES,
    IDLE_MAX_MINUTES,
    IDLE_MIN_MINUTES,
    NAME_MAX_LENGTH,
    REQUESTABLE_SESSION_TYPES,
    Platform,
    SessionType,
)

UUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
MAJOR_VERSION: Final = r"[0-9]+"
# Whitespace is spelled out: pattern dialects disagree about whitespace beyond ASCII.
_AFTER_SCHEME: Final = r":[^\s\x00-\x1f\x7f-\x9f\ufeff]+"
URL: Final = "[a-zA-Z][a-zA-Z0-9+.-]*" + _AFTER_SCHEME
WEB_URL: Final = "[hH][tT][tT][pP][sS]?" + _AFTER_SCHEME


class CreateBody(TypedDict, total=False):
    """A valid create request, as the document spells it."""

    appId: Required[str]
    platform: Required[str]
    name: str
    type: str
    packageVersion: str
    deviceIdentifier: str
    maxDurationMinutes: int
    maxIdleTimeMinutes: int
    buildId: str
    applicationArchiveUrl: str
    vendorGo: bool
    sdkVersion: str
    launchArgs: list[str]
    openUrl: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken rule: ``message`` names the option at fault, its value and the rule."""

    option: str | None
    message: str


class InvalidBodyError(Exception):
    """The body breaks rules of the document."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


def check(body: object) -> CreateBody:
    """Return the body of a create request, validated by every rule that does not depend on the account.

    Raises InvalidBodyError with all problems; combinations of options are checked once each option is valid.
    """
    if not isinstance(body, dict):
        raise InvalidBodyError(
            Problem(None, f"the body must be a JSON object, not {_shown(body)}")
        )

    options = cast("dict[str, object]", body)
    problems = [*_missing(options), *_invalid(options)]
    if problems:
        raise InvalidBodyError(*problems)

    valid_body = cast("CreateBody", options)
    for rule in _COMBINATIONS:
        problems += rule(valid_body)
    if problems:
        raise InvalidBodyError(*problems)

    return valid_body


def check_limit(body: CreateBody, limit_minutes: int) -> None:
    """Raise InvalidBodyError if the duration exceeds the account's limit."""
    duration = body.get("maxDurationMinutes", 0)
    if duration > limit_minutes:
        message = f"maxDurationMinutes {duration} is above the limit of the account: at most {limit_minutes}"
        raise InvalidBodyError(Problem("maxDurationMinutes", message))


def is_uuid(text: str) -> bool:
    """Return whether a text is a UUID in its usual form: 8-4-4-4-12 hexadecimal digits."""
    return re.fullmatch(UUID, text) is not None


_SHOWN_LENGTH: Final = 80
_REMOVED: Final = (
    f" ({SessionType.SERVE_SIM} was removed: use {SessionType.WEB_PREVIEW_ONLY})"
)


Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Rule:
    """The requirement for a value in words, its check, and the requirement as a JSON schema."""

    must_be: str
    holds: Callable[[Any], bool]
    schema: Schema


def _missing(options: Mapping[str, object]) -> Iterator[Problem]:
    for option in ("appId", "platform"):
        if option not in options:
            yield Problem(
                option, f"{option} is missing: it must be {FIELDS[option].must_be}"
            )


def _invalid(options: Mapping[str, object]) -> Iterator[Problem]:
    for option, value in options.items():
        if option not in FIELDS:
            yield Problem(option, _unknown(option))
            continue

        rule = FIELDS[option]
        if not rule.holds(value):
            is_removed = option == "type" and value == SessionType.SERVE_SIM
            hint = _REMOVED if is_removed else ""
            message = f"{option} must be {rule.must_be}{hint}, not {_shown(value)}"
            yield Problem(option, message)


def _unknown(option: str) -> str:
    matches = difflib.get_close_matches(option, FIELDS, n=1)
    hint = (
        f"did you mean {matches[0]}?"
        if matches
        else f"the options are {', '.join(FIELDS)}"
    )
    return f"{_shown(option)} is not an option of a create request: {hint}"


def _shown(value: object) -> str:
    """Return a value for a message; arrays and objects can hold anything, so only their type is shown."""
    match value:
        case list():
            return "an array"
        case dict():
            return "an object"
        case str() | int() | float() | None:
            text = Redactor().text(json.dumps(value))
            return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"
        case _:
            raise TypeError(f"not a JSON value: {type(value)}")


def _is_text(value: object) -> bool:
    """Return whether a value is a string that UTF-8 can encode: a lone surrogate cannot be."""
    return isinstance(value, str) and not any(
        "\ud800" <= character <= "\udfff" for character in value
    )


def _one_of(*choices: str) -> _Rule:
    return _Rule(
        f"one of {', '.join(choices)}",
        lambda value: value in choices,
        {"enum": list(choices)},
    )


def _integer(minimum: int, maximum: int) -> _Rule:
    return _Rule(
        f"an integer from {minimum} to {maximum}",
        # Bool is a subclass of int.
        lambda value: type(value) is int and minimum <= value <= maximum,
        {"type": "integer", "minimum": minimum, "maximum": maximum},
    )


def _matching(pattern: str, must_be: str, **schema: str) -> _Rule:
    return _Rule(
        must_be,
        lambda value: _is_text(value) and re.fullmatch(pattern, value) is not None,
        TEXT | schema | {"pattern": f"^{pattern}$"},
    )


def _is_web_url(text: str) -> bool:
    if re.fullmatch(WEB_URL, text) is None:
        return False

    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


TEXT: Final[Schema] = {"type": "string"}
_TEXT: Final = _Rule("a string", _is_text, TEXT)
_UUID: Final = _matching(UUID, "a UUID", format="uuid")
FIELDS: Final[Mapping[str, _Rule]] = {
    "appId": _UUID,
    "platform": _one_of(*Platform),
    "name": _Rule(
        f"a string that is not blank, of up to {NAME_MAX_LENGTH} characters",
        lambda value: (
            _is_text(value) and bool(value.strip()) and len(value) <= NAME_MAX_LENGTH
        ),
        # A byte order mark is whitespace in patterns, but not here.
        TEXT | {"minLength": 1, "maxLength": NAME_MAX_LENGTH, "pattern": r"[\S\ufeff]"},
    ),
    "type": _one_of(*REQUESTABLE_SESSION_TYPES),
    "packageVersion": _TEXT,
    "deviceIdentifier": _TEXT,
    "maxDurationMinutes": _integer(DURATION_MIN_MINUTES, DURATION_MAX_MINUTES),
    "maxIdleTimeMinutes": _integer(IDLE_MIN_MINUTES, IDLE_MAX_MINUTES),
    "buildId": _UUID,
    "applicationArchiveUrl": _Rule(
        f"an HTTP or HTTPS URL of up to {ARCHIVE_URL_MAX_LENGTH} characters",
        lambda value: (
            _is_text(value)
            and len(value) <= ARCHIVE_URL_MAX_LENGTH
            and _is_web_url(value)
        ),
        TEXT
        | {
            "maxLength": ARCHIVE_URL_MAX_LENGTH,
            "pattern": f"^{WEB_URL}$",
            "description": "With a host.",
        },
    ),
    "vendorGo": _Rule(
        "true or false", lambda value: isinstance(value, bool), {"type": "boolean"}
    ),
    "sdkVersion": _matching(MAJOR_VERSION, 'a major version such as "54"'),
    "launchArgs": _Rule(
        "an array of strings",
        lambda value: (
            isinstance(value, list)
            and all(_is_text(item) for item in cast("list[object]", value))
        ),
        {"type": "array", "items": TEXT},
    ),
    # Not in the document; chosen here: any scheme is accepted, since an app may have its own; without one it is not a URL.
    "openUrl": _matching(URL, "a URL with its scheme"),
}


def _sources(body: CreateBody) -> list[str]:
    """Return the options of a body that name an application source; ``vendorGo`` false names none."""
    sources: list[str] = []
    if "buildId" in body:
        sources.append("buildId")
    if "applicationArchiveUrl" in body:
        sources.append("applicationArchiveUrl")
    if body.get("vendorGo"):
        sources.append("vendorGo")
    return sources


def _one_source(body: CreateBody) -> Iterator[Problem]:
    sources = _sources(body)
    if len(sources) > 1:
        message = f"{', '.join(sources)} are different application sources: give at most one of them"
        yield Problem(sources[0], message)


def _sdk_with_vendor_go(body: CreateBody) -> Iterator[Problem]:
    if "sdkVersion" in body and not body.get("vendorGo"):
        yield Problem(
            "sdkVersion",
            f"sdkVersion {_shown(body['sdkVersion'])} is valid only with vendorGo true",
        )


def _launch_with_source(body: CreateBody) -> Iterator[Problem]:
    for option in ("launchArgs", "openUrl"):
        if option in body and not _sources(body):
            needed = (
                "an application source: buildId, applicationArchiveUrl or vendorGo true"
            )
            yield Problem(option, f"{option} requires {needed}")


def _idle_below_duration(body: CreateBody) -> Iterator[Problem]:
    duration, idle = body.get("maxDurationMinutes"), body.get("maxIdleTimeMinutes")
    if duration is not None and idle is not None and idle >= duration:
        yield Problem(
            "maxIdleTimeMinutes",
            f"maxIdleTimeMinutes {idle} must be below maxDurationMinutes {duration}",
        )


def _idle_with_controller(body: CreateBody) -> Iterator[Problem]:
    if (
        "maxIdleTimeMinutes" in body
        and body.get("type") == SessionType.WEB_PREVIEW_ONLY
    ):
        message = f"maxIdleTimeMinutes is not supported for the type {SessionType.WEB_PREVIEW_ONLY}: leave it out"
        yield Problem("maxIdleTimeMinutes", message)


_COMBINATIONS: Final = (
    _one_source,
    _sdk_with_vendor_go,
    _launch_with_source,
    _idle_below_duration,
    _idle_with_controller,
)
