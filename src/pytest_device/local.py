"""Runs the local service as a child process of this run."""

import json
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, Self, cast
from urllib.parse import urljoin
from urllib.request import ProxyHandler, build_opener

from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.platforms.bare_python import bare_python
from pytest_device.programs import start_module

END_SECONDS: Final = 20.0
"""Maximum seconds for a stopping service to stop its sessions' programs."""
ASK_SECONDS: Final = 10.0
"""Maximum seconds for asking the system whether it permits namespaces."""
LOG_LINES: Final = 30
_ISOLATED: Final = "pytest_device.service.programs.isolated"
_NEEDED: Final = ("starlette", "uvicorn", "psutil")
_PAGE_SECONDS: Final = 5.0
"""Maximum seconds for one page of the service."""
_MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
_STYLESHEET: Final = re.compile(rb'<link rel="stylesheet"[^>]*>')
_SCRIPT: Final = re.compile(rb"<script[^>]*>.*?</script>", re.DOTALL)


class LocalService:
    """A running local service.

    It lives as long as this process keeps its standard input open, so that it stops its sessions and itself even if
    this process is killed.

    Attributes:
        url: Its URL.
        token: Its access token, a secret.
        log_path: Its log file.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        directory: Path,
        progress: Callable[[str], None],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self.token = str(config["token"])
        self.log_path = directory / "service.log"
        self._directory = directory
        self._process = start_module("pytest_device.service")

        try:
            meanwhile()
            self.url = self._handshake(
                {**config, "log_path": str(self.log_path)}, progress
            )
        except BaseException:
            self.close()
            raise

    @classmethod
    def start(
        cls,
        *,
        app_id: str,
        progress: Callable[[str], None],
        meanwhile: Callable[[], None] = lambda: None,
        **more: Any,
    ) -> Self:
        """Start the service on a free port of 127.0.0.1 with a new token; return once it responds.

        Arguments:
            app_id: The ID of its project.
            progress: Called with a line for each installation on first use.
            meanwhile: Called while it starts.
            **more: Further fields of the service's configuration.

        Raises:
            ConfigError: It cannot start; the message has the cause and the fix.
        """
        missing = [name for name in _NEEDED if find_spec(name) is None]
        if missing:
            raise ConfigError(
                f"the local service needs {', '.join(missing)}: pip install 'pytest-device[local]'"
            )

        directory = Path(tempfile.mkdtemp(prefix="pytest-device-"))
        config = {
            "token": secrets.token_urlsafe(32),
            "app_id": app_id,
            "state_dir": str(directory),
            "temporary": True,
        }

        return cls({**config, **more}, directory, progress, meanwhile)

    def close(self) -> None:
        """Stop the service and everything it started; return when it is gone."""
        stdin, stdout = self._pipes
        with suppress(BrokenPipeError):  # it has already exited
            stdin.close()  # makes the service stop its sessions and exit

        try:
            SYSTEM.wait_for_exit(self._process, END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

        stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _pipes(self) -> tuple[IO[str], IO[str]]:
        return cast(
            "tuple[IO[str], IO[str]]", (self._process.stdin, self._process.stdout)
        )

    def _handshake(
        self, config: Mapping[str, Any], progress: Callable[[str], None]
    ) -> str:
        stdin, stdout = self._pipes
        # It has already exited: its output has the reason.
        with suppress(BrokenPipeError):
            stdin.write(json.dumps(config) + "\n")
            stdin.flush()

        for line in stdout:
            event: object = line.strip()
            with suppress(ValueError):
                event = json.loads(line)

            match event:
                case {"event": "ready", "url": str(url)}:
                    return url
                case {"event": "progress", "text": str(text)}:
                    progress(text)
                case {"event": "error", "text": str(text)}:
                    raise ConfigError(f"the local service failed to start: {text}")
                case other:
                    raise ConfigError(
                        f"unexpected output of the local service: {other!r}"
                    )

        raise ConfigError(
            f"the local service exited with status {self._process.wait(END_SECONDS)} before it was ready"
        )


def why_not_isolated() -> str:
    """Return why this system refuses network namespaces to the programs of sessions, "" if it does not."""
    reason = SYSTEM.why_no_namespaces()
    if reason:
        return reason

    try:
        process = subprocess.run(  # noqa: S603  # a script of this package
            bare_python(_ISOLATED),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown: {type(error).__name__}"

    return process.stdout.strip()


def session_record(
    page_url: str, missing: Callable[[str], object]
) -> Iterator[tuple[str, bytes]]:
    """Yield what a local service shows about a session, by file name: its pages end with the run.

    ``session.html`` is the page, with its style and without its script, ``timeline.json`` its content for programs,
    ``controller.log`` the output of the controller, ``console.txt`` the console lines of its device.

    Arguments:
        page_url: The URL of the session page.
        missing: Called with a line for each file that can't be read.
    """
    for name, path in (
        ("session.html", ""),
        ("timeline.json", "/facts"),
        ("controller.log", "/log"),
        ("console.txt", "/console"),
    ):
        try:
            content = _get(f"{page_url}{path}")
            if name == "session.html":
                style = _get(urljoin(page_url, "../assets/page/style.css"))
                content = _standalone(content, style)
        except (OSError, ValueError, HTTPException) as error:
            missing(f"no {name} of the local service: {type(error).__name__}")
        else:
            yield name, content


def device_udid(page_url: str) -> str:
    """Return the ID by which the tools of its platform know a session's device. Raises ConfigError."""
    try:
        facts = json.loads(_get(f"{page_url}/facts"))
    except (OSError, ValueError, HTTPException) as error:
        raise ConfigError(
            f"the local service does not name the device of a session: {type(error).__name__}"
        ) from None

    return str(facts["data"]["udid"] or "")


def _get(url: str) -> bytes:
    # The service is on this machine: no proxy stands between.
    opener = build_opener(ProxyHandler({}))
    with opener.open(url, timeout=_PAGE_SECONDS) as reply:
        return cast("bytes", reply.read(_MAX_PAGE_BYTES))


def _standalone(page: bytes, style: bytes) -> bytes:
    """Return a page that needs no server: its style inside, and nothing that reloads it."""
    without_script = _SCRIPT.sub(b"", page)
    # A function, because backslashes in the style are not those of a replacement pattern.
    return _STYLESHEET.sub(lambda _: b"<style>" + style + b"</style>", without_script)


def log_lines(log_path: Path, session_ids: Collection[str]) -> str:
    """Return the newest lines of a local service's log about these sessions, with shortened IDs."""
    try:
        lines = log_path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return ""

    about_sessions = [
        line for line in lines if any(session_id in line for session_id in session_ids)
    ]
    text = "\n".join(about_sessions[-LOG_LINES:])
    for session_id in session_ids:  # shown in full elsewhere
        text = text.replace(session_id, session_id[:8])
    return text
