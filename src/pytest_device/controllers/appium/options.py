"""Merges the capabilities for Appium: the service's, the marker's app, the suite's options."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

from pytest_device.errors import ConfigError
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import AppiumConfig
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import Platform

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions

    Options = AppiumOptions | Mapping[str, Any]

APP: Final = "appium:app"
BROWSER: Final = "browserName"

_PLATFORM: Final = "platformName"
_UDID: Final = "appium:udid"
_INSTALLED: Final = ("appium:appPackage", "appium:bundleId")
"""Capabilities that name an app that is already on the device."""

_FAKE: Final = "fake"
"""Identifier of Appium's fake device, whose apps are XML files whatever their extension."""
_URL: Final = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+:", re.IGNORECASE)
"""Start of a URL; the drive of a Windows path has one letter."""
_ZIPS: Final = frozenset({".aab", ".apk", ".apks", ".ipa", ".zip"})
_ZIP_START: Final = b"PK"

_logger = logging.getLogger("pytest_device")


def check_options(options: object, request: SessionRequest) -> None:
    """Check a suite's options as far as possible before there is a session.

    Raises ConfigError if they are not options, if they are for another platform than the request, or if neither they
    nor the request name an app that Appium can start.
    """
    if not (isinstance(options, Mapping) or hasattr(options, "to_capabilities")):
        what = "None" if options is None else f"a {type(options).__name__}"
        raise ConfigError(
            f"device_appium_options returned {what}; it must return capabilities, as a mapping or an AppiumOptions "
            "object: check its return statement"
        )

    suite = _suite_capabilities(cast("Options", options))
    _check_platform(suite, request)
    if APP in suite or any(suite.get(name) for name in (*_INSTALLED, BROWSER)):
        return
    if request.build_id is not None:
        raise ConfigError(_not_installable(f"build_id={str(request.build_id)!r}"))

    if not (request.application_archive_url or request.vendor_go):
        raise ConfigError(
            "no app for Appium: set one in device_appium_options (appium:app; appium:appPackage or appium:bundleId if "
            "it is on the device; browserName for a website; 'appium:app': None to start without), or its URL as "
            "application_archive_url"
        )


def _check_platform(suite: Mapping[str, Any], request: SessionRequest) -> None:
    """Raise ConfigError for the other one of the document's platforms; the service may have words of its own."""
    others = {str(platform) for platform in Platform} - {str(request.platform)}
    if str(suite.get(_PLATFORM)).casefold() in others:
        raise ConfigError(_other_platform(suite[_PLATFORM], request.platform))


def check_local_app(options: "Options", request: SessionRequest) -> None:
    """Check the app of a suite's options for an Appium server on this machine. Raises ConfigError if it is no app.

    ``request`` is that of the device.
    """
    app = _suite_capabilities(options).get(APP)
    if not isinstance(app, str) or not app or _URL.match(app):
        return

    is_file_url = app.startswith("file://")
    path = Path(unquote(app.removeprefix("file://")) if is_file_url else app)
    if not path.exists():
        raise ConfigError(
            f"{APP}={app!r} of device_appium_options does not exist: {path.absolute()}. Set the path of a file or "
            "directory on this machine, or a URL"
        )

    if request.device_identifier != _FAKE and _is_damaged(path):
        raise ConfigError(
            f"{APP}={app!r} of device_appium_options is not an app: a file with the extension {path.suffix} must be a "
            "zip archive. Build it again, or set the path of another file"
        )


def _is_damaged(path: Path) -> bool:
    """Return whether a file lacks the first bytes of a zip archive though its extension promises one."""
    if path.suffix.lower() not in _ZIPS or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ZIP_START)) != _ZIP_START


def merged_options(
    session: Session,
    config: AppiumConfig,
    options: "Options",
    request: SessionRequest | None = None,
) -> "AppiumOptions":
    """Return the options of a new Appium session: the suite's override the marker's app and the service's capabilities.

    The service chooses the device: its platform and ``udid`` are kept. Raises ConfigError if the suite sets another
    platform than the session's, or if Appium cannot install the marker's app.
    """
    from appium.options.common import AppiumOptions

    suite = _suite_capabilities(options)
    service = _prefixed(config.capabilities)
    # Appium would end a driver after a one-minute pause in a test; the session's idle timeout is the limit instead.
    defaults: dict[str, Any] = {
        "appium:newCommandTimeout": (session.max_idle_time_minutes or 0) * 60
    }
    # A service that returns no capabilities still knows its device's platform, which every driver needs.
    if session.platform and not service:
        defaults[_PLATFORM] = str(session.platform)

    # Later ones override earlier ones.
    merged = AppiumOptions()
    merged.load_capabilities(defaults)
    merged.load_capabilities(_prefixed(_class_defaults(options)))
    merged.load_capabilities(service)
    merged.load_capabilities(_app(session, request, suite))
    merged.load_capabilities(suite)
    merged.load_capabilities(_device(session, service, suite))
    return merged


