"""Pages of made-up identity providers: forms of several kinds, and what a sign-in can't pass."""

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qsl, urlsplit

USER: Final = "ada@example.com"
PASSWORD: Final = "analytical engine"  # made up
REDIRECT: Final = "myapp://redirect"
RETURNED: Final = f"{REDIRECT}?code=c0de&state=s"

_FORM: Final = """<!doctype html><title>Log in</title><form method=post action="{action}">{fields}
<button>Next</button></form>"""
_USER: Final = "<label>E-mail <input name=login autocomplete=username></label>"
_PASSWORD: Final = (
    "<label>Password <input name=secret type=password></label>"  # no password
)
_REFUSAL: Final = "<p role=alert>That did not work, {user}.</p>"
_CAPTCHA: Final = (
    "<div class=x-captcha style='width:300px;height:80px'>Are you a person?</div>"
)

_APP: Final = """<!doctype html><title>Log in</title><script>
class SignIn extends HTMLElement {{
  connectedCallback() {{
    this.attachShadow({{mode: "open"}});
    setTimeout(() => this.ask("text", "user_name"), 300);
  }}
  ask(type, name) {{
    this.shadowRoot.innerHTML = `<input type=${{type}} name=${{name}}><div role=button>Go</div>`;
    this.shadowRoot.querySelector("div").onclick = async () => {{
      const value = this.shadowRoot.querySelector("input").value;
      await fetch("{kind}", {{method: "POST", body: new URLSearchParams({{[name]: value}})}});
      if (type === "text") this.ask("password", "secret");
      else location.href = "{returned}";
    }};
  }}
}}
customElements.define("sign-in", SignIn);
</script><sign-in></sign-in>"""

_SCRIPT: Final = f"""{_USER}{_PASSWORD}<button>Go</button><script>
document.querySelector("button").onclick = send;
onkeydown = ({{{{key}}}}) => key === "Enter" && send();
async function send() {{{{
  const values = [...document.querySelectorAll("input")].map(({{{{name, value}}}}) => [name, value]);
  await fetch("{{kind}}", {{{{method: "POST", body: new URLSearchParams(values)}}}});
  location.href = "{{returned}}";
}}}}
</script>"""

FIRST: Final[Mapping[str, str]] = {
    "one_page": _FORM.format(action="done", fields=_USER + _PASSWORD),
    "two_pages": _FORM.format(action="password", fields=_USER),
    "password": _FORM.format(action="done", fields=_PASSWORD),
    "component": _APP.format(kind="seen", returned=RETURNED),
    "decoys": "<form><input name=q placeholder=Search></form>"
    "<form>Newsletter <input type=email autocomplete=email><button>Join</button></form>"
    "<form>New? <input type=password autocomplete=new-password></form>"
    + _FORM.format(
        action="done",
        fields="<input name=email style='position:absolute;left:-900px'>"
        "<input name=username style='opacity:0'>"
        "<label>E-mail <input name=login class=rootPanel></label>"
        + _PASSWORD
        + "<input type=hidden name=csrf value=token>",
    ),
    "slow": _SCRIPT.format(kind="slow", returned=RETURNED),
    "restless": _SCRIPT.format(kind="seen", returned=RETURNED)
    + "<img src=hang><p id=clock><script>setInterval(() => clock.innerText = Date.now(), 50)</script>",
    "by_script": _FORM.format(action="forward", fields=_USER + _PASSWORD),
    "unseen_captcha": _FORM.format(action="done", fields=_USER + _PASSWORD)
    + "<iframe class=x-captcha title=badge></iframe>",
    "denied": f"<script>location.href = '{REDIRECT}?error=access_denied'</script>",
    "wrong_password": _FORM.format(action="refuse", fields=_USER + _PASSWORD),
    "wrong_user": _FORM.format(action="refuse_user", fields=_USER),
    "captcha": f"<title>Just a moment</title>{_CAPTCHA}",
    "captcha_after": _FORM.format(action="ask_captcha", fields=_USER + _PASSWORD),
    "second_factor": _FORM.format(action="ask_code", fields=_USER + _PASSWORD),
    "consent": _FORM.format(action="ask_consent", fields=_USER + _PASSWORD),
    "over_http": _FORM.format(
        action="http://provider.invalid/done", fields=_USER + _PASSWORD
    ),
    "nothing": "<title>Welcome</title><h1>Welcome to the company</h1>",
    "rejected": "<title>Error</title>invalid redirect_uri",
    "broken": "<title>Error</title>Out of memory",
    "silent": _FORM.format(action="hang", fields=_USER + _PASSWORD),
}
_STATUS: Final = {"rejected": 400, "broken": 503}
_METADATA_STATUS: Final = {"unknown": 404, "deployed": 503}
_NEXT: Final[Mapping[str, str]] = {
    "password": _FORM.format(action="done", fields=_PASSWORD),
    "refuse": _FORM.format(action="refuse", fields=_REFUSAL + _USER + _PASSWORD),
    "refuse_user": _FORM.format(action="refuse_user", fields=_REFUSAL + _USER),
    "ask_captcha": _FORM.format(action="x", fields=_USER + _PASSWORD + _CAPTCHA),
    "ask_code": _FORM.format(
        action="x", fields="<input name=user_otp_code inputmode=numeric>"
    ),
    "ask_consent": _FORM.format(
        action="x", fields="<title>May the app read your name?</title>"
    ).replace("<button>Next</button>", "<button>Allow</button><button>Deny</button>"),
    "forward": f"<script>setTimeout(() => location.replace('{RETURNED}'), 700)</script>",
    "seen": "",
}


