"""Runs the local service as a child process of this run."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, Self, cast

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

    def __init__(
        self,
        config: Mapping[str, Any],
        directory: Path,
        progress: Callable[[str], None],
    ) -> None:
        self.token = str(config["token"])
        self.log_path = directory / "service.log"
        self._directory = directory
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "pytest_device.service",
            ],  # never import from the working directory
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=passed_on(os.environ),
            start_new_session=True,  # leave Ctrl-C in the terminal to this run, which stops the sessions first
        )
        try:
            self.url = self._handshake(
                {**config, "log_path": str(self.log_path)}, progress
            )
        except BaseException:
            self.close()
            raise

    @classmethod
    def start(
        cls, *, app_id: str, progress: Callable[[str], None], **more: Any
    ) -> Self:
        """Start the service on a free port of 127.0.0.1 with a new token; return once it responds.

        ``progress`` reports installations on first use. ``more`` is added to the service's configuration. Raises
        ConfigError with cause and fix if it cannot start.
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
        return cls({**config, **more}, directory, progress)

    def close(self) -> None:
        """Stop the service and everything it started; return when it is gone."""
        stdin, stdout = self._pipes
        with suppress(BrokenPipeError):  # it has already exited
            stdin.close()  # makes the service stop its sessions and exit
        try:
            self._process.wait(END_SECONDS)
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
        with suppress(
            BrokenPipeError
        ):  # it has already exited: its output has the reason
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


def log_lines(log_path: Path, session_ids: Collection[str]) -> str:
    """Return the newest lines of a local service's log about these sessions, with shortened IDs."""
    try:
        lines = log_path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    text = "\n".join(
        [line for line in lines if any(name in line for name in session_ids)][
            -LOG_LINES:
        ]
    )
    for name in session_ids:  # shown in full elsewhere
        text = text.replace(name, name[:8])
    return text
