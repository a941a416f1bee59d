"""The session model: reads the service's replies."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Self, cast
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    PrivateAttr,
    SerializeAsAny,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.alias_generators import to_camel

from pytest_device.errors import UnexpectedReplyError
from pytest_device.figures import in_one_sentence
from pytest_device.redact import Redactor
from pytest_device.sessions.partial import MESSAGE, nodes_of, session_id_of
from pytest_device.sessions.remote_config import (
    WIRE,
    AppiumConfig,
    RemoteConfig,
    config_class,
    without_member,
)
from pytest_device.sessions.session_id import SessionId
from pytest_device.spec import (
    CLEANUP_MINUTES,
    DURATION_MAX_MINUTES,
    TERMINAL,
    Platform,
    SessionType,
    Status,
)

_WORD_MAX_LENGTH: Final = 80
"""Limit for words missing from the document: they are displayed, and a hostile one must not fill the terminal."""
_URL_MAX_LENGTH: Final = 2048
_MINUTES_MAX: Final = 1_000_000
"""Nearly two years: larger values are not a limit, and overflow calculations."""
_NEVER_NULL: Final = (
    "app_id",
    "url",
    "job_run_id",
    "type",
    "platform",
    "max_duration_minutes",
    "created_at",
    "updated_at",
)
_REASONS: Final = ("error", "errorMessage", "failureReason", "reason", "message")
_MAX_EXPLANATION_LENGTH: Final = 16 * 1024
_CONFIG: Final = "remoteConfig"


def _without(
    data: object, invalid: Sequence[tuple[int | str, ...]]
) -> dict[str, object] | None:
    """Return a session's fields without the invalid ones, None if no session remains."""
    # () is the whole object: a key is not a string.
    if not isinstance(data, dict) or () in invalid:
        return None

    rest = dict(cast("dict[str, object]", data))

    for name, *inner in invalid:
        if name in {"id", "status"}:
            return None

        rest[str(name)] = (
            without_member(rest.get("type"), rest.get(_CONFIG), inner)
            if name == _CONFIG
            else None
        )

    return rest


def _text_only(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("not a text")  # noqa: TRY004  # pydantic collects ValueError only
    return value


def _showable(value: object) -> object:
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or len(value) > _WORD_MAX_LENGTH
    ):
        raise ValueError(f"not a printable text of up to {_WORD_MAX_LENGTH} characters")

    return value


def _printable(line: str) -> str:
    """Return a line with single blanks, and ``?`` for what a terminal might obey."""
    words = " ".join(line.split())
    return "".join(char if char.isprintable() else "?" for char in words)


def _as_written(value: object) -> SessionId:
    return SessionId(str(_text_only(value)))


_Uuid = Annotated[UUID, BeforeValidator(_text_only)]
_SessionId = Annotated[
    UUID, BeforeValidator(_as_written), PlainSerializer(str, when_used="json")
]
_Timestamp = Annotated[AwareDatetime, BeforeValidator(_text_only)]
_Minutes = Annotated[StrictInt, Field(ge=0, le=_MINUTES_MAX)]
_PageUrl = Annotated[
    StrictStr,
    StringConstraints(pattern=r"^https?://[!-~]+$", max_length=_URL_MAX_LENGTH),
]


