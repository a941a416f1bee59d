"""Deep links that open a route of the app on a device."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from pytest_device.app.document import text_at
from pytest_device.app.project import Project, load_project
from pytest_device.app.routes.match import split
from pytest_device.app.routes.names import NATIVE_INTENT
from pytest_device.app.runtime import is_valid_scheme
from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError
from pytest_device.redact import shown
from pytest_device.spec import VENDOR

FOREIGN = frozenset(("http", "https", "tel", "mailto", "sms"))
"""Schemes handled by the system or other apps."""
_OTHER_SCHEME: Final = re.compile(r"([^:/?#]+)://")
_NOT_IN_SCHEMES: Final = re.compile(r"[^a-z0-9+.-]")


@dataclass(frozen=True, slots=True)
class Links:
    """Factory for a project's links; ``development_address`` is the bundler's address, for the development client."""

    project: Project
    platform: str | None = None
    development_client: bool = False
    development_address: str = ""

    @classmethod
    def of_root(cls, root: Path, *, vendor: VendorProfile | str = VENDOR) -> "Links":
        """Return the links of the project in a directory; the project is loaded once per process."""
        return cls(_project(root.resolve(), profile_of(vendor)))

    def __call__(
        self,
        route: str,
        /,
        params: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        scheme: str | None = None,
        platform: str | None = None,
        **named: object,
    ) -> str:
        """Return the link to a route, by default with the project's first scheme. Raises ConfigError with the fix."""
        # The error belongs to the line of the test.
        __tracebackhide__ = True
        positional = params or {}
        twice = sorted(named.keys() & positional.keys())
        if twice:
            raise ConfigError(f"route {route!r} gets the parameter {twice[0]!r} twice")

        path = self.project.routes.href(route, {**positional, **named}, query=query)
        if self.development_client:
            return self._of_development_client(path, scheme)

        # A page's path becomes the host of the link, except at the root, which has none.
        if path[1:2] not in ("", "?", "#"):
            path = path.removeprefix("/")

        return f"{self._scheme(scheme, platform or self.platform)}://{path}"

    def _scheme(self, scheme: str | None, platform: str | None) -> str:
        """Return a scheme that opens the app, by default the first declared one. Raises ConfigError."""
        if scheme is not None:
            check_scheme(scheme, self.project, platform)
            return scheme

        declared = self.project.schemes(platform)
        if not declared:
            raise ConfigError(
                f"{self.project.root} declares no scheme: set scheme in the app config and build again"
            )

        return declared[0]

    def _of_development_client(self, path: str, scheme: str | None) -> str:
        client_scheme = self.project.vendor.client_scheme
        if scheme not in (None, client_scheme) or not self.development_address:
            raise _without_effect("a scheme", client_scheme, path)

        return f"{client_scheme}://{self.development_address}/--{path}"


@cache
def _project(root: Path, vendor: VendorProfile) -> Project:
    return load_project(root, vendor=vendor)


def check_scheme(scheme: str, project: Project, platform: str | None) -> None:
    """Raise ConfigError unless a build of the project registers the scheme."""
    declared = project.schemes(platform)
    if scheme in declared or _is_of_development_build(scheme, project):
        return

    if not is_valid_scheme(scheme):
        raise ConfigError(
            f"scheme {scheme!r} must begin with a lowercase letter, then have letters, digits, +, ., -"
        )

    raise ConfigError(
        f"scheme {scheme!r} is not declared by the project (it has {', '.join(declared) or 'none'}): "
        "add it to scheme in the app config and build again"
    )


def _scheme_of(url: str) -> str:
    """Return the lowercase scheme of a URL, also one that no URL has, such as ``my_app``; or an empty string."""
    scheme = split(url).scheme
    if not scheme and (match := _OTHER_SCHEME.match(url)):
        scheme = match[1]

    return scheme.lower()


def _is_of_development_build(scheme: str, project: Project) -> bool:
    """Return whether a development build of the project registers a scheme: a prefix, ``+`` and the slug."""
    prefix, plus, name = scheme.partition("+")
    slug = text_at(project.config, "slug") or ""
    vendor = project.vendor
    if not plus or prefix not in (vendor.word, vendor.client_scheme):
        return False

    return name == _NOT_IN_SCHEMES.sub("", slug.lower())


def check_url(
    url: str,
    project: Project,
    *,
    platform: str | None = None,
    development_client: bool = False,
) -> None:
    """Raise ConfigError if the app can't open the URL, or it is none; only custom schemes are checked."""
    scheme = _scheme_of(url)
    if not scheme or scheme in FOREIGN:
        return

    if development_client:
        client_scheme = project.vendor.client_scheme
        if scheme == client_scheme:
            return
        raise _without_effect(
            f"the scheme {scheme!r} of open_url", client_scheme, "/path"
        )

    # Builds also register their identifier as a scheme.
    for name in (platform,) if platform else ("ios", "android"):
        if scheme == (project.identifier(name) or "").lower():
            return

    check_scheme(scheme, project, platform)


def unmatched(url: str, project: Project) -> str | None:
    """Return what is wrong if a link of the app opens no page of it, or None.

    None also if this can't be told: for web addresses and the development client's own address, without a routes
    directory, and if the app rewrites links.
    """
    scheme = _scheme_of(url)
    if not scheme or scheme in FOREIGN:
        return None
    is_of_app = scheme in project.schemes() or _is_of_development_build(scheme, project)
    directory = project.app_directory
    if directory is None or not (is_of_app or "/--/" in url):
        return None
    if any(directory.glob(f"{NATIVE_INTENT}.*")):
        return None

    match = project.routes.match(url)
    if match and match.kind != "not_found":
        return None

    closest = project.routes.closest(url)
    fix = f"did you mean the route {closest!r}?" if closest else "it has no routes"

    return f"open_url={shown(url)!r} opens no page of the app: {fix}"


def _without_effect(argument: str, client_scheme: str, path: str) -> ConfigError:
    return ConfigError(
        f"{argument} has no effect in the development client: its links are {client_scheme}://ADDRESS/--{path} with the address of "
        "the bundler, or install a build of the app"
    )
