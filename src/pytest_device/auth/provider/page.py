"""HTML pages of the provider, without scripts and accessible to drivers and screen readers."""

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape

from starlette.responses import HTMLResponse

from pytest_device import page_style
from pytest_device.errors import hides_frames
from pytest_device.redact import Redactor

__tracebackhide__ = hides_frames

MAX_SHOWN_CHARACTERS = 300
"""Limit for a value from a request: an attacker's may be as long as a URL."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main class="card">
<p class="kind">Identity provider of the tests</p>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""
_OWN_STYLE = """
body { max-width: 29rem; padding-top: max(1rem, 8vh); }
main { display: grid; gap: 1rem; padding: 1.5rem; }
h1 { margin-top: -.75rem; }
form { display: grid; gap: 1rem; }
form button { width: 100%; }
dl { display: grid; gap: .75rem; }
dt { color: var(--muted); font-size: .9rem; }
.message:not(:empty) { margin: 0; }
"""


class Page(HTMLResponse):
    """HTML response with the error message that it displays."""

    problem = ""


def sign_in_page(
    client_id: str, scopes: Sequence[str], query: str, problem: str = "", user: str = ""
) -> Page:
    """Return the sign-in and consent form."""
    alert = ""
    if problem:
        alert = f'<p class="message" role="alert" id="problem">{escape(problem)}</p>'
    requested = ", ".join(scopes) or "nothing beyond signing in"
    body = f"""{alert}<p>{escape(client_id)} asks for: {escape(requested)}</p>
<form method="post" action="authorize?{escape(query)}">
<div><label for="user">User name</label>
<input id="user" name="user" aria-label="User name" value="{escape(user)}"
 autocomplete="username" autocapitalize="none" autofocus></div>
<div><label for="password">Password</label>
<input id="password" name="password" aria-label="Password" type="password" autocomplete="current-password"></div>
<button id="allow" class="primary" name="decision" value="allow" aria-label="Sign in">Sign in</button>
<button id="deny" name="decision" value="deny" aria-label="Deny">Deny</button>
</form>"""

    return _page("Sign in", body, 400 if problem else 200, problem)


def message_page(title: str, text: str, status: int) -> Page:
    """Return a page with a text, which is a problem if the status is that of an error."""
    problem = text if status >= 400 else ""  # noqa: PLR2004  # errors

    return _page(title, f"<p>{escape(text)}</p>", status, problem)


def not_found_page(metadata_url: str) -> Page:
    """Return the page for an unknown address, with a link to the provider's metadata."""
    body = f"""<p>The provider has no page at this address. A sign-in starts in the app.</p>
<p><a class="button" href="{escape(metadata_url)}">Show the provider's metadata</a></p>"""

    return _page("Page not found", body, 404, "")


def mismatch_page(
    title: str, text: str, values: Mapping[str, Sequence[str]], fix: str
) -> Page:
    """Return the page for a value that is not registered: what came beside what is registered, and the fix.

    Without credentials: a redirect URI that an app sent may contain any.
    """
    rows = ""
    summary: list[str] = []
    for label, unmasked in values.items():
        shown = [_shortened(Redactor().text(value)) for value in unmasked]
        rows += f"<div><dt>{escape(label)}</dt>{_definitions(shown)}</div>"
        summary.append(f"{label.lower()}: {', '.join(shown) or 'none'}")
    body = f"<p>{escape(text)}</p>\n<dl>{rows}</dl>\n<p>{escape(fix)}</p>"

    return _page(title, body, 400, f"{title}: {'; '.join(summary)}")


def _definitions(values: Sequence[str]) -> str:
    if not values:
        return "<dd>none</dd>"

    return "".join(f"<dd><code>{escape(value)}</code></dd>" for value in values)


def _shortened(text: str) -> str:
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return text

    return f"{text[:MAX_SHOWN_CHARACTERS]}…"


def _page(title: str, body: str, status: int, problem: str) -> Page:
    style = _style()
    html = _PAGE.format(title=escape(title), style=style, body=body)
    page = Page(html, status, headers=_headers(style))
    page.problem = problem

    return page


@cache
def _style() -> str:
    """Return the stylesheet: in the page, so that it needs no request of its own, which tests would see."""
    path = page_style.DIRECTORY / page_style.STYLESHEET

    return path.read_text("utf-8") + _OWN_STYLE


def _headers(style: str) -> Mapping[str, str]:
    """Return the headers of a page: with the style's hash, no other style is applied."""
    digest = base64.b64encode(sha256(style.encode()).digest()).decode("ascii")

    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
            "frame-ancestors 'none'; base-uri 'none'"
        ),
        "Referrer-Policy": "no-referrer",
    }
