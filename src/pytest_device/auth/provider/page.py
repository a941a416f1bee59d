"""HTML pages of the provider, without scripts and accessible to drivers and screen readers."""

from collections.abc import Sequence
from html import escape

from starlette.responses import HTMLResponse

from pytest_device.errors import hides_frames

__tracebackhide__ = hides_frames

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 24rem; margin: 2rem auto; padding: 0 1rem }}
:root {{ color-scheme: light dark }}
label, button {{ display: block; width: 100%; box-sizing: border-box; margin-top: 1rem }}
input, button {{ font: inherit; width: 100%; min-height: 3rem; box-sizing: border-box }}
</style>
<main><h1>{title}</h1>
{body}
</main>
</html>
"""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}


class Page(HTMLResponse):
    """HTML response with the error message that it displays."""

    problem = ""


def sign_in_page(
    client_id: str, scopes: Sequence[str], query: str, problem: str = "", user: str = ""
) -> Page:
    """Return the sign-in and consent form."""
    alert = f'<p role="alert" id="problem">{escape(problem)}</p>' if problem else ""
    body = f"""{alert}<p>{escape(client_id)} asks for: {escape(", ".join(scopes) or "nothing beyond signing in")}</p>
<form method="post" action="authorize?{escape(query)}">
<label for="user">User name</label>
<input id="user" name="user" aria-label="User name" value="{escape(user)}"
 autocomplete="username" autocapitalize="none" autofocus>
<label for="password">Password</label>
<input id="password" name="password" aria-label="Password" type="password" autocomplete="current-password">
<button id="allow" name="decision" value="allow" aria-label="Sign in">Sign in</button>
<button id="deny" name="decision" value="deny" aria-label="Deny">Deny</button>
</form>"""
    return _page("Sign in", body, 400 if problem else 200, problem)


def message_page(title: str, text: str, status: int) -> Page:
    return _page(title, f"<p>{escape(text)}</p>", status, "" if status < 400 else text)  # noqa: PLR2004  # errors


def _page(title: str, body: str, status: int, problem: str) -> Page:
    page = Page(_PAGE.format(title=escape(title), body=body), status, headers=_HEADERS)
    page.problem = problem
    return page
