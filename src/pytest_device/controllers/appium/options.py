"""Merges the capabilities for Appium: the service's, the marker's app, the suite's options."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

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

_logger = logging.getLogger("pytest_device")


def check_options(options: object, request: SessionRequest) -> None:
    """Check a suite's options as far as possible before there is a session.

    Raises ConfigError if they are not options, or if neither they nor the request name an app that Appium can start.
    """
    if not (isinstance(options, Mapping) or hasattr(options, "to_capabilities")):
        what = "None" if options is None else f"a {type(options).__name__}"
        raise ConfigError(
            f"device_appium_options returned {what}; it must return capabilities, as a mapping or an AppiumOptions "
            "object: check its return statement"
        )
    wishes = _prefixed(capabilities_of(cast("Options", options)))
    if APP in wishes or any(wishes.get(name) for name in (*_INSTALLED, BROWSER)):
        return
    if request.build_id is not None:
        raise ConfigError(_not_installable(f"build_id={str(request.build_id)!r}"))
    if not (request.application_archive_url or request.vendor_go):
        raise ConfigError(
            "no app for Appium: set one in device_appium_options (appium:app; appium:appPackage or appium:bundleId if "
            "it is on the device; browserName for a website; 'appium:app': None to start without), or its URL as "
            "application_archive_url"
        )


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

    suite, class_s_own = (
        _prefixed(capabilities_of(options)),
        _prefixed(_defaults(options)),
    )
    # An option class's default platform and automation are not the suite's choice: the service knows its device.
    wishes = {
        name: value
        for name, value in suite.items()
        if name not in class_s_own or class_s_own[name] != value
    }
    service = _prefixed(config.capabilities)
    # Appium would end a driver after a one-minute pause in a test; the session's idle timeout is the limit instead.
    patience = {"appium:newCommandTimeout": (session.max_idle_time_minutes or 0) * 60}
    below = {**patience, **class_s_own, **service, **_app(session, request, wishes)}
    above = _device(session, service, wishes)
    return (
        AppiumOptions()
        .load_capabilities(below)
        .load_capabilities(wishes)
        .load_capabilities(above)
    )


def _device(
    session: Session, service: Mapping[str, Any], wishes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the capabilities that identify the device, which the suite cannot choose."""
    platform, known = (
        wishes.get(_PLATFORM),
        (str(session.platform), str(service.get(_PLATFORM, ""))),
    )
    if platform is not None and str(platform).casefold() not in {
        word.casefold() for word in known
    }:
        raise ConfigError(
            f"device_appium_options sets platformName={platform!r}, the marker platform={known[0]!r}: remove "
            "platformName, or use device_platform in the fixture"
        )
    if _UDID in service and wishes.get(_UDID) not in {None, service[_UDID]}:
        _logger.warning(
            "appium:udid of device_appium_options is ignored: the session has another device "
            "(use device_identifier to request a specific one)"
        )
    return {name: service[name] for name in (_PLATFORM, _UDID) if name in service}


def _app(
    session: Session, request: SessionRequest | None, wishes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the marker's capabilities for the app, unless the suite sets them ("POST create", rule 2)."""
    app: dict[str, Any] = {}
    if APP not in wishes and not wishes.get(BROWSER):
        if session.application_archive_url is not None:
            app[APP] = session.application_archive_url
        elif (source := _unknown_source(session, request)) and not any(
            wishes.get(name) for name in _INSTALLED
        ):
            raise ConfigError(_not_installable(source))
    if request is not None and request.launch_args:
        arguments = list(request.launch_args)
        if (
            session.platform == Platform.ANDROID
        ):  # apps receive them in the intent that starts them
            launch: dict[str, Any] = {
                "appium:optionalIntentArguments": " ".join(arguments)
            }
        else:
            launch = {"appium:processArguments": {"args": arguments}}
        app |= {} if launch.keys() <= wishes.keys() else launch
    return app


def _not_installable(source: str) -> str:
    return (
        f"{source} cannot be installed by Appium: the service returns no URL for it. Set the app in "
        "device_appium_options (appium:app; appium:appPackage or appium:bundleId if it is on the device), or its URL "
        "as application_archive_url"
    )


def _unknown_source(session: Session, request: SessionRequest | None) -> str:
    if session.build_id is not None:
        return f"build_id={str(session.build_id)!r}"
    return "vendor_go=True" if request is not None and request.vendor_go else ""


def sent_by(options: "AppiumOptions") -> dict[str, Any]:
    """Return the capabilities of the options."""
    return cast("dict[str, Any]", options.to_capabilities())  # pyright: ignore[reportUnknownMemberType]  # the client's own annotation is bare


def capabilities_of(options: "Options") -> dict[str, Any]:
    """Return the capabilities of the suite's options, in either form."""
    return dict(options) if isinstance(options, Mapping) else sent_by(options)


def _defaults(options: "Options") -> dict[str, Any]:
    if isinstance(options, Mapping):
        return {}
    return cast("dict[str, Any]", options.default_capabilities)  # pyright: ignore[reportUnknownMemberType]


def _prefixed(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return capabilities by their names on the wire."""
    from appium.options.common import AppiumOptions

    wire = cast("dict[str, Any]", AppiumOptions.as_w3c(dict(capabilities)))  # pyright: ignore[reportUnknownMemberType]
    return cast("dict[str, Any]", wire["capabilities"]["alwaysMatch"])
