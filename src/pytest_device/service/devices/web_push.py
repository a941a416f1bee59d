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
_PARAMETER: Final = re.compile(r"([tk])\s*+=\s*+\"?([\w.-]++)\"?\s*+(?:,|$)", re.ASCII)
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

    def answer(self, call: Mapping[str, Any]) -> object:
        """Respond to a page or worker: return its subscription, a new one, or whether it has ended one."""
        scope = str(call["scope"])
        current = self._of_scope(scope)

        match call["what"]:
            case "subscribe":
                new = Subscription(secrets.token_urlsafe(16), scope, call["keys"])
                self._end(current)
                self._all[new.id] = new
                return self._shown(new)
            case "unsubscribe":
                self._end(current)
                return current is not None
            case _:
                return None if current is None else self._shown(current)

    def _of_scope(self, scope: str) -> Subscription | None:
        for subscription in self._all.values():
            if subscription.scope == scope:
                return subscription
        return None

    def _end(self, subscription: Subscription | None) -> None:
        if subscription:
            del self._all[subscription.id]

    def forget(self, *scopes: str) -> None:
        """End the subscriptions of scopes that start with one of the given ones."""
        self._all = {
            name: subscription
            for name, subscription in self._all.items()
            if not subscription.scope.startswith(scopes)
        }

    def accepted(
        self, name: str, headers: Mapping[str, str], body: bytes, now: float
    ) -> tuple[Subscription, str]:
        """Return the subscription of a message and its sender's signed token.

        Arguments:
            name: The ID of the subscription, from the URL.
            headers: The headers of the request.
            body: The encrypted message.
            now: The time in Unix seconds.

        Raises:
            PushRefusedError: The message breaks a rule.
        """
        if name not in self._all:
            raise PushRefusedError(410, "the subscription has ended")

        _check_message(headers, body)
        subscription = self._all[name]

        token, key = _credentials(headers.get("authorization", ""))
        if key != subscription.sender:
            raise PushRefusedError(
                403, "k is not the applicationServerKey of the subscription"
            )

        _check_token(token, "/".join(self.url.split("/")[:3]), now)
        return subscription, token

    def _shown(self, subscription: Subscription) -> Mapping[str, str]:
        names = ("p256dh", "auth", "key")
        return {
            "endpoint": f"{self.url}/{subscription.id}",
            **{name: subscription.keys[name] for name in names},
        }


def _check_message(headers: Mapping[str, str], body: bytes) -> None:
    """Raise PushRefusedError unless headers and body follow RFC 8030, sections 5.2 to 5.4 and 7.2, and RFC 8291."""
    if not headers.get("ttl", "").isdecimal():
        raise PushRefusedError(400, "TTL must be a number of seconds")
    if len(body) > MAX_BODY_BYTES:
        raise PushRefusedError(413, f"the body has more than {MAX_BODY_BYTES} bytes")
    if body and headers.get("content-encoding") != "aes128gcm":
        raise PushRefusedError(415, "Content-Encoding must be aes128gcm")

    urgency = headers.get("urgency")
    if urgency is not None and urgency not in _URGENCIES:
        choices = ", ".join(_URGENCIES)
        raise PushRefusedError(400, f"Urgency must be one of {choices}")
    topic = headers.get("topic")
    if topic is not None and not _TOPIC.fullmatch(topic):
        raise PushRefusedError(400, "Topic must have up to 32 characters of base64url")


def _credentials(header: str) -> tuple[str, str]:
    """Return the signed token and the public key of a sender (RFC 8292, section 3). Raises PushRefusedError."""
    match = _VAPID.fullmatch(header)
    parameters = dict(_PARAMETER.findall(match[1])) if match else {}
    if parameters.keys() != {"t", "k"}:
        raise PushRefusedError(401, "Authorization must be: vapid t=TOKEN, k=KEY")

    return parameters["t"], parameters["k"].rstrip("=")


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
