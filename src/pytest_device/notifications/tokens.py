"""Device push tokens, and the request that exchanges one for a token of the push service."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.body_limit import BodyLimitError, read_body
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.content import checked_text
from pytest_device.notifications.errors import NotificationError
from pytest_device.notifications.triggers import Platform, check_platform
from pytest_device.redact import shown
from pytest_device.secret_registry import SECRETS
from pytest_device.spec import VENDOR

if TYPE_CHECKING:
    import httpx

__tracebackhide__ = hides_frames

MAX_REPLY_BYTES: Final = 64 * 1024
"""Maximum size of a response in bytes; keeps quoted responses from flooding a report."""
SERVER_ERROR: Final = "ERR_NOTIFICATIONS_SERVER_ERROR"
_SERVICES: Final = {"ios": "apns", "android": "fcm"}

ApnsEnvironment: TypeAlias = Literal["development", "production"]


@dataclass(frozen=True, slots=True)
class DevicePushToken:
    """Native push token of the device (APNs or FCM); ``type`` is ``ios`` or ``android``."""

    data: str = field(repr=False)
    type: Platform

    def __post_init__(self) -> None:
        SECRETS.learn(self.data)


@dataclass(frozen=True, slots=True)
class PushToken:
    """Token of the vendor's push service."""

    data: str = field(repr=False)
    type: str = VENDOR
    """``token_type`` of the vendor's profile."""

    def __post_init__(self) -> None:
        SECRETS.learn(self.data)


class PushTokenRequest:
    """Request for a push token.

    ``base_url`` or ``url`` is required: there is no default push service. ``config_extra`` is ``extra`` of the app
    config, ``vendor`` the vendor's profile or only its word. ``development``
    selects the sandbox service on iOS, as does ``apns_environment="development"``.
    Raises ConfigError for an invalid device token or an option of another type.
    """

    def __init__(  # noqa: PLR0913  # the documented options
        self,
        *,
        platform: Platform,
        device_push_token: DevicePushToken | Mapping[str, Any],
        application_id: str | None,
        device_id: str | None,
        project_id: str | None = None,
        config_extra: Mapping[str, Any] | None = None,
        development: bool | None = None,
        apns_environment: ApnsEnvironment | None = None,
        type: str | None = None,  # noqa: A002  # the documented name
        base_url: str | None = None,
        url: str | None = None,
        vendor: VendorProfile | str = VENDOR,
    ) -> None:
        check_platform(platform)
        texts = {
            "application_id": application_id,
            "device_id": device_id,
            "project_id": project_id,
            "type": type,
        }
        for name, text in {**texts, "base_url": base_url, "url": url}.items():
            checked_text(name, text)
        if not isinstance(cast("object", development), bool | None):
            raise ConfigError(f"development {development!r} must be True or False")
        self._token_type, self._device_token = _device_token(device_push_token)
        self._is_sandbox = platform == "ios" and apns_environment == "development"
        self._options = {"type": type, "url": url, "base_url": base_url}
        self._development = bool(development)
        self._application_id, self._device_id = application_id, device_id
        self._profile = profile_of(vendor)
        self._project_id = project_id or _project_id(config_extra, self._profile)

    def url(self) -> str:
        """Return the request URL. Raises ConfigError without a valid ``url`` or ``base_url``."""
        base = self._options["base_url"]
        found = self._options["url"] or (
            f"{base.removesuffix('/')}/{self._profile.push_path}" if base else None
        )
        if not found or not re.fullmatch(r"https?://[^\s/?#]\S*", found):
            raise ConfigError(
                f"url or base_url {shown(found or '')!r} of the push service must be a http or https URL"
            )
        return found

    def body(self) -> dict[str, Any]:
        """Return the request body. Raises NotificationError for a missing value."""
        if not self._device_id:
            raise _missing("ERR_NOTIF_DEVICE_ID", "device_id", "the installation's ID")
        if not self._project_id:
            where = f"or set {self._profile.project_id_path} in the app config"
            raise _missing("ERR_NOTIFICATIONS_NO_EXPERIENCE_ID", "project_id", where)
        if not self._application_id:
            raise _missing(
                "ERR_NOTIFICATIONS_NO_APPLICATION_ID",
                "application_id",
                "the bundle identifier or package",
            )
        return {
            "type": self._options["type"]
            or _SERVICES.get(self._token_type, self._token_type),
            "deviceId": self._device_id.lower(),
            "development": self._development or self._is_sandbox,
            "appId": self._application_id,
            "deviceToken": self._device_token,
            "projectId": self._project_id,
        }

    def send(self, client: "httpx.Client") -> PushToken:
        """Send the request and return the token.

        Raises NotificationError: ERR_NOTIFICATIONS_NETWORK_ERROR for no response, ERR_NOTIFICATIONS_SERVER_ERROR for a
        response without a token; before sending, the errors of `url` and `body`.
        """
        import httpx

        url, body = self.url(), json.dumps(self.body(), separators=(",", ":")).encode()
        headers = {"content-type": "application/json"}
        try:
            with client.stream(
                "POST", url, headers=headers, content=body, follow_redirects=False
            ) as response:
                content = _start_of(response)
        except (httpx.RequestError, httpx.InvalidURL) as error:
            problem = (
                f"no reply from {shown(url)}: {str(error) or error.__class__.__name__}"
            )
            raise NotificationError(
                problem, code="ERR_NOTIFICATIONS_NETWORK_ERROR"
            ) from None
        if not response.is_success:
            status = f"{response.status_code} {response.reason_phrase}".strip()
            raise NotificationError(
                f"{shown(url)} returned {status}: {_quoted(content)}", code=SERVER_ERROR
            )
        key = self._profile.push_reply_key
        return PushToken(_token_in(content, key, shown(url)), self._profile.token_type)


def _device_token(token: DevicePushToken | Mapping[str, Any]) -> tuple[str, str]:
    given = (
        {"type": token.type, "data": token.data}
        if isinstance(token, DevicePushToken)
        else token
    )
    found = given if isinstance(cast("object", given), Mapping) else {}
    kind, data = found.get("type"), found.get("data")
    SECRETS.learn(data)
    if not isinstance(kind, str) or not data:
        raise ConfigError(
            "device_push_token must have type and data, for example type 'android' and the token"
        )
    return kind, data if isinstance(data, str) else json.dumps(
        data, separators=(",", ":"), ensure_ascii=False
    )


def _project_id(extra: Mapping[str, Any] | None, profile: VendorProfile) -> str | None:
    found: object = {"extra": extra}
    for key in profile.project_id_path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = cast("Mapping[str, object]", found).get(key)
    return found if isinstance(found, str) else None


def _missing(code: str, name: str, fix: str) -> NotificationError:
    return NotificationError(f"{name} is missing: pass it, {fix}", code=code)


def _start_of(response: "httpx.Response") -> bytes:
    content = bytearray()
    with suppress(BodyLimitError):  # the start is enough for an error message
        read_body(response.iter_bytes(), MAX_REPLY_BYTES, into=content)
    return bytes(content)


def _token_in(content: bytes, key: str, url: str) -> str:
    try:
        reply: Any = json.loads(content)
        token: object = reply["data"][key]
    except (ValueError, RecursionError, KeyError, TypeError, IndexError):
        token = None
    if not isinstance(token, str) or not token:
        raise NotificationError(
            f"{url} returned no data.{key}: {_quoted(content)}",
            code=SERVER_ERROR,
        )
    return token


def _quoted(content: bytes) -> str:
    text = content[:200].decode("utf-8", "replace")
    return repr(text) + ("…" if len(content) > len(text) else "")
