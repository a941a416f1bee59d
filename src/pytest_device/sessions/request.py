"""What a test requests: the body of the create request, its rules, and the requirement that tests share."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, Protocol, Self, TypedDict, Unpack
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel, to_snake

from pytest_device.errors import ConfigError
from pytest_device.redact import Redactor
from pytest_device.sessions.models import Session
from pytest_device.spec import (
    ARCHIVE_URL_MAX_LENGTH,
    DEFAULT_SESSION_TYPE,
    DURATION_MAX_MINUTES,
    DURATION_MIN_MINUTES,
    IDLE_MAX_MINUTES,
    IDLE_MIN_MINUTES,
    NAME_MAX_LENGTH,
    OMITTED_VALUES,
    REQUESTABLE_SESSION_TYPES,
    VENDOR,
    Platform,
    SessionType,
    Share,
)


def _checked(is_good: Callable[[Any], object], problem: str) -> AfterValidator:
    def check(value: object) -> object:
        if not is_good(value):
            raise ValueError(problem)
        return value

    return AfterValidator(check)


def _canonical(value: object) -> object:
    """Accept a UUID or its usual form with hyphens, but no other form that ``UUID`` parses."""
    if isinstance(value, UUID) or (isinstance(value, str) and _UUID.fullmatch(value)):
        return value
    raise ValueError("not a UUID")


def _encodable(value: str) -> str:
    value.encode()  # raises for a lone surrogate, which JSON cannot carry
    return value


def _is_installable(value: str) -> bool:
    parts = urlsplit(value)
    return (
        parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    )


_DIGEST_LENGTH: Final = 12
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f\x7f-\x9f\ufeff]+")

_Uuid = Annotated[UUID, BeforeValidator(_canonical)]
_Text = Annotated[StrictStr, AfterValidator(_encodable)]
_Name = Annotated[
    _Text, Field(max_length=NAME_MAX_LENGTH), _checked(str.strip, "blank")
]
_Type = Annotated[
    SessionType, _checked(REQUESTABLE_SESSION_TYPES.__contains__, "not requestable")
]
_Duration = Annotated[
    StrictInt, Field(ge=DURATION_MIN_MINUTES, le=DURATION_MAX_MINUTES)
]
_IdleTime = Annotated[StrictInt, Field(ge=IDLE_MIN_MINUTES, le=IDLE_MAX_MINUTES)]
_Url = Annotated[_Text, _checked(_URL.fullmatch, "not a URL")]
_ArchiveUrl = Annotated[
    _Text,
    Field(max_length=ARCHIVE_URL_MAX_LENGTH),
    _checked(_URL.fullmatch, "not a URL"),
    _checked(_is_installable, "not an HTTP or HTTPS URL"),
]


class SessionRequest(BaseModel, frozen=True):
    """The body of a create request, which follows all rules of the REST interface.

    Minutes are whole minutes. Fields that are None are omitted, so that the service decides. Use ``from_arguments``, which
    describes all mistakes; the constructor raises pydantic's ValidationError.

    >>> SessionRequest.from_arguments(app_id=app_id, platform="ios", type="appium").type
    <SessionType.APPIUM: 'appium'>
    """

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, validate_by_name=True
    )

    app_id: _Uuid
    platform: Platform
    name: _Name | None = None
    type: _Type = DEFAULT_SESSION_TYPE
    package_version: _Text | None = None
    device_identifier: _Text | None = None
    max_duration_minutes: _Duration | None = None
    max_idle_time_minutes: _IdleTime | None = None
    build_id: _Uuid | None = None
    application_archive_url: _ArchiveUrl | None = Field(default=None, repr=False)
    vendor_go: StrictBool | None = None
    sdk_version: Annotated[_Text, StringConstraints(pattern=r"^[0-9]+$")] | None = None
    launch_args: tuple[_Text, ...] | None = Field(default=None, repr=False)
    open_url: _Url | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if problems := list(_broken_combinations(dict(self))):
            raise ValueError("; ".join(problems))
        return self

    @classmethod
    def from_arguments(cls, **arguments: Any) -> Self:
        """Build a request from the arguments of the marker, without those that concern sharing.

        Raises:
            ConfigError: With one problem for every broken rule, each naming the argument, its value and the rule, so that
                no request is sent that is known to fail.

        >>> SessionRequest.from_arguments(app_id=app_id, platform="ios", max_duration_minutes=200)
        Traceback (most recent call last):
        pytest_device.ConfigError: max_duration_minutes=200 must be a whole number of minutes from 0 to 115, or 'account'
        """
        arguments = _without_omitted(in_minutes(arguments))
        problems = list(_unknown_arguments(arguments))

        own = {
            name: value for name, value in arguments.items() if name in cls.model_fields
        }
        try:
            request = cls.model_validate(own)
        except ValidationError as error:
            # pydantic checks them only if each argument is valid.
            problems += _broken_combinations(own)
            at_fault = dict.fromkeys(
                to_snake(str(detail["loc"][0]))
                for detail in error.errors()
                if detail["loc"]
            )
            problems += (_broken_rule(name, own) for name in at_fault)
            raise ConfigError(*problems) from None

        if problems:
            raise ConfigError(*problems)

        return request

    @property
    def boot_key(self) -> str:
        """Return a key that is equal for requests whose devices take equally long to boot.

        Platform and type, followed by a digest of the other relevant fields, without name, limits, URLs or possible
        secrets.
        """
        # Only the kind of the app source matters: the app itself changes from build to build.
        kinds = {
            "build": self.build_id,
            "archive": self.application_archive_url,
            "vendor": self.vendor_go or None,
        }
        rest = {
            "device": self.device_identifier,
            "package": self.package_version,
            "sdk": self.sdk_version,
            "source": next(
                (kind for kind, value in kinds.items() if value is not None), None
            ),
        }
        label = f"{self.platform} {self.type}"
        specified = {name: value for name, value in rest.items() if value is not None}
        digest = hashlib.sha256(
            json.dumps(specified, sort_keys=True).encode()
        ).hexdigest()

        return f"{label} {digest[:_DIGEST_LENGTH]}" if specified else label

    def to_wire(self, vendor: str = VENDOR) -> dict[str, Any]:
        """Return the JSON body; ``vendor`` is the account's prefix of vendor-specific fields."""
        body = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        if "vendorGo" in body:
            body[f"{vendor}Go"] = body.pop("vendorGo")
        return body


