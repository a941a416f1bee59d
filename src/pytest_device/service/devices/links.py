"""Resolves deep links to URLs of web apps."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from pytest_device.errors import ControllerError
from pytest_device.redact import Redactor

WEB_SCHEMES: Final = frozenset(("http", "https"))


def parts_of(link: str) -> SplitResult:
    """Return the parts of a link; raises ControllerError for an invalid one."""
    try:
        return urlsplit(link)
    except ValueError as error:
        raise ControllerError(
            f"{Redactor().text(link)} is not a valid URL: {error}"
        ) from error


def address_in(base: str, link: str) -> str:
    """Return the URL of a link in the app at ``base``: ``notes://item/3?x=1`` is ``<base>/item/3?x=1``.

    The host of a web link is dropped: the app shows the remaining path.
    """
    parts = parts_of(link)
    is_web_link = parts.scheme in WEB_SCHEMES
    if is_web_link and is_within(base, link):
        return link

    app = urlsplit(base)
    # In a deep link, what a parser reads as the host is the beginning of the route.
    route = parts.path if is_web_link else f"{parts.netloc}{parts.path}"
    path = _folder(app.path) + route.lstrip("/")
    return urlunsplit((app.scheme, app.netloc, path, parts.query, parts.fragment))


def is_within(base: str, address: str) -> bool:
    """Return whether a URL belongs to the app at ``base``."""
    app, page = urlsplit(base), urlsplit(address)
    if (app.scheme, app.netloc) != (page.scheme, page.netloc):
        return False
    return f"{page.path}/".startswith(_folder(app.path))


def app_for(link: str, schemes: Mapping[str, str | None], front: str | None) -> str:
    """Return the ID of the app for a deep link: the one with its scheme, or the only one, or the one in front.

    ``schemes`` are the apps' schemes by ID. Raises ControllerError if no app matches.
    """
    scheme = parts_of(link).scheme
    for app, own_scheme in schemes.items():
        if own_scheme == scheme:
            return app

    undeclared = [app for app, own_scheme in schemes.items() if own_scheme is None]
    if undeclared and len(schemes) == 1:
        return undeclared[0]
    if front is not None and front in undeclared:
        return front

    installed = ", ".join(
        f"{app} ({own_scheme or 'scheme unknown'})"
        for app, own_scheme in schemes.items()
    )
    raise ControllerError(
        f"no app here opens {Redactor().text(link)}: {installed or 'no app is installed'}"
    )


def _folder(path: str) -> str:
    """Return the folder of an app from the path of its first page: ``/shop/index.html`` is in ``/shop/``."""
    parent, _, name = path.rpartition("/")
    is_file = "." in name or not name
    return f"{parent}/" if is_file else f"{path}/"
