"""Defaults that the app's project provides for settings, session requests and capabilities."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import pytest

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.spec import Platform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_device.app.link import Links
    from pytest_device.app.project import Dynamic, Project
    from pytest_device.app.vendor import VendorProfile
    from pytest_device.settings import Settings

_PROJECT: Final = pytest.StashKey["Project"]()
_HAS_PROJECTS_APP_ID: Final = pytest.StashKey[bool]()
"""Whether the run's app ID belongs to the project."""
_APP_CAPABILITIES: Final = {
    Platform.IOS: "appium:bundleId",
    Platform.ANDROID: "appium:appPackage",
}
"""The capability that selects an installed app."""
_SELECTING: Final = ("bundleId", "appPackage", "browserName")
"""Capabilities by which a suite selects an app or a browser itself."""


def with_project(
    config: pytest.Config, settings: "Settings", app_root: str
) -> "Settings":
    """Load the project at ``app_root``, and use its project ID as the default app ID. Raises ConfigError."""
    __tracebackhide__ = True
    from pytest_device.app.project import load_project
    from pytest_device.settings import LOCAL_APP_ID

    dynamic = cast("Dynamic", settings.app_dynamic)
    try:
        project = load_project(
            app_root, vendor=vendor_profile(settings), dynamic=dynamic
        )
    except ConfigError as error:
        raise ConfigError(
            *(f"{settings.source('app_root')}: {problem}" for problem in error.problems)
        ) from None

    config.stash[_PROJECT] = project
    identifier = project.project_id()
    # The local service of a run takes any project. One that was started by hand knows the project that it printed.
    is_of_local = settings.source("app_id") == settings.source("local")
    is_set = settings.app_id is not None and not is_of_local
    config.stash[_HAS_PROJECTS_APP_ID] = (
        identifier is None
        or not is_set
        or settings.app_id in (LOCAL_APP_ID, identifier.lower())
    )

    if identifier is None or is_set:
        return settings

    try:
        return settings.replace("app_root", app_id=Options.app_id.parse(identifier))
    except ValueError as error:
        raise ConfigError(
            f"{project.root}: the project identifier {identifier!r} must be {error}"
        ) from None


def vendor_profile(settings: "Settings") -> "VendorProfile":
    """Return the vendor's profile in the settings."""
    from pytest_device.app.vendor import VendorProfile

    names = dict(entry.split("=", 1) for entry in settings.vendor_names)

    return VendorProfile(settings.vendor, **names)


def project_of(config: pytest.Config) -> "Project | None":
    """Return the project, or None if ``device_app_root`` is not set."""
    return config.stash.get(_PROJECT, None)


def notes_of(config: pytest.Config) -> "tuple[str, ...]":
    """Return the notes and warnings from loading the project, such as whether its code was run."""
    project = project_of(config)
    if project is None:
        return ()

    notes = (*project.notes, *project.warnings, *project.env.warnings)
    other = next(project.other_project_ids(), None)
    if project.project_id() is None and other:
        path = project.vendor.project_id_path
        setting = f"{Options.vendor_names.ini} = project_id_path={other}"
        hint = f"no project ID at {path}, but at {other}: set {setting}"
        return (*notes, hint)

    return notes


def additions_of(config: pytest.Config) -> "Iterator[tuple[str, str, str]]":
    """Yield the defaults from the project other than its ID, as name, value and source."""
    project = project_of(config)
    if project is None:
        return

    if project.sdk_major:
        yield (
            "sdk_version with vendor_go=True",
            str(project.sdk_major),
            project.source("sdkVersion"),
        )

    for platform, key in (
        (Platform.IOS, "ios.bundleIdentifier"),
        (Platform.ANDROID, "android.package"),
    ):
        if identifier := project.identifier(platform):
            yield _APP_CAPABILITIES[platform], identifier, project.source(key)

    if schemes := project.schemes():
        yield "schemes of links", ", ".join(schemes), project.source("scheme")


def needed_project(config: pytest.Config, user: str) -> "Project":
    """Return the project. Raises ConfigError with its user and the fix if there is none."""
    __tracebackhide__ = True

    if project := project_of(config):
        return project

    raise ConfigError(
        f"{user} needs the app's project: set {Options.app_root.spellings}"
    )


