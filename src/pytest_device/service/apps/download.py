"""Downloads archives."""

import asyncio
import hashlib
import re
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

import httpx

from pytest_device.body_limit import BodyLimit, BodyLimitError
from pytest_device.errors import ControllerError
from pytest_device.redact import Redactor
from pytest_device.service.logs import Log

_REDIRECTS: Final = 5
_OK: Final = 200
_NAME_LENGTH: Final = 100
_MEGABYTE: Final = 1_000_000
_THIS_MACHINE: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")
_PAGES: Final = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a download: its size, its duration, and its longest pause without data."""

    max_bytes: int = 512 * 1024**2
    seconds: float = 300.0
    silence_seconds: float = 30.0


class PageError(ControllerError):
    """The URL leads to a web page, not to an archive."""


async def download(url: str, directory: Path, *, bounds: Bounds, note: Log) -> Path:
    """Download an archive to its own directory below ``directory``; ``note`` reports its size and SHA-256.

    Raises ControllerError with the reason and the URL without secrets; PageError for a web page.
    """
    path = Path(tempfile.mkdtemp(prefix="download-", dir=directory), _file_name(url))
    started = time.monotonic()

    try:
        async with asyncio.timeout(bounds.seconds), _reply(url, bounds) as reply:
            _check(reply, bounds)
            size, digest = await _write(reply, path, bounds)
    except TimeoutError as error:
        raise ControllerError(
            f"{shown(url)} timed out after {bounds.seconds:g} s"
        ) from error
    except httpx.TimeoutException as error:
        raise ControllerError(
            f"{shown(url)} timed out: no data for {bounds.silence_seconds:g} s"
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = Redactor().text(str(error)) or type(error).__name__
        raise ControllerError(f"{shown(url)} cannot be downloaded: {reason}") from error
    except OSError as error:
        raise ControllerError(
            f"{shown(url)} cannot be saved: {error.strerror or error}"
        ) from error

    seconds = time.monotonic() - started
    note(
        f"downloaded {shown(url)} in {seconds:.1f} s: {size / _MEGABYTE:.1f} MB, sha256 {digest}"
    )
    return path


def shown(url: str) -> str:
    """Return a URL without credentials and without its query, which is often a signature."""
    plain = Redactor().text(url.partition("#")[0])
    start, query, _ = plain.partition("?")
    return f"{start}?…" if query else start


@asynccontextmanager
async def _reply(url: str, bounds: Bounds) -> AsyncGenerator[httpx.Response]:
    certificates = httpx.create_ssl_context()
    direct = httpx.AsyncHTTPTransport(verify=certificates)

    client = httpx.AsyncClient(
        verify=certificates,
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        timeout=bounds.silence_seconds,
        # Never use a proxy for loopback addresses, whatever the environment says.
        mounts=dict.fromkeys(_THIS_MACHINE, direct),
        headers={"Accept-Encoding": "identity"},
    )
    async with client, client.stream("GET", url) as reply:
        yield reply


def _check(reply: httpx.Response, bounds: Bounds) -> None:
    url = shown(str(reply.url))  # after redirects
    if reply.status_code != _OK:
        raise ControllerError(
            f"{url} returned {reply.status_code} {reply.reason_phrase} (expected an archive)"
        )

    content_type = reply.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in _PAGES:
        raise PageError(
            f"{url} is a web page ({media_type}), not an archive: probably a login or download page"
        )

    # Before anything is downloaded; a server may also announce nothing, or less than it sends.
    if _announced_bytes(reply) > bounds.max_bytes:
        raise _too_large(url, bounds)


def _announced_bytes(reply: httpx.Response) -> int:
    length: str = reply.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


def _too_large(url: str, bounds: Bounds) -> ControllerError:
    return ControllerError(
        f"{url} is larger than the limit of {bounds.max_bytes / _MEGABYTE:.0f} MB"
    )


async def _write(reply: httpx.Response, path: Path, bounds: Bounds) -> tuple[int, str]:
    limit = BodyLimit(bounds.max_bytes)
    digest = hashlib.sha256()

    with path.open("xb") as file:
        async for chunk in reply.aiter_bytes():
            try:
                limit.count(chunk)
            except BodyLimitError:
                raise _too_large(shown(str(reply.url)), bounds) from None

            digest.update(chunk)
            file.write(chunk)

    return limit.size, digest.hexdigest()


def _file_name(url: str) -> str:
    """Return the last part of a URL's path as a valid file name, which may become the name of the app."""
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    return re.sub(r"[^\w.-]+", "-", name)[-_NAME_LENGTH:].strip("-.") or "archive"