@dataclass(frozen=True, slots=True)
class Pages:
    """A running server: each kind of page is at ``url/KIND``; ``sent`` has the forms that arrived."""

    url: str
    sent: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    ended: threading.Event = field(default_factory=threading.Event)

    def metadata(self, kind: str) -> dict[str, str]:
        """Return the metadata of the provider whose page is of a kind; its issuer is ``url/KIND``."""
        issuer = f"{self.url}/{kind}"
        endpoints = {"authorization_endpoint": issuer, "token_endpoint": f"{issuer}/x"}
        return {"issuer": issuer, "jwks_uri": f"{issuer}/x", **endpoints}


@contextmanager
def serving() -> Generator[Pages]:
    """Serve the pages on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    pages = Pages(f"http://127.0.0.1:{server.server_port}")
    server.pages = pages  # type: ignore[attr-defined]  # read by the handler
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield pages
    finally:
        pages.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    @property
    def _pages(self) -> Pages:
        found: Pages = self.server.pages  # type: ignore[attr-defined]  # set by serving
        return found

    def do_GET(self) -> None:
        kind, _, rest = urlsplit(self.path).path.removeprefix("/").partition("/")
        if kind == "hang":
            self._pages.ended.wait()
            return
        if rest == ".well-known/openid-configuration":
            if status := _METADATA_STATUS.get(kind):
                self._answer("", status)
            else:
                self._answer(json.dumps(self._pages.metadata(kind)), 200)
            return
        self._answer(FIRST.get(kind, ""), _STATUS.get(kind, 200))

    def do_POST(self) -> None:
        pages = self._pages
        length = int(self.headers["Content-Length"])
        form = dict(parse_qsl(self.rfile.read(length).decode(), keep_blank_values=True))
        pages.sent.append(form)

        kind = self.path.removeprefix("/")
        if kind == "slow":
            # Longer than the browser waits for a page that has reacted to nothing.
            pages.ended.wait(7)
            kind = "seen"

        if kind == "hang":
            pages.ended.wait()
        elif kind == "done":
            self.send_response(303)
            self.send_header("Location", RETURNED)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._answer(_NEXT[kind].format(user=form.get("login")), 200)

    def _answer(self, html: str, status: int) -> None:
        body = html.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name in the base class
        """Discard the line."""
