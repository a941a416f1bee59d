"""Device push tokens, and the request that exchanges one for a token of the push service."""

import json
import re
from collections.abc import Mapping
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
"""Maximum size of a response in bytes."""
_MAX_QUOTED_BYTES: Final = 200
SERVER_ERROR: Final = "ERR_NOTIFICATIONS_SERVER_ERROR"
_SERVICES: Final = {"ios": "apns", "android": "fcm"}
"""Type of token in the request body, by platform."""

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

    Args:
        platform: The platform of the device.
        device_push_token: The native token, or a mapping with its ``type`` and ``data``.
        application_id: The bundle ID or package of the app.
        device_id: The ID of the installation.
        project_id: The ID of the project (default: the one in ``config_extra``).
        config_extra: ``extra`` of the app config.
        development: Whether to use the sandbox service on iOS.
        apns_environment: The environment of the build; ``development`` selects the sandbox service, too.
        type: Overrides the type of token in the request body.
        base_url: URL of the push service; there is no default service.
        url: Overrides the whole URL of the request.
        vendor: The vendor's profile, or only its word.

    Raises:
        ConfigError: The device token is invalid, or an option is of another type.
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
            "base_url": base_url,
            "url": url,
        }
        for name, text in texts.items():
            checked_text(name, text)
        if not isinstance(cast("object", development), bool | None):
            raise ConfigError(f"development {development!r} must be True or False")

        self._native_type, self._device_token = _type_and_data(device_push_token)
        self._type = type
        self._is_sandbox = platform == "ios" and apns_environment == "development"
        self._development = bool(development)
        self._url = url
        self._base_url = base_url
        self._application_id = application_id
        self._device_id = device_id
        self._profile = profile_of(vendor)
        self._project_id = project_id or _project_id(config_extra, self._profile)

    def url(self) -> str:
        """Return the request URL. Raises ConfigError without a valid ``url`` or ``base_url``."""
        url = self._url
        if not url and self._base_url:
            url = f"{self._base_url.removesuffix('/')}/{self._profile.push_path}"
        if not url or not re.fullmatch(r"https?://[^\s/?#]\S*", url):
            raise ConfigError(
                f"url or base_url {shown(url or '')!r} of the push service must be a http or https URL"
            )

        return url

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

        service = _SERVICES.get(self._native_type, self._native_type)

        return {
            "type": self._type or service,
            "deviceId": self._device_id.lower(),
            "development": self._development or self._is_sandbox,
            "appId": self._application_id,
            "deviceToken": self._device_token,
            "projectId": self._project_id,
        }

    def send(self, client: "httpx.Client") -> PushToken:
        """Send the request and return the token.

        Raises:
            NotificationError: Before sending, the errors of `body`; ERR_NOTIFICATIONS_NETWORK_ERROR for no response;
                ERR_NOTIFICATIONS_SERVER_ERROR for a response without a token, or with more than 64 kB.
            ConfigError: The error of `url`.
        """
        import httpx

        url = self.url()
        body = json.dumps(self.body(), separators=(",", ":")).encode()
        headers = {"content-type": "application/json"}

        # A redirect would send the device token to another host.
        request = client.stream(
            "POST", url, headers=headers, content=body, follow_redirects=False
        )
        try:
            with request as response:
                content = read_body(response.iter_bytes(), MAX_REPLY_BYTES)
        except (httpx.RequestError, httpx.InvalidURL) as error:
            reason = str(error) or error.__class__.__name__
            raise NotificationError(
                f"no reply from {shown(url)}: {reason}",
                code="ERR_NOTIFICATIONS_NETWORK_ERROR",
            ) from None
        except BodyLimitError as error:
            raise NotificationError(
                f"{shown(url)}: {error}", code=SERVER_ERROR
            ) from None

        if not response.is_success:
            status = f"{response.status_code} {response.reason_phrase}".strip()
            raise NotificationError(
                f"{shown(url)} returned {status}: {_quoted(content)}", code=SERVER_ERROR
            )

        token = _token_in(content, self._profile.push_reply_key, shown(url))

        return PushToken(token, self._profile.token_type)


def _type_and_data(token: DevicePushToken | Mapping[str, Any]) -> tuple[str, str]:
    if isinstance(token, DevicePushToken):
        return token.type, token.data

    fields: Mapping[str, Any] = {}
    if isinstance(cast("object", token), Mapping):
        fields = token
    native_type = fields.get("type")
    data = fields.get("data")
    SECRETS.learn(data)
    if not (isinstance(native_type, str) and isinstance(data, str) and data):
        raise ConfigError(
            "device_push_token must have the texts type and data, for example type 'android' and the token"
        )

    return native_type, data


def _project_id(extra: Mapping[str, Any] | None, profile: VendorProfile) -> str | None:
    value: object = {"extra": extra}
    for key in profile.project_id_path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, object]", value).get(key)

    return value if isinstance(value, str) else None


def _missing(code: str, name: str, fix: str) -> NotificationError:
    return NotificationError(f"{name} is missing: pass it, {fix}", code=code)


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
    return repr(content[:_MAX_QUOTED_BYTES].decode("utf-8", "replace"))
