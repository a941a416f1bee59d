"""Checks the token and the connection to the service, by requesting a session that does not exist."""

import re
import threading
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Final
from uuid import uuid4

from pytest_device.cli.doctor.finding import Finding, fail, ok
from pytest_device.errors import (
    ConfigError,
    DeviceError,
    ForbiddenError,
    NotFoundError,
    StatusError,
    TransportError,
    UnauthorizedError,
    UnexpectedReplyError,
)
from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.network import endpoint_at
from pytest_device.settings import checked_token

LIMIT_SECONDS: Final = 10.0

_NAME: Final = "service"
_UNAUTHORIZED: Final = 401
_ADDRESS_FIX: Final = f"set the service's own URL, without /v2 ({Options.url.spellings})"
_ROADBLOCK_FIX: Final = "check for a firewall in between, and the proxy in HTTPS_PROXY"
_FIXES: Final = (
    (r"CERTIFICATE_VERIFY_FAILED", "set SSL_CERT_FILE to the certificate authority of the service"),
    (
        r"\bSSL\b|\bTLS\b|WRONG_VERSION_NUMBER",
        "correct the port or the scheme (https:// or http://): this port does not use TLS",
    ),
    (
        r"[Nn]ame or service|name resolution|getaddrinfo|nodename",
        "correct the host name, or check that DNS and VPN work",
    ),
    (r"refused", "correct the host and port, or start the service"),
    (r"[Tt]imed out|Timeout|unreachable|[Nn]o route", _ROADBLOCK_FIX),
)


def check_service(url: str, token: str, *, limit_seconds: float = LIMIT_SECONDS) -> Iterator[Finding]:
    """Yield findings on whether there is a token and, if so, whether the service responds and accepts it."""
    try:
        checked_token(token)
    except ConfigError as error:
        yield fail("token", *_cause_and_fix(error))
        return
    yield ok("token", f"set by {TOKEN_VARIABLE}")
    try:
        proxy = endpoint_at(url, token).proxy
    except ConfigError as error:
        yield fail(_NAME, *_cause_and_fix(error))
        return
    yield _finding_for(_answer(url, token, limit_seconds), f"{url} through the proxy {proxy}" if proxy else url)


def _cause_and_fix(error: ConfigError) -> tuple[str, str]:
    cause, _, fix = str(error).rpartition(": ")
    return cause, fix


def _answer(url: str, token: str, limit_seconds: float) -> DeviceError | None:
    """Return the error of requesting a session that does not exist; the limit includes the DNS lookup."""
    answers = SimpleQueue[DeviceError | None]()

    def request() -> None:
        try:
            with DeviceClient(url, token, reply_seconds=limit_seconds) as client:
                client.get(uuid4())
        except DeviceError as error:
            answers.put(error)
        else:
            answers.put(None)

    threading.Thread(target=request, name="pytest-device-doctor", daemon=True).start()
    try:
        return answers.get(timeout=limit_seconds)
    except Empty:
        return TransportError(f"get: timed out, no response within {limit_seconds:g} s", sent=True)


def _finding_for(error: DeviceError | None, where: str) -> Finding:
    text = f"{where}: {error}"
    match error:
        case None:
            return ok(_NAME, f"{where} responds and accepts the token")
        case NotFoundError() if not error.is_page:
            return ok(_NAME, f"{where} responds and accepts the token (404 for a made-up session ID, as expected)")
        case TransportError():
            return fail(_NAME, text, _fix_of(str(error)))
        case ConfigError():
            return fail(_NAME, *_cause_and_fix(error))
        case _:
            return fail(_NAME, text, fix_of(error))


def _fix_of(text: str) -> str:
    return next((fix for pattern, fix in _FIXES if re.search(pattern, text)), _ROADBLOCK_FIX)


def fix_of(error: DeviceError) -> str:
    """Return the fix for a refusal by the service."""
    match error:
        case UnauthorizedError() if error.status == _UNAUTHORIZED:
            return f"set {TOKEN_VARIABLE} to a valid token, of a robot user of the project's account or a personal one"
        case UnauthorizedError():
            return "check what removes the Authorization header on the way: a proxy, or a redirecting URL"
        case ForbiddenError():
            return "give the token's robot user the Developer role on the account that owns the project"
        case NotFoundError() | UnexpectedReplyError():
            return _ADDRESS_FIX
        case StatusError() if error.status >= 500 or error.status == 429:  # noqa: PLR2004
            return "try again later, and contact the operator of the service if it persists"
        case _:
            return _ADDRESS_FIX
