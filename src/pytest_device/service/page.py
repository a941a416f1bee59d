"""The session's page: its facts for a reader in a browser, without connection details."""

from html import escape
from typing import Final

from starlette.responses import HTMLResponse, Response

from pytest_device.redact import Redactor
from pytest_device.service.lifecycle import Session
from pytest_device.service.replies import NOT_STORED, timestamp

_HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", **NOT_STORED}
_STYLE: Final = "body{font:1em/1.5 sans-serif;margin:2em}th{text-align:left;padding-right:2em;vertical-align:top}"


def page(session: Session) -> Response:
    """Return the page. It needs no token and shows no secret: an archive's URL may hold one."""
    rows = "".join(f"<tr><th>{escape(label)}<td>{escape(fact)}" for label, fact in _facts(session) if fact)
    title = escape(session.name or session.id)
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return HTMLResponse(f"{head}<h1>{title}</h1><table>{rows}</table>", headers=_HEADERS)


def _facts(session: Session) -> tuple[tuple[str, str | None], ...]:
    idle = session.max_idle_time_minutes
    return (
        ("Status", session.status),
        ("Reason", session.reason and Redactor().text(session.reason)),
        ("Session", session.id),
        ("Project", session.app_id),
        ("Type", session.type),
        ("Platform", session.platform),
        ("Created", timestamp(session.created_at)),
        ("Ready", timestamp(session.started_at)),
        ("Stopped", timestamp(session.finished_at)),
        ("Longest duration", f"{session.max_duration_minutes} min"),
        ("Longest idle time", f"{idle} min" if idle else None),
    )
