"""The parts of the pages, as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final
from urllib.parse import urlsplit

from pytest_device.redact import Redactor
from pytest_device.service.devices.base import Device
from pytest_device.service.lifecycle import Session, limits
from pytest_device.service.page.paths import (
    without_directories,
    without_system_directories,
)
from pytest_device.service.replies import timestamp
from pytest_device.service.runners.base import LogEntry
from pytest_device.spec import STATES, TERMINAL, Platform, SessionType, Status

MAX_LISTED: Final = 100
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
    older = len(sessions) - MAX_LISTED
    return {
        "sessions": "".join(_listed(session) for session in sessions[:MAX_LISTED]),
        "older": f"{older} older ones are not listed." if older > 0 else "",
        "hidden_with_sessions": "hidden" if sessions else "",
    }


def _listed(session: Session) -> str:
    reason = _shown_reason(session) if session.status is Status.ERRORED else ""
    first_line = reason.partition("\n")[0]
    state = STATES[session.status].capitalize()
    platform = PLATFORMS[session.platform]

    html = [
        f'<a href="sessions/{session.id}">{escape(_name(session))}</a>',
        f'<span class="state {session.status}">{state}</span>',
        f"<span>{platform} · {session.type} · {_moment(session.created_at)}</span>",
    ]
    if first_line:
        html.append(f"<span>{escape(first_line)}</span>")
    return f"<li>{''.join(html)}</li>"


def times(session: Session, last_activity: float | None) -> str:
    """Return the upcoming limits as times of day, which a script replaces by countdowns."""
    if session.status is Status.NEW:
        return _row("Time left", f"{session.max_duration_minutes} min once it is ready")
    if session.status in TERMINAL or session.started_at is None:
        return ""

    end, *idle_ends = limits(session, last_activity)
    rows = _row("Time left", _until(end.at, session.started_at))
    minutes = session.max_idle_time_minutes
    if idle_ends and minutes:
        idle_end = idle_ends[0].at
        rows += _row("Idle timeout in", _until(idle_end, idle_end - 60 * minutes))
    return rows


def facts(session: Session, device_name: str | None) -> str:
    """Return the details of a session, without secrets: an archive's URL may contain one."""
    archive = session.application_archive_url
    failed_at = session.updated_at if session.status is Status.ERRORED else None
    rows = (
        _fact("Type", session.type),
        _fact("Platform", PLATFORMS[session.platform]),
        _fact("Device", device_name),
        _id("Session", session.id),
        _id("Project", session.app_id),
        _id("Build", session.build_id),
        _fact("Package", session.package_version),
        _fact("App", archive and _source(archive)),
        _moment_row("Created", session.created_at),
        _moment_row("Ready", session.started_at),
        _moment_row("Stopped", session.finished_at),
        _moment_row("Failed", failed_at),
        _fact("Time limit", f"{session.max_duration_minutes} min"),
        _fact("Idle limit", _idle(session)),
    )
    return "".join(rows)


def screen(preview: str, device: Device | None) -> str:
    """Return the screenshot of a running device, with a link to its live preview at this path."""
    if not (preview and device):
        return ""
    picture = (
        f'<img src="{escape(preview)}/screen" alt="Screen of {escape(device.name)}">'
    )
    return f'<h2>Device</h2><a href="{escape(preview)}">{picture}<span>Open the live preview</span></a>'


def last_picture(session: Session) -> str:
    """Return the last screenshot of an ended session."""
    picture = f'<img src="{session.id}/picture" alt="Last screen of the device">'
    return f"<h2>Last picture</h2>{picture}"


def timeline(session: Session, entries: Iterable[LogEntry]) -> str:
    """Return the timeline without paths of this machine, each entry with the time since the session's creation.

    It leaves out why the session ended: the top of the page says it.
    """
    items: list[str] = []
    for entry in entries_of(session, entries, with_reason=False):
        passed = _passed(entry.at - session.created_at)
        time = f'<time datetime="{timestamp(entry.at)}" title="{_day(entry.at)}">+{passed}</time>'
        text = escape(without_directories(entry.text))
        items.append(f"<li>{time}<span>{text}</span></li>")
    return "".join(items)


