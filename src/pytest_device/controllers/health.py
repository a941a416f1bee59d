"""Checks whether the controller of a session in progress is alive."""

import json
import threading
from dataclasses import dataclass, field
from typing import Final

import httpx

from pytest_device.body_limit import BodyLimitError, read_body
from pytest_device.call_limit import Sockets
from pytest_device.controllers.client import (
    OK,
    http_client,
    reason_of,
    refusal_of,
    url_of,
)
from pytest_device.sessions.compression import unpacked
from pytest_device.sessions.models import Session
from pytest_device.sessions.network import (
    check_sent,
    naming_intercepting_plugin,
)
from pytest_device.sessions.remote_config import (
    AgentDeviceConfig,
    AppiumConfig,
    ArgentConfig,
    RemoteConfig,
)

TIMEOUT_SECONDS: Final = 10.0
MAX_REPLY_BYTES: Final = 1024 * 1024


def problem_of(
    session: Session, *, timeout_seconds: float = TIMEOUT_SECONDS
) -> str | None:
    """Return the problem with the controller; None if it is alive or there is none.

    The text shows neither the controller's URL nor a credential. The check takes at most ``timeout_seconds``, however
    slowly the controller responds; only DNS lookups and several IP addresses can take longer.
    """
    probe = _probe_of(session.remote_config)
    if probe is None:
        return None

    sockets = Sockets()
    with sockets.limited(timeout_seconds) as late:
        problem = _probed(probe, timeout_seconds, sockets, late)

    if problem is None:
        return None
    if late.is_set():
        problem = f"does not respond within {timeout_seconds:g} s"
    return f"its {probe.controller} {problem}"


@dataclass(frozen=True, slots=True)
class _Probe:
    """A health check: a request to a path of a controller."""

    controller: str
    base_url: str = field(repr=False)
    path: str
    token: str = field(default="", repr=False)


def _probe_of(config: RemoteConfig | None) -> _Probe | None:
    match config:
        case AppiumConfig():
            return _Probe("Appium server", config.appium_url, "/status")
        case AgentDeviceConfig():
            return _Probe(
                "agent-device daemon", config.agent_device_remote_session_url, "/health"
            )
        case ArgentConfig():
            secret = config.tools_auth_token
            token = secret.get_secret_value() if secret else ""
            return _Probe("argent tool server", config.tools_url, "/tools", token)
        case _:
            return None


def _is_alive(path: str, reply: object) -> bool:
    """Return whether a controller's own reply says that it is ready; argent's says nothing about it."""
    match path, reply:
        case ("/status", {"value": {"ready": False}}):
            return False
        case ("/tools", _) | ("/health", {"ok": True}) | ("/status", {"value": {}}):
            return True
        case _:
            return False


def _probed(
    probe: _Probe, seconds: float, sockets: Sockets, late: threading.Event
) -> str | None:
    try:
        url = url_of(probe.base_url, probe.path)
        client = http_client(probe.base_url, probe.token, timeout=seconds)
        with naming_intercepting_plugin(probe.base_url), client:
            try:
                return _problem_in_reply(client, url, probe, sockets)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                if late.is_set():
                    raise
                # Once more: a connection that was just closed says nothing about the controller.
                return _problem_in_reply(client, url, probe, sockets)
    except httpx.HTTPError as error:
        if isinstance(error, httpx.TimeoutException):
            late.set()
        return f"does not respond: {reason_of(error)}"
    # The last three are also raised for invalid proxy variables.
    except (httpx.InvalidURL, ImportError, OSError, ValueError) as error:
        return f"cannot be checked: {type(error).__name__}"


def _problem_in_reply(
    client: httpx.Client, url: httpx.URL, probe: _Probe, sockets: Sockets
) -> str | None:
    with client.stream("GET", url, extensions={"trace": sockets.note}) as reply:
        check_sent(reply, probe.base_url)
        if reply.status_code != OK:
            return refusal_of(reply.status_code)

        try:
            body = read_body(reply.iter_raw(), MAX_REPLY_BYTES)
        except BodyLimitError:
            return f"returned more than {MAX_REPLY_BYTES} bytes"

    try:
        plain = unpacked(
            body, reply.headers.get("Content-Encoding", ""), MAX_REPLY_BYTES
        )
        is_alive = _is_alive(probe.path, json.loads(plain))
    except (ValueError, RecursionError):  # ValueErrors are those of compression, too
        return "returned something other than JSON"

    return None if is_alive else "responds, but does not report that it is ready"
