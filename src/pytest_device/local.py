"""Runs the local service as a child process of this run."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, Self

from pytest_device.errors import ConfigError
from pytest_device.programs import passed_on

END_SECONDS: Final = 20.0
"""Maximum seconds for a stopping service to stop its sessions' programs."""
LOG_LINES: Final = 30
_NEEDED: Final = ("starlette", "uvicorn", "psutil")


class LocalService:
    """A running local service: ``url``, ``token`` (secret), ``log_path``.

    It lives as long as this process keeps its standard input open, so that it stops its sessions and itself even if
    this process is killed.
    """

    def __init__(self, process: "subprocess.Popen[str]", url: str, token: str, directory: Path) -> None:
        self._process = process
        self._directory = directory
        self.url = url
        self.token = token
        self.log_path = directory / "service.log"

    @classmethod
    def start(cls, *, app_id: str, progress: Callable[[str], None], **more: Any) -> Self:
        """Start the service on a free port of 127.0.0.1 with a new token; return once it responds.

        ``progress`` reports installations on first use. ``more`` is added to the service's configuration. Raises
        ConfigError with cause and fix if it cannot start.
        """
        missing = [name for name in _NEEDED if find_spec(name) is None]
        if missing:
            raise ConfigError(f"the local service needs {', '.join(missing)}: pip install 'pytest-device[local]'")
        directory = Path(tempfile.mkdtemp(prefix="pytest-device-"))
        token = secrets.token_urlsafe(32)
        config = {
            "token": token,
            "app_id": app_id,
            "state_dir": str(directory),
            "log_path": str(directory / "service.log"),
            "temporary": True,
            **more,
        }
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pytest_device.service"],  # never import from the working directory
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=passed_on(os.environ),
            start_new_session=True,  # leave Ctrl-C in the terminal to this run, which stops the sessions first
        )
        try:
            url = _handshake(process, config, progress)
        except BaseException:
            _end(process, directory)
            raise
        return cls(process, url, token, directory)

    def close(self) -> None:
        """Stop the service and everything it started; return when it is gone."""
        _end(self._process, self._directory)


def log_lines(log_path: Path, session_ids: Collection[str]) -> str:
    """Return the newest lines of a local service's log about these sessions, with shortened IDs."""
    try:
        lines = log_path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    text = "\n".join([line for line in lines if any(name in line for name in session_ids)][-LOG_LINES:])
    for name in session_ids:  # shown in full elsewhere
        text = text.replace(name, name[:8])
    return text


def _handshake(process: "subprocess.Popen[str]", config: dict[str, Any], progress: Callable[[str], None]) -> str:
    stdin, stdout = _pipes(process)
    with suppress(BrokenPipeError):  # it has already exited: its output has the reason
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
                raise ConfigError(f"unexpected output of the local service: {other!r}")
    raise ConfigError(f"the local service exited with status {process.wait(END_SECONDS)} before it was ready")


def _pipes(process: "subprocess.Popen[str]") -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the service was started without pipes")
    return process.stdin, process.stdout


def _end(process: "subprocess.Popen[str]", directory: Path) -> None:
    stdin, stdout = _pipes(process)
    with suppress(BrokenPipeError):  # it has already exited
        stdin.close()  # makes the service stop its sessions and exit
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    stdout.close()
    shutil.rmtree(directory, ignore_errors=True)
