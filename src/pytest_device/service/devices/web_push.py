"""Push subscriptions of web apps, and what a sender of messages must say: RFC 8030 and RFC 8292.

The messages are decrypted (RFC 8291) and their senders' signatures checked in the app's service worker, whose browser
has the cryptography.
"""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_device.errors import DeviceError

MAX_BODY_BYTES: Final = 4096
"""Maximum size of an encrypted message, see RFC 8030, section 7.2."""
_DAY_SECONDS: Final = 24 * 60 * 60
_VAPID: Final = re.compile(r"vapid (.+)", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"\s*([tk])\s*=\s*\"?([\w.-]+)\"?\s*(?:,|$)", re.ASCII)
_TOPIC: Final = re.compile(r"[\w-]{1,32}", re.ASCII)
_URGENCIES: Final = ("very-low", "low", "normal", "high")


class PushRefusedError(DeviceError):
    """The message breaks a rule; ``status`` is that of the response."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of a service worker; ``keys`` include its private key."""

    id: str
    scope: str
    keys: Mapping[str, Any]

    @property
    def sender(self) -> str:
        """Public key of the only application server that may send messages."""
        return str(self.keys["key"])


class Subscriptions:
    """The subscriptions of a device, one for each scope; their endpoints are below ``url``."""

    def __init__(self) -> None:
        self.url = ""
        self._all: dict[str, Subscription] = {}

    def answer(self, asked: Mapping[str, Any]) -> object:
        """Respond to a page or worker: return its subscription, a new one, or whether it has ended one."""
        scope = str(asked["scope"])
        known = next((one for one in self._all.values() if one.scope == scope), None)
        match asked["what"]:
            case "subscribe":
                made = Subscription(secrets.token_urlsafe(16), scope, asked["keys"])
                self._end(known)
                self._all[made.id] = made
                return self._shown(made)
            case "unsubscribe":
                self._end(known)
                return known is not None
            case _:
                return known and self._shown(known)

    def _end(self, one: Subscription | None) -> None:
        if one:
            del self._all[one.id]

    def forget(self, *scopes: str) -> None:
        """End the subscriptions of scopes that start with one of the given ones."""
        self._all = {
            name: one
            for name, one in self._all.items()
            if not one.scope.startswith(scopes)
        }

    def accepted(
        self, name: str, headers: Mapping[str, str], body: bytes, now: float
    ) -> tuple[Subscription, str]:
        """Return the subscription of a message and its sender's signed token. Raises PushRefusedError."""
        if name not in self._all:
            raise PushRefusedError(410, "the subscription has ended")
        _check_message(headers, body)
        one = self._all[name]
        token, key = _credentials(headers.get("authorization", ""))
        if key != one.sender:
            raise PushRefusedError(
                403, "k is not the applicationServerKey of the subscription"
            )
        _check_token(token, "/".join(self.url.split("/")[:3]), now)
        return one, token

    def _shown(self, one: Subscription) -> Mapping[str, str]:
        names = ("p256dh", "auth", "key")
        return {
            "endpoint": f"{self.url}/{one.id}",
            **{name: one.keys[name] for name in names},
        }


def _check_message(headers: Mapping[str, str], body: bytes) -> None:
    encoding, urgency = headers.get("content-encoding"), headers.get("urgency")
    rules = {
        (400, "TTL must be a number of seconds"): headers.get("ttl", "").isdecimal(),
        (413, f"the body has more than {MAX_BODY_BYTES} bytes"): len(body)
        <= MAX_BODY_BYTES,
        (415, "Content-Encoding must be aes128gcm"): not body
        or encoding == "aes128gcm",
        (400, f"Urgency must be one of {', '.join(_URGENCIES)}"): urgency is None
        or urgency in _URGENCIES,
        (400, "Topic must have up to 32 characters of base64url"): _TOPIC.fullmatch(
            headers.get("topic", "-")
        ),
    }
    for (status, problem), holds in rules.items():
        if not holds:
            raise PushRefusedError(status, problem)


def _credentials(header: str) -> tuple[str, str]:
    found = _VAPID.fullmatch(header)
    given = dict(_PARAMETER.findall(found[1])) if found else {}
    if given.keys() != {"t", "k"}:
        raise PushRefusedError(401, "Authorization must be: vapid t=TOKEN, k=KEY")
    return given["t"], given["k"].rstrip("=")


def _check_token(token: str, origin: str, now: float) -> None:
    """Raise PushRefusedError unless the claims of a token hold; its signature is checked in the browser."""
    try:
        _, payload, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
        audience, expires = claims["aud"], float(claims["exp"])
    except (ValueError, binascii.Error, KeyError, TypeError, OverflowError):
        raise PushRefusedError(
            403, "t must be a JSON Web Token with aud and exp"
        ) from None
    if audience != origin:
        raise PushRefusedError(403, f"aud must be {origin}")
    if not now < expires <= now + _DAY_SECONDS:
        raise PushRefusedError(403, "exp must be within the next 24 hours")
