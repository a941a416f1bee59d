"""The time that parsers take for texts from services, providers and projects grows with their length, not faster.

Each input makes a parser that backtracks or copies its rest take minutes. No test has a time limit: each compares the
CPU time for a text with that for the same text eight times as long.
"""

import gc
import re
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
import pytest

from pytest_device.app import check, load_project
from pytest_device.app.inlining import inlined_public
from pytest_device.app.vendor import VendorProfile
from pytest_device.auth import AuthRequest
from pytest_device.auth.provider import Client, IdentityProvider
from pytest_device.auth.urls import MAX_URL_LENGTH
from pytest_device.controllers.appium.refusal import refusal
from pytest_device.redact import Redactor
from pytest_device.report.lines import normalize
from pytest_device.service.programs.cache import _CREDENTIAL
from pytest_device.sessions.models import Session
from pytest_device.trace.screen_parsers import from_description, from_page_source
from pytest_device.trace.tree import without_typed_secrets
from pytest_device.updates import UpdateError
from pytest_device.updates.published_protocol_v1 import PublishedProtocolV1
from tests.app.rows import project_files, put
from tests.patterns import ANY, OWN, TABLES, WORST, used_patterns

GROWTH: Final = 8
MAX_RATIO: Final = 26.0
"""Between 8, of linear time, and 32, the least of quadratic time where half of the shorter time is fixed."""
MEASURABLE_SECONDS: Final = 0.004
"""CPU time that stands out from the noise of the clock, the caches and the garbage collector."""
SHORTEST: Final = 64
LONGEST: Final = 1024 * 1024
LONGEST_MATCHED: Final = 32 * 1024
"""Less, since there are many patterns: quadratic time stands out from here on, as each step of one is fast."""
ATTEMPTS: Final = 3
ROUNDS: Final = 4

_Input = TypeVar("_Input")


def seconds_of(parse: Callable[[_Input], object], text: _Input) -> float:
    """Return the least CPU time of several calls: the first one also imports and compiles.

    The garbage collector is off: it would look through the objects of the whole test run.
    """
    measured: list[float] = []
    gc.disable()
    try:
        for _ in range(ATTEMPTS):
            start = time.thread_time()
            parse(text)
            measured.append(time.thread_time() - start)
    finally:
        gc.enable()
    return min(measured)


def assert_grows_linearly(
    parse: Callable[[_Input], object],
    build: Callable[[int], _Input],
    longest: int = LONGEST,
) -> None:
    assert growth_of(parse, build, longest) == ""


def growth_of(
    parse: Callable[[_Input], object], build: Callable[[int], _Input], longest: int
) -> str:
    """Return what is measured if the time grows faster than the input, otherwise an empty text.

    Compare the CPU time for an input with that for one eight times as long.

    ``build`` returns an input of about a length, at most ``longest``. The shorter one is the first whose time is
    measurable and at least twice that of a very short one, most of which is fixed. A parser for which there is none
    refuses what is long, or is so fast that its growth does no harm.

    A busy machine makes a linear parser slow once, a backtracking one is slow each time: the least ratio of several
    rounds counts.
    """
    measured: list[str] = []
    for _ in range(ROUNDS):
        enough = max(MEASURABLE_SECONDS, 2 * seconds_of(parse, build(SHORTEST)))
        length = 2 * SHORTEST
        while (shorter := seconds_of(parse, build(length))) < enough:
            length *= 2
            if GROWTH * length > longest:
                return ""

        longer = seconds_of(parse, build(GROWTH * length))
        if longer / shorter < MAX_RATIO:
            return ""
        measured.append(
            f"{shorter:.3f} s for {length} characters, {longer:.3f} s for {GROWTH * length}"
        )

    return "; ".join(measured)


