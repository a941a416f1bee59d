"""The list of live sessions on disk: one small file per session, written before its creation, removed after its stop.

    <state directory>/runs/<run>/<owner>.lock     held by an owning process for as long as it lives
    <state directory>/runs/<run>/<intent>.json    a session, 0600; no token and no connection details
    <state directory>/runs/<run>/<intent>.warm.json    one that is kept warm: renaming the file claims it

An intent's name consists of its run, its owner and a number, and its file is created exclusively: entries with names
from ``uuid`` or ``random`` would overwrite each other in a suite that patches these modules.

Neither clocks nor process IDs decide anything: an owner is alive while its lock is held (``sweep`` checks that).
Standard library only, and little of it, since the reaper loads this module.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from pytest_device.platforms import SYSTEM
from pytest_device.sessions.partial import SPELLING, minutes_in
from pytest_device.sessions.states import RECORDED, WITHOUT_ID, Phase
from pytest_device.spec import CLEANUP_MINUTES, LONGEST_MINUTES

if TYPE_CHECKING:
    from datetime import datetime  # would occupy the reaper's memory

_VERSION: Final = 2
_ENTRY: Final = ".json"
_WARM_ENTRY: Final = f".warm{_ENTRY}"
_NAME: Final = re.compile("[A-Za-z0-9-]{1,200}")
"""Names that become parts of paths."""
_READ_ONLY: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
)
"""Does not follow symbolic links or wait for the writer of a pipe."""


class DamagedEntryError(Exception):
    """A ledger file that cannot be read; its session may be running."""


class Entry(NamedTuple):
    """One session, or the intent to create one."""

    intent: str
    """The entry's own name, unique in the state directory."""
    owner: str
    service: str
    """Base URL of the service that creates it."""
    label: str
    """Platform and type."""
    name: str
    """The name in the create request, by which users find it on the service's pages."""
    asked_at: str
    """When it was requested, in UTC, for display."""
    minutes: int
    """Maximum minutes from the request until the session ends by itself."""
    session_id: str = ""
    url: str = ""
    """URL of the session page."""
    state: Phase = Phase.CREATING
    until: str = ""
    """Latest time, in UTC, at which a warm session is stopped."""
    ends: str = ""
    """When a warm session reaches its maximum duration, in UTC by this machine's clock."""
    request_digest: str = ""
    """Identifies the requirement that a warm session meets: a keyed digest, since requests may hold credentials."""
    account: str = ""
    """Identifies the token that created it: a keyed digest; empty if unknown."""

    @classmethod
    def of_session(
        cls,
        session_id: str,
        *,
        label: str = "",
        url: str = "",
        minutes: int = LONGEST_MINUTES,
    ) -> Self:
        """Return an entry for a running session that is in no ledger here."""
        return cls(
            session_id, "", "", label, "", "", minutes, session_id, url, Phase.LIVE
        )

    def created(self, session_id: str, url: str, answer: bytes) -> Self:
        """Return the entry after its create call, with the duration from the response if the request left it open."""
        longest = minutes_in(answer) if self.minutes == LONGEST_MINUTES else None
        minutes = self.minutes if longest is None else longest + CLEANUP_MINUTES
        return self._replace(session_id=session_id, url=url, minutes=minutes)

    def is_of(self, account: str) -> bool:
        """Return whether this account's token created it, as far as known; others may be able to stop it, too."""
        return not self.account or self.account == account

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse an entry; raises DamagedEntryError for anything else."""
        try:
            values: dict[str, Any] = json.loads(text)
            version = values.pop("version")
            # Before its fields: another version may have others.
            if version != _VERSION:
                raise DamagedEntryError(
                    f"its version {version!r} is not supported (only {_VERSION})"
                )

            entry = cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DamagedEntryError("it is not an entry of this ledger") from None

        if any(
            type(value) is not (str if kind is Phase else kind)
            for value, kind in zip(entry, cls.__annotations__.values(), strict=True)
        ):
            raise DamagedEntryError("a value has the wrong type")

        if entry.state not in RECORDED:
            raise DamagedEntryError(f"its state {entry.state!r} is unknown")

        if bool(entry.session_id) == (entry.state in WITHOUT_ID) or not _is_id(
            entry.session_id
        ):
            raise DamagedEntryError(
                f"its state {entry.state!r} contradicts the session ID {entry.session_id!r}"
            )

        if not (_NAME.fullmatch(entry.intent) and _NAME.fullmatch(entry.owner)):
            raise DamagedEntryError(
                f"its intent {entry.intent!r} or owner {entry.owner!r} is not a valid name"
            )

        return entry._replace(state=Phase(entry.state))

    def to_json(self) -> str:
        return json.dumps({"version": _VERSION, **self._asdict()})


class Ledger:
    """The entries of one run."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def add(self, entry: Entry) -> None:
        """Write a new entry durably; raises OSError if that fails, FileExistsError if another entry has its name."""
        draft = self._drafted(entry)
        path = self._path(entry.intent)
        try:
            _name_new(draft, path)
        finally:
            _unlink(draft)

        try:
            self._sync()
        except OSError:
            # Its call is not sent: later runs would report a session that was never requested.
            _unlink(path)
            raise

    def write(self, entry: Entry) -> None:
        """Replace an entry durably; raises OSError and keeps the previous one if that fails."""
        draft = self._drafted(entry)
        try:
            os.replace(draft, self._path(entry.intent))  # noqa: PTH105  # pathlib costs the reaper too much memory
        except OSError:
            _unlink(draft)
            raise

        self._sync()

    def _drafted(self, entry: Entry) -> str:
        """Write an entry to a file that is none yet; return its path."""
        draft = f"{self._path(entry.intent)}.{os.getpid()}.tmp"
        try:
            with open(  # noqa: PTH123
                os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600),
                "w",
                encoding="utf-8",
            ) as file:
                file.write(entry.to_json())
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            _unlink(draft)
            raise

        return draft

    def keep_warm(self, entry: Entry) -> None:
        """Mark an entry as free to be claimed; raises OSError if that fails."""
        self.write(entry._replace(state=Phase.WARM))
        os.rename(self._path(entry.intent), self._path(entry.intent, _WARM_ENTRY))  # noqa: PTH104
        self._sync()

    def claim(self, intent: str, into: "Ledger") -> bool:
        """Move a warm entry into another ledger, or the same; False if another process has claimed it.

        From then on that ledger's run uses or stops the session. Raises OSError if it cannot be moved.
        """
        # Another session's entry, which the move would overwrite.
        if into.holds(intent):
            return False

        try:
            os.rename(  # noqa: PTH104
                self._path(intent, _WARM_ENTRY), f"{into.directory}/{intent}{_ENTRY}"
            )
        except FileNotFoundError:
            return False

        return True

    def keeps_warm(self, intent: str) -> bool:
        """Return whether an entry is unclaimed; an unreadable one counts as unclaimed."""
        try:
            os.stat(self._path(intent, _WARM_ENTRY))  # noqa: PTH116
        except OSError as error:
            return not isinstance(error, FileNotFoundError)
        return True

    def remove(self, intent: str) -> None:
        """Remove an entry; raises OSError if that fails. A warm one must be claimed first."""
        _unlink(self._path(intent))

    def holds(self, intent: str) -> bool:
        return os.path.exists(self._path(intent))  # noqa: PTH110

    def is_free(self, intent: str) -> bool:
        """Return whether no entry here has this name; an unreadable one counts as none."""
        return not any(
            os.path.exists(self._path(intent, suffix))  # noqa: PTH110
            for suffix in (_ENTRY, _WARM_ENTRY)
        )

    def read(self) -> tuple[list[Entry], Mapping[str, str]]:
        """Return the entries, and the paths of damaged ones with the reason."""
        entries: list[Entry] = []
        damaged: dict[str, str] = {}

        for name in sorted(self._names()):
            path = f"{self.directory}/{name}"
            try:
                entry = Entry.from_json(_content(path))
                _check_name(entry, name)
            except FileNotFoundError:
                continue  # stopped and removed meanwhile
            except (OSError, DamagedEntryError) as error:
                damaged[path] = str(error)
            else:
                entries.append(_as_named(entry, is_warm=name.endswith(_WARM_ENTRY)))

        return entries, damaged

    def _names(self) -> list[str]:
        try:
            return [
                name
                for name in os.listdir(self.directory)  # noqa: PTH208
                if name.endswith(_ENTRY)
            ]
        except FileNotFoundError:
            return []

    def _path(self, intent: str, suffix: str = _ENTRY) -> str:
        return f"{self.directory}/{intent}{suffix}"

    def _sync(self) -> None:
        """Make the rename durable, where directories can be synchronized."""
        SYSTEM.sync_directory(self.directory)


