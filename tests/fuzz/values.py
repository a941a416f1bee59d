"""The generated values: any JSON, and nearly valid create requests."""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis.strategies import (
    DrawFn,
    SearchStrategy,
    booleans,
    characters,
    composite,
    dictionaries,
    floats,
    from_regex,
    integers,
    just,
    lists,
    none,
    one_of,
    recursive,
    sampled_from,
    text,
    uuids,
)

from pytest_device.spec import REQUESTABLE_SESSION_TYPES, Platform, SessionType

any_text: Final = text(characters(codec=None))
"""Includes lone surrogates, which JSON can carry."""
long_text: Final = sampled_from(
    ("x" * 5000, "https://pages.example/" + "x" * 5000, "\x1b[2J", "two\nlines")
)
scalars: Final = none() | booleans() | integers() | floats() | any_text | long_text
any_json: Final[SearchStrategy[Any]] = recursive(
    scalars,
    lambda inner: lists(inner, max_size=4) | dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)

_HOSTS: Final = (
    "files.example",
    "[::1]",
    "127.0.0.1",
    "ü.example",
    "",
    "user:word@files.example",
    "a b",
    "[::1",
)
_PORTS: Final = ("", ":0", ":1", ":65535", ":65536", ":port", ":")
_urls: Final = one_of(
    from_regex(r"[a-zA-Z][a-zA-Z0-9+.-]{0,5}:\S{1,9}", fullmatch=True),
    from_regex(r"[hH]ttps?:.{0,9}", fullmatch=True),
    *(
        just(f"{scheme}://{host}{port}/app.apk")
        for scheme in ("https", "HTTP", "ftp")
        for host in _HOSTS
        for port in _PORTS
    ),
)
_uuids: Final = one_of(
    uuids().map(str),
    uuids().map(lambda one: one.hex),
    uuids().map(lambda one: str(one).upper()),
)
_minutes: Final = sampled_from((-1, 0, 1, 2, 30, 113, 114, 115, 116)) | integers()

NEAR: Final[Mapping[str, SearchStrategy[Any]]] = {
    "appId": _uuids,
    "platform": sampled_from([*Platform, "Android"]).map(str),
    "name": any_text
    | just("n" * 255)
    | just("n" * 256)
    | text(" \t\u00a0\u0085\u3000\ufeff"),
    "type": sampled_from([*SessionType, "Appium"]).map(str),
    "packageVersion": any_text,
    "deviceIdentifier": any_text,
    "maxDurationMinutes": _minutes,
    "maxIdleTimeMinutes": _minutes,
    "buildId": _uuids,
    "applicationArchiveUrl": _urls,
    "vendorGo": booleans(),
    "sdkVersion": just("5" * 12) | from_regex(r"\d{1,3}", fullmatch=True) | any_text,
    "launchArgs": lists(any_text, max_size=3),
    "openUrl": _urls,
}
"""For each option of a create request, valid and nearly valid values."""

_GOOD: Final[Mapping[str, SearchStrategy[Any]]] = {
    **NEAR,
    "name": just("a name"),
    "type": sampled_from(REQUESTABLE_SESSION_TYPES).map(str),
    "packageVersion": just("0.21.5"),
    "deviceIdentifier": just("pixel_8"),
    "maxDurationMinutes": sampled_from((2, 30, 115)),
    "maxIdleTimeMinutes": sampled_from((1, 10, 30, 114)),
    "buildId": uuids().map(str),
    "applicationArchiveUrl": just("https://files.example/app.apk"),
    "sdkVersion": just("54"),
    "launchArgs": just(["--locale", "de"]),
    "openUrl": just("myapp://start"),
}
_OPTIONS: Final = sorted(_GOOD.keys() - {"appId", "platform"})


@composite
def bodies(draw: DrawFn, wrong: SearchStrategy[Any] | None = None) -> dict[str, Any]:
    """Return a body of valid options, except for one that is nearly valid or, if given, ``wrong``."""
    body: dict[str, Any] = {
        "appId": str(draw(uuids())),
        "platform": draw(sampled_from(Platform)).value,
    }
    if draw(booleans()):
        body["vendorGo"] = True
    options = draw(lists(sampled_from(_OPTIONS), max_size=4, unique=True))
    body |= {option: draw(_GOOD[option]) for option in options}
    one = draw(sampled_from(sorted(NEAR)))
    values = NEAR[one] if wrong is None else NEAR[one] | wrong
    return body | draw(just({}) | values.map(lambda value: {one: value}))