def in_minutes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert each timedelta of whole minutes to minutes; leave any other value as it is."""
    minute = timedelta(minutes=1)
    return {
        name: value // minute
        if isinstance(value, timedelta) and not value % minute
        else value
        for name, value in arguments.items()
    }


def _without_omitted(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Replace words such as ``none`` and ``account``, which omit a limit, by None."""
    omitted = {
        name: None
        for name, words in OMITTED_VALUES.items()
        if isinstance(value := arguments.get(name), str) and value in words
    }

    return {**arguments, **omitted}


_ONE_OF_TYPES = ", ".join(REQUESTABLE_SESSION_TYPES)
_RULES: Final[Mapping[str, str]] = {
    "app_id": "must be the project's UUID",
    "platform": f"must be {' or '.join(Platform)}",
    "name": f"must be a string of 1 to {NAME_MAX_LENGTH} characters and not blank",
    "type": f"must be one of {_ONE_OF_TYPES}",
    "package_version": "must be a string",
    "device_identifier": "must be a string: a simulator name, a UDID or a hardware profile",
    "max_duration_minutes": (
        f"must be a whole number of minutes from {DURATION_MIN_MINUTES} to {DURATION_MAX_MINUTES}, or 'account'"
    ),
    "max_idle_time_minutes": (
        f"must be a whole number of minutes from {IDLE_MIN_MINUTES} to {IDLE_MAX_MINUTES}, or 'none' or 'account'"
    ),
    "build_id": "must be the UUID of a build",
    "application_archive_url": f"must be an HTTP or HTTPS URL of at most {ARCHIVE_URL_MAX_LENGTH} characters",
    "vendor_go": "must be True or False",
    "sdk_version": 'must be a major version as a string, such as "54"',
    "launch_args": "must be a list of strings",
    "open_url": "must be a URL with its scheme, such as myapp://start",
}
SOURCES: Final = ("build_id", "application_archive_url", "vendor_go")
SHARING: Final = ("share", "attach")
"""Marker arguments that are not part of the request."""
ROUTE: Final = ("open_route", "route_params")
"""Marker arguments that replace ``open_url``."""


def _broken_rule(name: str, arguments: Mapping[str, Any]) -> str:
    if name not in arguments:
        return f"{name} is missing: it {_RULES[name]}"
    if name == "type" and arguments[name] == SessionType.SERVE_SIM:
        return f"type={SessionType.SERVE_SIM.value!r} was removed: use {SessionType.WEB_PREVIEW_ONLY.value!r}"
    return f"{name}={_shown(arguments[name])} {_RULES[name]}"