def _device(
    session: Session, service: Mapping[str, Any], suite: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the capabilities that identify the device, which the suite cannot choose."""
    platform = suite.get(_PLATFORM)
    requested = str(session.platform)
    accepted = (requested.casefold(), str(service.get(_PLATFORM, "")).casefold())
    if platform is not None and str(platform).casefold() not in accepted:
        raise ConfigError(_other_platform(platform, requested))

    if _UDID in service and suite.get(_UDID) not in (None, service[_UDID]):
        _logger.warning(
            "appium:udid of device_appium_options is ignored: the session has another device "
            "(use device_identifier to request a specific one)"
        )

    return {name: service[name] for name in (_PLATFORM, _UDID) if name in service}


def _app(
    session: Session, request: SessionRequest | None, suite: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the marker's capabilities for the app, unless the suite sets them ("POST create", rule 2)."""
    capabilities: dict[str, Any] = {}

    if APP not in suite and not suite.get(BROWSER):
        if session.application_archive_url is not None:
            capabilities[APP] = session.application_archive_url
        elif not any(suite.get(name) for name in _INSTALLED):
            source = _source_without_url(session, request)
            if source:
                raise ConfigError(_not_installable(source))

    if request is not None and request.launch_args:
        arguments = list(request.launch_args)
        if session.platform == Platform.ANDROID:
            # Apps receive them in the intent that starts them.
            capabilities["appium:optionalIntentArguments"] = " ".join(arguments)
        else:
            capabilities["appium:processArguments"] = {"args": arguments}

    return capabilities


def _other_platform(platform: object, requested: str) -> str:
    return (
        f"device_appium_options sets platformName={platform!r}, the marker platform={str(requested)!r}: remove "
        "platformName, or use device_platform in the fixture"
    )


def _not_installable(source: str) -> str:
    return (
        f"{source} cannot be installed by Appium: the service returns no URL for it. Set the app in "
        "device_appium_options (appium:app; appium:appPackage or appium:bundleId if it is on the device), or its URL "
        "as application_archive_url"
    )


def _source_without_url(session: Session, request: SessionRequest | None) -> str:
    """Return the application source of a session that has no URL, empty if it has none."""
    if session.build_id is not None:
        return f"build_id={str(session.build_id)!r}"
    if request is not None and request.vendor_go:
        return "vendor_go=True"
    return ""


def sent_by(options: "AppiumOptions") -> dict[str, Any]:
    """Return the capabilities of the options."""
    return cast("dict[str, Any]", options.to_capabilities())  # pyright: ignore[reportUnknownMemberType]  # the client's own annotation is bare


def capabilities_of(options: "Options") -> dict[str, Any]:
    """Return the capabilities of the suite's options, in either form."""
    return dict(options) if isinstance(options, Mapping) else sent_by(options)


def _suite_capabilities(options: "Options") -> dict[str, Any]:
    """Return the capabilities that the suite chose, by their names on the wire.

    An option class's default platform and automation are not the suite's choice: the service knows its device.
    """
    class_defaults = _prefixed(_class_defaults(options))
    return {
        name: value
        for name, value in _prefixed(capabilities_of(options)).items()
        if name not in class_defaults or class_defaults[name] != value
    }


def _class_defaults(options: "Options") -> dict[str, Any]:
    if isinstance(options, Mapping):
        return {}
    return cast("dict[str, Any]", options.default_capabilities)  # pyright: ignore[reportUnknownMemberType]


def _prefixed(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return capabilities by their names on the wire."""
    from appium.options.common import AppiumOptions

    wire = cast("dict[str, Any]", AppiumOptions.as_w3c(dict(capabilities)))  # pyright: ignore[reportUnknownMemberType]
    return cast("dict[str, Any]", wire["capabilities"]["alwaysMatch"])
