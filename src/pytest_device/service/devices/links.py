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
    parts, home = parts_of(link), urlsplit(base)
    if parts.scheme in WEB_SCHEMES and is_within(base, link):
        return link

    host = "" if parts.scheme in WEB_SCHEMES else parts.netloc
    path = _folder(home.path) + f"{host}{parts.path}".lstrip("/")
    return urlunsplit((home.scheme, home.netloc, path, parts.query, parts.fragment))


def is_within(base: str, address: str) -> bool:
    """Return whether a URL belongs to the app at ``base``."""
    here, there = urlsplit(base), urlsplit(address)
    folder = _folder(here.path)
    return (here.scheme, here.netloc) == (
        there.scheme,
        there.netloc,
    ) and f"{there.path}/".startswith(folder)


def app_for(link: str, schemes: Mapping[str, str | None], front: str | None) -> str:
    """Return the ID of the app for a deep link: the one with its scheme, or the only one, or the one in front.

    ``schemes`` are the apps' schemes by ID. Raises ControllerError if no app matches.
    """
    scheme = parts_of(link).scheme
    owners = [app for app, own in schemes.items() if own == scheme]

    undeclared = [app for app, own in schemes.items() if own is None]
    for candidates in (
        owners,
        undeclared if len(schemes) == 1 else [],
        [front] if front in undeclared else [],
    ):
        if candidates:
            return candidates[0]

    known = (
        ", ".join(f"{app} ({own or 'scheme unknown'})" for app, own in schemes.items())
        or "no app is installed"
    )
    raise ControllerError(f"no app here opens {Redactor().text(link)}: {known}")


def _folder(path: str) -> str:
    """Return the folder of an app from the path of its first page: ``/shop/index.html`` is in ``/shop/``."""
    above, _, name = path.rpartition("/")
    return f"{above}/" if "." in name or not name else f"{path}/"