def _shown(value: object) -> str:
    text = Redactor().text(repr(str(value) if isinstance(value, str) else value))
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text) - 2} characters)"  # noqa: PLR2004


def _unknown_arguments(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in arguments:
        if name not in _RULES:
            known = (*_RULES, *SHARING, *ROUTE)
            near = get_close_matches(name, known, n=1, cutoff=0.4)
            hint = (
                f": did you mean {near[0]}?"
                if near
                else f": the arguments are {', '.join(known)}"
            )
            yield f"{name} is not an argument of the marker{hint}"


def _broken_combinations(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield each broken rule between arguments, whatever else is wrong with them."""
    arguments = {
        name: value
        for name, value in arguments.items()
        if value is not None and value is not False
    }
    sources = [name for name in SOURCES if name in arguments]
    if len(sources) > 1:
        yield f"{' and '.join(sources)} are mutually exclusive: set at most one application source"

    if "sdk_version" in arguments and "vendor_go" not in arguments:
        yield f"sdk_version={_shown(arguments['sdk_version'])} is valid only with vendor_go=True"

    for name in ("launch_args", "open_url"):
        if name in arguments and not sources:
            yield f"{name}={_shown(arguments[name])} needs an application source: set one of {', '.join(SOURCES)}"

    yield from _broken_idle_time(arguments)


def _broken_idle_time(arguments: Mapping[str, Any]) -> Iterator[str]:
    idle = arguments.get("max_idle_time_minutes")
    duration = arguments.get("max_duration_minutes")
    if idle is None:
        return

    if arguments.get("type") == SessionType.WEB_PREVIEW_ONLY:
        yield f"max_idle_time_minutes={_shown(idle)} is not supported for type='web-preview-only': leave it out"

    if isinstance(idle, int) and isinstance(duration, int) and idle >= duration:
        yield f"max_idle_time_minutes={idle} must be smaller than max_duration_minutes={duration}"


@dataclass(frozen=True, slots=True)
class DeviceRequirement:
    """A test's requirement for a device: tests with equal requirements can share a session, one after the other.

    ``sharing_key`` identifies the tests that may share it. A session that was used before must have ``minutes`` left.
    """

    request: SessionRequest
    sharing_key: str
    minutes: int = field(default=0, compare=False)
    defaults: Collection[str] = field(default=(), compare=False)
    """The limits in the request that are defaults."""
    attach: str = ""
    """ID of an existing session to use, which is not stopped; empty to create one."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash once: requirements are looked up for each of many tests."""
        object.__setattr__(self, "_hash", hash((self.request, self.sharing_key)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def share(self) -> Share:
        """Return the scope in which its sessions are shared."""
        return Share(self.sharing_key.partition(" ")[0])

    @property
    def returns_to_start(self) -> bool:
        """Return whether its device is reset to its first page, as for a browser that argent drives."""
        return self.request.type == SessionType.ARGENT and self.share != Share.TEST


class DeviceArguments(TypedDict, total=False):
    """The keyword arguments of the marker, of ``device_lease`` and of ``device_request_defaults``.

    >>> tablet: DeviceArguments = {"platform": "ios", "device_identifier": "iPad Air", "max_duration_minutes": 20}
    """

    app_id: UUID | str
    platform: Platform | Literal["android", "ios"]
    type: SessionType | Literal["agent-device", "appium", "argent", "web-preview-only"]
    name: str
    package_version: str
    device_identifier: str
    max_duration_minutes: int | timedelta | Literal["account"]
    max_idle_time_minutes: int | timedelta | Literal["account", "none"]
    build_id: UUID | str
    application_archive_url: str
    vendor_go: bool
    sdk_version: str
    launch_args: Sequence[str]
    open_url: str
    open_route: str
    route_params: Mapping[str, object]
    share: Share | Literal["run", "module", "class", "test"]
    attach: UUID | str


class DeviceLease(Protocol):
    """The type of the fixture ``device_lease``.

    >>> def upgraded(device_lease: DeviceLease, build_id: str) -> None:
    ...     with device_lease(platform="android", build_id=build_id) as session:
    ...         print(session.url)
    """

    def __call__(
        self, **arguments: Unpack[DeviceArguments]
    ) -> AbstractContextManager[Session]:
        """Return a context manager that provides a session in progress for its block, and stops it at its end.

        Raises:
            ConfigError: An argument is invalid; nothing was sent.
            DeviceError: The block gets no session.
        """
        ...
