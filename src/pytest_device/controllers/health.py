"""Whether the controller of a session in progress is alive."""

import json
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Self

import httpx

from pytest_device.controllers.transport import access_of, address_of, reason_of, refusal_of
from pytest_device.redact import is_loopback
from pytest_device.sessions.models import AgentDeviceConfig, AppiumConfig, ArgentConfig, RemoteConfig, Session

TIMEOUT_SECONDS: Final = 10.0
MAX_REPLY_BYTES: Final = 1024 * 1024

_OK: Final = 200


def problem_of(session: Session, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str | None:
    """Ask the controller whether it is alive: None when it is, or when there is none to ask, else what is wrong.

    The reason shows neither the controller's address nor a credential. It is there after ``timeout_seconds``, however
    slowly the controller answers; only to look up a name and to try several addresses of it may take longer.
    """
    question = _question_of(session.remote_config)
    if question is None:
        return None
    with _Deadline(timeout_seconds) as deadline:
        problem = _asked(question, deadline)
    if problem and deadline.is_over:
        problem = deadline.words
    return problem and f"its {question.controller} {problem}"


@dataclass(frozen=True, slots=True)
class _Question:
    controller: str
    base_url: str = field(repr=False)
    path: str
    is_alive: Callable[[Any], bool]
    token: str = field(default="", repr=False)


def _question_of(config: RemoteConfig | None) -> _Question | None:
    match config:
        case AppiumConfig():
            return _Question("Appium server", config.appium_url, "/status", _is_ready)
        case AgentDeviceConfig():
            return _Question("agent-device daemon", config.agent_device_remote_session_url, "/health", _is_ok)
        case ArgentConfig():
            token = config.tools_auth_token.get_secret_value() if config.tools_auth_token else ""
            return _Question("argent tool server", config.tools_url, "/tools", lambda _tools: True, token)
        case _:
            return None


def _is_ready(reply: Any) -> bool:
    match reply:
        case {"value": dict(value)}:  # pyright: ignore[reportUnknownVariableType]
            return value.get("ready") is not False  # pyright: ignore[reportUnknownMemberType]
        case _:
            return False


def _is_ok(reply: Any) -> bool:
    return isinstance(reply, dict) and reply.get("ok") is True  # pyright: ignore[reportUnknownMemberType]


class _Deadline:
    """Ends whatever is waited for: the time-outs of httpx bound each silence only."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.words = f"does not answer within {seconds:g} s"
        self._sockets: list[socket.socket] = []
        self._over = threading.Event()
        self._timer = threading.Timer(seconds, self._strike)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def note(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._sockets.append(info["return_value"].get_extra_info("socket"))

    def _strike(self) -> None:
        self._over.set()
        for opened in tuple(self._sockets):
            with suppress(OSError):  # closed since
                opened.shutdown(socket.SHUT_RDWR)


def _asked(question: _Question, deadline: _Deadline) -> str | None:
    try:
        address, access = address_of(question.base_url, question.path), access_of(question.base_url, question.token)
        with httpx.Client(timeout=deadline.seconds, trust_env=not is_loopback(address.host), **access) as client:
            try:
                return _answer(client, address, question, deadline)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                if deadline.is_over:
                    raise
                return _answer(client, address, question, deadline)
    except httpx.TimeoutException:
        return deadline.words
    except httpx.HTTPError as error:
        return f"does not answer: {reason_of(error)}"
    except (httpx.InvalidURL, ImportError, OSError, ValueError) as error:  # also of the proxy and certificate variables
        return f"cannot be asked: {type(error).__name__}"


def _answer(client: httpx.Client, address: httpx.URL, question: _Question, deadline: _Deadline) -> str | None:
    with client.stream("GET", address, extensions={"trace": deadline.note}) as reply:
        if reply.status_code != _OK:
            return refusal_of(reply.status_code)
        body = bytearray()
        for chunk in reply.iter_raw():
            body += chunk
            if len(body) > MAX_REPLY_BYTES:
                return f"answers with more than {MAX_REPLY_BYTES} bytes"
    try:
        is_alive = question.is_alive(json.loads(body))
    except (ValueError, RecursionError):
        return "answers with something that is not JSON"
    return None if is_alive else "answers, but does not say that it is ready"
