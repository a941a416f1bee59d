"""The parts of the pages, as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final
from urllib.parse import urlsplit

from pytest_device.redact import Redactor
from pytest_device.service.devices.base import Device
from pytest_device.service.lifecycle import TERMINAL, Session, limits
from pytest_device.service.replies import timestamp
from pytest_device.service.runners.base import LogEntry
from pytest_device.spec import STATES, Platform, SessionType, Status

MOST_LISTED: Final = 100
_IDS: Final = frozenset({"Session", "Project", "Build"})
_COPY: Final = ' <button type="button" class="copy">Copy</button>'
PLATFORMS: Final[Mapping[Platform, str]] = {
    Platform.ANDROID: "Android",
    Platform.IOS: "iOS",
}


def of(session: Session) -> Mapping[str, str]:
    """Return the values for every page: title, name, status, outcome."""
    name = _name(session)
    return {
        "title": escape(f"{STATES[session.status].capitalize()} · {name}"),
        "name": escape(name),
        "id": session.id,
        "status": session.status,
        "state": STATES[session.status].capitalize(),
        "outcome": _outcome(session),
        "hidden_when_ended": "hidden" if session.status in TERMINAL else "",
    }


def index(sessions: Sequence[Session]) -> Mapping[str, str]:
    """Return the values for the list of sessions, the newest first."""
    older = len(sessions) - MOST_LISTED
    return {
        "sessions": "".join(map(_listed, sessions[:MOST_LISTED])),
        "older": f"{older} older ones are not listed." if older > 0 else "",
        "hidden_with_sessions": "hidden" if sessions else "",
    }


def _listed(session: Session) -> str:
    reason = _first_line(session) if session.status is Status.ERRORED else ""
    return (
        f'<li><a href="sessions/{session.id}">{escape(_name(session))}</a>'
        f'<span class="state {session.status}">{STATES[session.status].capitalize()}</span>'
        f"<span>{PLATFORMS[session.platform]} · {session.type} · {_day(session.created_at)}</span>"
        f"{f'<span>{escape(reason)}</span>' if reason else ''}</li>"
    )


def times(session: Session, last_activity: float | None) -> str:
    """Return the upcoming limits as times of day, which a script replaces by countdowns."""
    if session.status is Status.NEW:
        return _time(
            "Time left", f"{session.max_duration_minutes} min once it is ready"
        )
    if session.status in TERMINAL or session.started_at is None:
        return ""
    end, *idle = limits(session, last_activity)
    limit = _time("Time left", _until(end.at, session.started_at))
    minutes = session.max_idle_time_minutes
    if idle and minutes:
        limit += _time("Idle timeout in", _until(idle[0].at, idle[0].at - 60 * minutes))
    return limit


def facts(session: Session, device: Device | None) -> str:
    """Return the details of a session, without secrets: an archive's URL may contain one."""
    archive = session.application_archive_url
    rows = (
        ("Type", session.type),
        ("Platform", PLATFORMS[session.platform]),
        ("Device", named(device)),
        ("Session", session.id),
        ("Project", session.app_id),
        ("Build", session.build_id),
        ("Package", session.package_version),
        ("App", archive and _source(archive)),
        ("Created", _day(session.created_at)),
        ("Ready", _day(session.started_at)),
        ("Stopped", _day(session.finished_at)),
        ("Time limit", f"{session.max_duration_minutes} min"),
        ("Idle limit", _idle(session)),
    )
    return "".join(
        f"<div><dt>{label}</dt><dd>{escape(fact)}{_COPY if label in _IDS else ''}</dd></div>"
        for label, fact in rows
        if fact
    )


def named(device: Device | None) -> str | None:
    return f"{device.name} ({device.kind})" if device else None


def screen(preview: str, device: Device | None) -> str:
    """Return the screenshot of a running device, with a link to its live preview at this path."""
    if not (preview and device):
        return ""
    picture = (
        f'<img src="{escape(preview)}/screen" alt="Screen of {escape(device.name)}">'
    )
    return f'<h2>Device</h2><a href="{escape(preview)}">{picture}<span>Open the live preview</span></a>'


def timeline(session: Session, entries: Iterable[LogEntry]) -> str:
    """Return the timeline, each entry with the time since the session's creation."""
    return "".join(
        f'<li><time datetime="{timestamp(entry.at)}">+{_passed(entry.at - session.created_at)}</time>'
        f"<span>{escape(entry.text)}</span></li>"
        for entry in entries
    )


def entries_of(session: Session, entries: Iterable[LogEntry]) -> Sequence[LogEntry]:
    """Return the status changes of a session and the entries of its programs in order, without secrets.

    Only the first line of a reason is included: the page shows all of it elsewhere.
    """
    redactor = Redactor()
    shown = (
        LogEntry(entry.at, redactor.text(entry.text))
        for entry in (*_changes(session), *entries)
    )
    return sorted(shown, key=lambda entry: entry.at)


def _name(session: Session) -> str:
    return session.name or f"Session {session.id[:8]}"


def log(text: str) -> Mapping[str, str]:
    """Return the last lines of a log; an empty log is hidden."""
    return {
        "log": escape(text.strip("\n")),
        "hidden_without_log": "" if text.strip() else "hidden",
    }


def _outcome(session: Session) -> str:
    """Return why a session ended: the first line as a heading, the rest as plain text."""
    if session.status not in TERMINAL:
        return ""
    reason = Redactor().text(session.reason or "no reason given").strip()
    first, _, rest = reason.partition("\n")
    heading = (
        f'<h2 tabindex="-1">{STATES[session.status].capitalize()}: {escape(first)}</h2>'
    )
    return f"{heading}<pre>{escape(rest)}</pre>" if rest.strip() else heading


def _first_line(session: Session) -> str:
    """Return the first line of why a session ended, empty before."""
    return Redactor().text(session.reason or "").strip().partition("\n")[0]


def _changes(session: Session) -> Sequence[LogEntry]:
    changes = [LogEntry(session.created_at, "session created")]
    if session.started_at is not None:
        changes.append(LogEntry(session.started_at, "session ready"))
    reason = _first_line(session)
    why = f": {reason}" if reason else ""
    if session.finished_at is not None:
        changes.append(LogEntry(session.finished_at, f"session stopped{why}"))
    elif session.status is Status.ERRORED:
        changes.append(LogEntry(session.updated_at, f"session failed{why}"))
    return changes


def _source(url: str) -> str:
    """Return a file's name and host: the rest of a URL may be secret."""
    parts = urlsplit(url)
    return f"{parts.path.rpartition('/')[2]} from {parts.hostname}"


def _time(label: str, value: str) -> str:
    return f"<div><dt>{label}</dt><dd>{value}</dd></div>"


def _until(at: float, since: float) -> str:
    clock = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
    bar = f'<progress max="1" value="1" data-since="{since:.0f}" data-until="{at:.0f}" aria-hidden="true"></progress>'
    return f'<span class="left" data-until="{at:.0f}">until {clock} UTC</span>{bar}'


def _idle(session: Session) -> str:
    if session.max_idle_time_minutes:
        return f"{session.max_idle_time_minutes} min"
    return (
        "none (no controller)"
        if session.type is SessionType.WEB_PREVIEW_ONLY
        else "none"
    )


def _day(seconds: float | None) -> str | None:
    return (
        None
        if seconds is None
        else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    )


def _passed(seconds: float) -> str:
    if seconds < 60:  # noqa: PLR2004 - seconds of a minute
        return f"{max(seconds, 0):.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