def entries_of(
    session: Session, entries: Iterable[LogEntry], *, with_reason: bool = True
) -> Sequence[LogEntry]:
    """Return the status changes of a session and the entries of its programs in order, without secrets.

    Only the first line of a reason is included: the page shows all of it elsewhere.
    """
    redactor = Redactor()
    changes = _changes(session, with_reason=with_reason)
    masked = [
        LogEntry(entry.at, redactor.text(entry.text)) for entry in (*changes, *entries)
    ]
    return sorted(masked, key=lambda entry: entry.at)


def _name(session: Session) -> str:
    return session.name or f"Session {session.id[:8]}"


def log(text: str) -> Mapping[str, str]:
    """Return the last lines of a log; an empty log is hidden."""
    return {
        "log": escape(without_system_directories(text.strip("\n"))),
        "hidden_without_log": "" if text.strip() else "hidden",
    }


def _outcome(session: Session) -> str:
    """Return why a session ended: the first line as a sentence, the rest as plain text."""
    if session.status not in TERMINAL:
        return ""

    reason = _shown_reason(session) or "no reason given"
    first, _, rest = reason.partition("\n")
    end = "" if first.endswith((".", "!", "?", ":")) else "."
    state = STATES[session.status].capitalize()
    heading = f'<h2 tabindex="-1">{state}: {escape(first)}{end}</h2>'
    return f"{heading}<pre>{escape(rest)}</pre>" if rest.strip() else heading


def _shown_reason(session: Session) -> str:
    """Return why a session ended, without secrets and paths of this machine; empty before."""
    return without_directories(_reason(session))


def _reason(session: Session) -> str:
    return Redactor().text(session.reason or "").strip()


def _changes(session: Session, *, with_reason: bool) -> Sequence[LogEntry]:
    changes = [LogEntry(session.created_at, "session created")]
    if session.started_at is not None:
        changes.append(LogEntry(session.started_at, "session ready"))

    reason = _reason(session).partition("\n")[0]
    suffix = f": {reason}" if reason and with_reason else ""
    if session.finished_at is not None:
        changes.append(LogEntry(session.finished_at, f"session stopped{suffix}"))
    elif session.status is Status.ERRORED:
        changes.append(LogEntry(session.updated_at, f"session failed{suffix}"))
    return changes


def _source(url: str) -> str:
    """Return a file's name and host: the rest of a URL may be secret."""
    parts = urlsplit(url)
    name = parts.path.rpartition("/")[2]
    return f"{name} from {parts.hostname}" if parts.hostname else name


def _fact(label: str, text: str | None) -> str:
    """Return a row for a text, empty without one."""
    return _row(label, escape(text)) if text else ""


def _id(label: str, text: str | None) -> str:
    """Return a row for an ID, with a button that copies it; empty without one."""
    if text is None:
        return ""
    copy = '<button type="button" class="copy">Copy</button>'
    return f'<div class="id"><dt>{label}</dt><dd><code>{escape(text)}</code>{copy}</dd></div>'


def _moment_row(label: str, at: float | None) -> str:
    return "" if at is None else _row(label, _moment(at))


def _row(label: str, html: str) -> str:
    return f"<div><dt>{label}</dt><dd>{html}</dd></div>"


def _until(at: float, since: float) -> str:
    clock = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
    bar = f'<progress max="1" value="1" data-since="{since:.0f}" data-until="{at:.0f}" aria-hidden="true"></progress>'
    return f'<span class="left" data-until="{at:.0f}">until {clock} UTC</span>{bar}'


def _idle(session: Session) -> str:
    if session.max_idle_time_minutes:
        return f"{session.max_idle_time_minutes} min"
    if session.type is SessionType.WEB_PREVIEW_ONLY:
        return "none (no controller)"
    return "none"


def _moment(at: float) -> str:
    """Return a time that a script shows as the time since then, as in "3 min ago".

    The page itself has the time only: its content must not change with the clock, or each poll would transfer it.
    """
    day = _day(at)
    return f'<time datetime="{timestamp(at)}" data-since="{at:.0f}" title="{day}">{day}</time>'


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _passed(seconds: float) -> str:
    if seconds < 60:  # noqa: PLR2004 - seconds of a minute
        return f"{max(seconds, 0):.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