def complete_arguments(
    item: pytest.Item, arguments: Mapping[str, Any]
) -> "dict[str, Any]":
    """Fill in marker arguments from the project: the link for ``open_route``, the SDK version for ``vendor_go``.

    Raises ConfigError if the link doesn't open a route; an ``open_url`` that opens no page is a warning, because an
    app may also handle links without its router.
    """
    config = item.config
    complete = dict(arguments)
    project = project_of(config)
    route = complete.pop("open_route", None)
    params = complete.pop("route_params", None)
    if route is not None:
        complete["open_url"] = _link(config, complete, route, params)
    elif params is not None:
        raise ConfigError("route_params needs open_route: the route that has them")
    elif project and isinstance(complete.get("open_url"), str):
        _check_url(project, complete, item)

    if project and project.sdk_major and complete.get("vendor_go") is True:
        complete.setdefault("sdk_version", str(project.sdk_major))

    return complete


def _link(
    config: pytest.Config, arguments: Mapping[str, Any], route: object, params: object
) -> str:
    """Return the deep link of a route on the platform of the arguments. Raises ConfigError."""
    if "open_url" in arguments:
        raise ConfigError("open_route and open_url are mutually exclusive: choose one")

    if not isinstance(route, str) or not isinstance(params, Mapping | None):
        raise ConfigError(
            "open_route must be the name of a route, and route_params a mapping of its parameters"
        )

    project = needed_project(config, "open_route")
    links = _links(
        project,
        arguments.get("platform"),
        has_client=arguments.get("vendor_go") is True,
    )
    return links(route, cast("Mapping[str, Any] | None", params))


def _links(
    project: "Project", platform: str | None, *, has_client: bool, address: str = ""
) -> "Links":
    """Return the link factory for a platform; ``has_client``: whether the development client opens the app."""
    from pytest_device.app.link import Links

    return Links(
        project,
        platform and str(platform),
        development_client=has_client,
        development_address=address,
    )


def _check_url(
    project: "Project", arguments: Mapping[str, Any], item: pytest.Item
) -> None:
    """Raise ConfigError if the app doesn't open ``open_url``, and warn if it has no page for it."""
    from pytest_device.app.link import check_url, unmatched

    platform = arguments.get("platform")
    check_url(
        arguments["open_url"],
        project,
        platform=platform and str(platform),
        development_client=arguments.get("vendor_go") is True,
    )

    if problem := unmatched(arguments["open_url"], project):
        try:
            item.warn(pytest.PytestWarning(problem))
        except pytest.PytestWarning:  # with -W error
            raise ConfigError(problem) from None


def links_of(project: "Project", arguments: Mapping[str, Mapping[str, Any]]) -> "Links":
    """Return the link factory for a test, with its platform if all its devices share one.

    With the development client, the links use the address from the marker's ``open_url``.
    """
    platforms = {
        str(values["platform"]) for values in arguments.values() if "platform" in values
    }
    has_client = any(values.get("vendor_go") is True for values in arguments.values())
    urls = [
        urlsplit(str(values["open_url"]))
        for values in arguments.values()
        if "open_url" in values
    ]
    addresses = [
        url.netloc for url in urls if url.scheme == project.vendor.client_scheme
    ]

    return _links(
        project,
        platforms.pop() if len(platforms) == 1 else None,
        has_client=has_client,
        address=addresses[0] if addresses else "",
    )


def installed_app(
    config: pytest.Config, capabilities: Mapping[str, Any], platform: str
) -> dict[str, str]:
    """Return the capability for the project's app, unless the given capabilities select an app or a browser.

    An empty value selects none, except for ``appium:app``: None starts without an app.
    """
    project = project_of(config)
    unprefixed = {
        name.rpartition(":")[2]: value for name, value in capabilities.items()
    }
    if project is None or "app" in unprefixed or any(map(unprefixed.get, _SELECTING)):
        return {}

    # The identifier of another app's build is unknown.
    if not config.stash[_HAS_PROJECTS_APP_ID]:
        return {}

    identifier = project.identifier(platform)
    if not identifier:
        return {}

    return {_APP_CAPABILITIES[Platform(platform)]: identifier}
