"""Checks the token and the way to the service, by asking for a session that does not exist."""

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
from pytest_device.option_table import TOKEN_VARIABLE, URL
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.network import endpoint_at
from pytest_device.settings import checked_token

LIMIT_SECONDS: Final = 10.0

_NAME: Final = "service"
_UNAUTHORIZED: Final = 401
_A_PAGE: Final = "a page of HTML"
_ADDRESS_FIX: Final = (
    f"give the service's own address, up to and without /v2 ({URL.option}, {URL.variable} or {URL.ini})"
)
_ROADBLOCK_FIX: Final = "see whether a firewall stands between, or the proxy that HTTPS_PROXY names"
_FIXES: Final = (
    (r"CERTIFICATE_VERIFY_FAILED", "name the authority that signs the service's certificate in SSL_CERT_FILE"),
    (r"\bSSL\b|\bTLS\b|WRONG_VERSION_NUMBER", "correct the port, or https:// and http://: no TLS is spoken there"),
    (
        r"[Nn]ame or service|name resolution|getaddrinfo|nodename",
        "correct the host's name, or see that DNS or the VPN is up",
    ),
    (r"refused", "correct the host and the port, or start the service that should listen there"),
    (r"[Tt]imed out|Timeout|unreachable|[Nn]o route", _ROADBLOCK_FIX),
)


def check_service(url: str, token: str, *, limit_seconds: float = LIMIT_SECONDS) -> Iterator[Finding]:
    """Yield whether there is a token, and if so whether the service answers and takes it."""
    try:
        checked_token(token)
    except ConfigError as error:
        yield fail("token", *_cause_and_fix(error))
        return
    yield ok("token", f"given by {TOKEN_VARIABLE}")
    try:
        proxy = endpoint_at(url, token).proxy
    except ConfigError as error:
        yield fail(_NAME, *_cause_and_fix(error))
        return
    yield _judged(_answer(url, token, limit_seconds), f"{url} through the proxy {proxy}" if proxy else url)


def _cause_and_fix(error: ConfigError) -> tuple[str, str]:
    cause, _, fix = str(error).rpartition(": ")
    return cause, fix


def _answer(url: str, token: str, limit_seconds: float) -> DeviceError | None:
    """Return what a get of a session that nobody has comes to, within the limit: looking a name up has none."""
    answers = SimpleQueue[DeviceError | None]()

    def ask() -> None:
        try:
            with DeviceClient(url, token, reply_seconds=limit_seconds) as client:
                client.get(uuid4())
        except DeviceError as error:
            answers.put(error)
        else:
            answers.put(None)

    threading.Thread(target=ask, name="pytest-device-doctor", daemon=True).start()
    try:
        return answers.get(timeout=limit_seconds)
    except Empty:
        return TransportError(f"get: timed out, no answer within {limit_seconds:g} s", sent=True)


def _judged(error: DeviceError | None, where: str) -> Finding:
    text = f"{where}: {error}"
    match error:
        case None:
            return ok(_NAME, f"{where} answers and takes the token")
        case NotFoundError() if not error.detail.startswith(_A_PAGE):
            return ok(_NAME, f"{where} answers and takes the token (it knows no session by a made-up id)")
        case TransportError():
            return fail(_NAME, text, _fix_of(str(error)))
        case ConfigError():
            return fail(_NAME, *_cause_and_fix(error))
        case _:
            return fail(_NAME, text, _fix_of_answer(error))


def _fix_of(text: str) -> str:
    return next((fix for pattern, fix in _FIXES if re.search(pattern, text)), _ROADBLOCK_FIX)


def _fix_of_answer(error: DeviceError) -> str:
    match error:
        case UnauthorizedError() if error.status == _UNAUTHORIZED:
            return (
                f"put a valid token into {TOKEN_VARIABLE}: of a robot user of the project's account, or a personal one"
            )
        case UnauthorizedError():
            return "see what on the way takes the Authorization header away: a proxy, or a redirecting address"
        case ForbiddenError():
            return "give the token's robot user the Developer role on the account that owns the project"
        case NotFoundError() | UnexpectedReplyError():
            return _ADDRESS_FIX
        case StatusError() if error.status >= 500 or error.status == 429:  # noqa: PLR2004
            return "try again later, and tell those who run the service when it stays so"
        case _:
            return _ADDRESS_FIX