def _is_id(text: str) -> bool:
    """Return whether a text is empty or safe to use in a URL."""
    return not text or SPELLING.fullmatch(text) is not None


def _content(path: str) -> bytes:
    with open(os.open(path, _READ_ONLY), "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DamagedEntryError("it is not a regular file")
        return file.read()


def _check_name(entry: Entry, name: str) -> None:
    """Raise DamagedEntryError for an entry under another entry's file name: changes would go to the wrong file."""
    if name not in {f"{entry.intent}{_ENTRY}", f"{entry.intent}{_WARM_ENTRY}"}:
        raise DamagedEntryError(f"it is the entry {entry.intent!r}")


def _as_named(entry: Entry, *, is_warm: bool) -> Entry:
    """Return an entry with the state that its file name implies: a claimed one is live."""
    if is_warm:
        return entry._replace(state=Phase.WARM)
    return entry._replace(state=Phase.LIVE) if entry.state is Phase.WARM else entry


def _name_new(draft: str, path: str) -> None:
    """Give a draft its name; raises FileExistsError if another file has it."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        try:
            os.replace(draft, path)  # noqa: PTH105
        except OSError:
            _unlink(path)
            raise


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108


def time_of(text: str) -> "datetime":
    """Parse a time of an entry; an invalid one becomes the epoch."""
    from datetime import UTC, datetime

    with suppress(ValueError):
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    return datetime.fromtimestamp(0, UTC)


def in_utc(time: "datetime") -> str:
    """Format a time for an entry."""
    from datetime import UTC

    return time.astimezone(UTC).isoformat(timespec="seconds")


def seconds_until(time: "datetime") -> float:
    from datetime import UTC, datetime

    return (time - datetime.now(UTC)).total_seconds()


def date_and_time(text: str) -> str:
    """Format a time of an entry as local date and time."""
    return f"{time_of(text).astimezone():%Y-%m-%d %H:%M}"


def time_of_day(time: "datetime") -> str:
    """Format a time as local hours and minutes."""
    return f"{time.astimezone():%H:%M}"