class Session(BaseModel, frozen=True):
    """A device session as the service reports it: the value of ``device_session``.

    Its fields are those of the REST interface, in snake case. Invalid ones are None, except ``id`` and ``status``,
    without which a session can't be used. ``type``, ``platform`` and ``status`` stay plain strings if the interface
    doesn't list the value. Unknown fields are kept in ``model_extra``.

    Attributes:
        id: The session's ID.
        app_id: The project's ID.
        url: The session's page on the service's site; not the live preview.
        job_run_id: The job run behind the session.
        name: Its name.
        type: Its type, which is its controller.
        package_version: The version of the controller's package.
        build_id: The build that was installed.
        application_archive_url: The archive that was installed.
        platform: The operating system of its device.
        status: Its status.
        remote_config: The connection details, of the class for its type; only while it is in progress.
        max_duration_minutes: Its maximum duration.
        max_idle_time_minutes: Its idle limit.
        started_at: When it was ready.
        finished_at: When it was stopped.
        created_at: When it was created.
        updated_at: When it last changed.

    >>> with lease(client, request) as session:
    ...     session.platform, session.type, session.status
    (<Platform.IOS: 'ios'>, <SessionType.APPIUM: 'appium'>, <Status.IN_PROGRESS: 'in-progress'>)
    """

    model_config = WIRE

    id: _SessionId
    app_id: _Uuid | None = None
    url: _PageUrl | None = None
    job_run_id: StrictStr | None = None
    name: StrictStr | None = None
    type: SessionType | StrictStr | None = None
    package_version: StrictStr | None = None
    build_id: _Uuid | None = None
    application_archive_url: StrictStr | None = None
    platform: Platform | StrictStr | None = None
    status: Status | StrictStr
    remote_config: SerializeAsAny[RemoteConfig] | None = None
    max_duration_minutes: _Minutes | None = None
    max_idle_time_minutes: _Minutes | None = None
    started_at: _Timestamp | None = None
    finished_at: _Timestamp | None = None
    created_at: _Timestamp | None = None
    updated_at: _Timestamp | None = None
    _dropped: tuple[str, ...] = PrivateAttr(default=())

    @field_validator("type", "platform", "status", mode="before")
    @classmethod
    def _known_word(cls, value: object, info: ValidationInfo) -> object:
        words = {"type": SessionType, "platform": Platform, "status": Status}[
            str(info.field_name)
        ]
        if value is None:
            return None
        if value in list(words):
            return words(str(value))

        # The service may have words that the document lacks.
        return _showable(value)

    @field_validator("remote_config", mode="before")
    @classmethod
    def _config_of_type(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return None
        return config_class(info.data.get("type"), value).model_validate(value)

    def model_post_init(self, context: Any, /) -> None:
        """Record the fields that were dropped as invalid."""
        self._dropped = tuple(context or ())  # type: ignore[misc]  # only the fields are frozen

    @property
    def page(self) -> str:
        """Return the session page's URL, or a text if the service gave none."""
        return self.url or "the service returned no session page"

    @property
    def limit_minutes(self) -> int:
        """Return the maximum duration in minutes, the document's limit if the service gave none."""
        return (
            DURATION_MAX_MINUTES
            if self.max_duration_minutes is None
            else self.max_duration_minutes
        )

    @property
    def invalid_fields(self) -> Sequence[str]:
        """Return the names of missing or invalid fields, spelled as in the document."""
        missing = [
            to_camel(name) for name in _NEVER_NULL if getattr(self, name) is None
        ]
        return sorted({*missing, *self._dropped})

    @property
    def reason(self) -> str:
        """Return why it errored, in one sentence, from whichever field holds it; empty if none does."""
        return in_one_sentence(self.explanation)

    @property
    def explanation(self) -> str:
        """Return all that the service says about why it errored, which may be a log of many lines."""
        extra = self.model_extra or {}
        nodes = [node for name in _REASONS for node in nodes_of(extra.get(name), name)]
        texts = [
            (name, text)
            for name, text in nodes
            if isinstance(text, str) and text.strip()
        ]
        # The others are codes and the like.
        for_people = [text for name, text in texts if MESSAGE.search(name)]
        candidates = for_people or [text for _, text in texts]
        if not candidates:
            return ""

        # Masked before it is cut: half a secret would not be recognized.
        lines = Redactor().text(candidates[0])[:_MAX_EXPLANATION_LENGTH].splitlines()
        return "\n".join(map(_printable, lines))

    @property
    def device_name(self) -> str:
        """Return the device name from the capabilities, empty if there is none; it may be a placeholder."""
        config = self.remote_config
        name: object = None
        if isinstance(config, AppiumConfig):
            name = config.capabilities.get("appium:deviceName")
        if not name:
            name = (self.model_extra or {}).get("deviceName")

        return name if isinstance(name, str) else ""

    @property
    def described_status(self) -> str:
        """Return the status as text, noting if it is incomplete or missing from the document."""
        if self.status == Status.IN_PROGRESS and self.remote_config is None:
            missing = [
                name for name in self._dropped if name.startswith("remoteConfig.")
            ]
            return f"in-progress without {', '.join(missing) or 'connection details'}"

        known = isinstance(self.status, Status)
        return str(self.status) if known else f"{self.status!r} (unknown)"

    @property
    def boot_seconds(self) -> float | None:
        """Return the boot time by the service's timestamps, None if they are missing or impossible."""
        if self.started_at is None or self.created_at is None:
            return None
        seconds = (self.started_at - self.created_at).total_seconds()
        return seconds if seconds >= 0 else None

    @property
    def running_seconds(self) -> float | None:
        """Return the running time by the service's timestamps, None if they are missing or impossible."""
        return self._seconds_until(self.finished_at)

    @property
    def max_running_seconds(self) -> float | None:
        """Return the longest possible running time of an ended session without ``finishedAt``, which is often errored.

        It ended at the latest with its last update, ``updatedAt``. None if a timestamp is missing or impossible.
        """
        has_ended = self.status in TERMINAL and self.finished_at is None
        return self._seconds_until(self.updated_at) if has_ended else None

    def _seconds_until(self, end: datetime | None) -> float | None:
        if self.started_at is None or end is None:
            return None
        seconds = (end - self.started_at).total_seconds()
        longest = (self.limit_minutes or DURATION_MAX_MINUTES) + CLEANUP_MINUTES
        return seconds if 0 <= seconds <= longest * 60 else None

    def __repr_args__(self) -> Sequence[tuple[str | None, Any]]:
        shown = ("id", "platform", "type", "status", "url")
        return [(name, Redactor().text(str(getattr(self, name)))) for name in shown]

    @classmethod
    def from_wire(cls, data: object) -> Self:
        """Read the ``data`` of a reply; invalid fields are dropped.

        Raises UnexpectedReplyError if no session remains. The error names every invalid field but shows no value, since
        any of them may be a credential; it carries the session's ID if that was readable.
        """
        return cls._read(data, ())

    @classmethod
    def _read(cls, data: object, dropped: tuple[str, ...]) -> Self:
        try:
            return cls.model_validate(data, context=dropped)
        except ValidationError as error:
            invalid = [
                detail["loc"]
                for detail in error.errors(include_url=False, include_input=False)
            ]
            rest = _without(data, invalid)
            if rest is not None:
                names = (".".join(map(str, location[:2])) for location in invalid)
                return cls._read(rest, (*dropped, *names))

            faults = "; ".join(
                f"{'.'.join(map(str, detail['loc'])) or 'data'}: {detail['msg']}"
                for detail in error.errors(
                    include_url=False, include_input=False, include_context=False
                )
            )
            # An error may quote a character.
            plain = "".join(char if char.isprintable() else "?" for char in faults)
            message = f"the service returned an invalid session: {plain}"
            raise UnexpectedReplyError(
                message, session_id=session_id_of(data)
            ) from None