def repeat(text: str, *, start: str = "", end: str = "") -> Callable[[int], str]:
    """Return a function that repeats a text up to a length, between two others."""
    return lambda length: start + text * (length // len(text)) + end


def apply(pattern: re.Pattern[Any], method: str) -> Callable[[str], object]:
    """Return a function that applies a pattern to a text as the package does."""
    is_bytes = isinstance(pattern.pattern, bytes)

    def parse(text: str) -> object:
        content: Any = text.encode() if is_bytes else text
        if method == "sub":
            return pattern.sub(lambda _: content[:0], content)
        if method == "finditer":
            return list(pattern.finditer(content))
        return getattr(pattern, method)(content)

    return parse


def test_the_longest_times_of_all_patterns_are_listed() -> None:
    listed = {*WORST, *OWN, *TABLES}

    used = {*used_patterns()}

    assert (used - listed, listed - used) == (set(), set())


def test_every_pattern_takes_linear_time() -> None:
    slow: dict[str, str] = {}
    for place, found in used_patterns().items():
        texts = WORST.get(place, ())
        uses = found
        if place in TABLES:
            patterns = map(re.compile, TABLES[place]())
            uses = [(pattern, method) for pattern in patterns for _, method in found]
            texts = ANY
        assert texts or place in OWN, place

        for (pattern, method), (start, part, end) in product(uses, texts):
            text = repeat(part, start=start, end=end)
            if pattern and (
                growth := growth_of(apply(pattern, method), text, LONGEST_MATCHED)
            ):
                slow[f"{place}.{method}: {start!r} {part!r} {end!r}"] = growth

    assert slow == {}


Headers = dict[str, str]
Build = Callable[[int], str]


def read(field: str) -> None:
    headers = {"platform": "ios", "runtime-version": "1", "protocol-version": "1"}
    fields = {"expect-signature": field, "recent-failed-update-ids": field}
    named = {f"vendor-{name}": text for name, text in {**headers, **fields}.items()}
    with suppress(UpdateError):  # short ones are no error
        PublishedProtocolV1(VendorProfile()).read_request(named)


@pytest.mark.parametrize(
    "build",
    [
        repeat("a", start='sig="', end='"'),
        repeat("a ", start="sig=(", end=")"),
        repeat(";a", start="sig"),
    ],
    ids=["a text", "an inner list", "parameters"],
)
def test_a_request_for_updates_is_read_in_linear_time(build: Build) -> None:
    assert_grows_linearly(read, build)


def mask(*secrets: str) -> Callable[[str], object]:
    return lambda text: Redactor(secrets).text(text)


def mask_npm(text: str) -> object:
    return _CREDENTIAL.sub("", text)


MASKED: dict[str, tuple[Callable[[str], object], Build]] = {
    "names without a value": (mask(), repeat("token", start="?")),
    "many names": (mask(), repeat("&token")),
    "backslashes before a quote": (mask("'secret'"), repeat("\\")),
    "backslashes": (mask("\\\\\\\\secret"), repeat("\\")),
    "backslashes and quotes": (
        mask("secret\\\\\\'s"),
        repeat("\\", start="secret"),
    ),
    "ellipses": (mask("secretsecret"), repeat("...")),
    "blanks": (mask(), repeat(" ", start="authorization: bearer")),
    "URLs": (mask(), repeat("://a")),
    "npm": (mask_npm, repeat("_password")),
    "letters of npm": (mask_npm, repeat("_")),
    "digits of a report": (normalize, repeat("1")),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_text_is_masked_in_linear_time(name: str) -> None:
    assert_grows_linearly(*MASKED[name])


@pytest.mark.parametrize(
    "part",
    [
        "protocol '' used in '",
        "application at '",
        "architecture is not supported by the ",
        "app with bundle id '",
        "; For documentation on this error, please visit: ",
        "could not be created. Details: '",
    ],
)
def test_a_message_of_appium_is_explained_in_linear_time(part: str) -> None:
    session = Session.from_wire(
        {"id": "0f6f5a3e-9d2c-4c0b-8c9d-2b1f6d3c5a11", "status": "in-progress"}
    )

    assert_grows_linearly(lambda message: refusal(session, {}, message), repeat(part))


@pytest.mark.parametrize(
    ("start", "part"),
    [("</", " "), ("", "</"), ("", "(<a "), ("", "`${"), ("", "'\\")],
)
def test_a_source_is_scanned_in_linear_time(start: str, part: str) -> None:
    assert_grows_linearly(
        lambda source: inlined_public(source, {}),
        repeat(part, start=f"process {start}"),
    )


@pytest.mark.parametrize("part", ["<p>", "<p>x", "<p></b>", "<a ", "</", "<!--", "&"])
def test_a_web_page_without_ends_is_read_in_linear_time(part: str) -> None:
    assert_grows_linearly(from_page_source, repeat(part, start="<html>"))
    assert_grows_linearly(without_typed_secrets, repeat(part, start="<html>"))


@pytest.mark.parametrize("part", ["a", '\\"', "  ", "(1, "])
def test_a_line_of_a_description_is_read_in_linear_time(part: str) -> None:
    line = repeat(part, start="button ")
    assert_grows_linearly(from_description, line)
    assert_grows_linearly(
        from_description, lambda length: f"{line(length)} (0, 0, 1, 1)"
    )


def test_many_findings_of_a_file_are_placed_in_linear_time(tmp_path: Path) -> None:
    imports = repeat("@import 'a';\n")

    assert_grows_linearly(
        check,
        lambda length: load_project(
            put(tmp_path, project_files({}, **{"src/all.scss": imports(length)}))
        ),
    )


@pytest.mark.parametrize("part", ["&", "a=1&", "%41", "state=", "#"])
def test_a_returned_url_is_parsed_in_linear_time(part: str) -> None:
    request = AuthRequest({"clientId": "c", "redirectUri": "myapp://redirect"})

    assert_grows_linearly(
        request.parse_return_url,
        repeat(part, start="myapp://redirect?"),
        longest=MAX_URL_LENGTH - 100,
    )


@pytest.mark.parametrize("cookie", ["\\1", ";", "a=b;"])
def test_a_cookie_is_read_in_linear_time(cookie: str) -> None:
    with (
        IdentityProvider(clients=[Client("c", ("myapp://redirect",))]) as provider,
        httpx.Client() as http,
    ):
        assert_grows_linearly(
            lambda header: http.get(
                f"{provider.issuer}/authorize", headers={"cookie": header}
            ),
            repeat(cookie, start='pytest-device-session="', end='"'),
            longest=60_000,
        )
