"""Environment files and routes of any shape: a result or one clear error, in bounded time."""

import string
import struct
import zlib
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_device import ConfigError
from pytest_device.app import Routes, inlined_public, load_env
from pytest_device.app.dotenv import assignments, expanded
from pytest_device.app.png import SIGNATURE, PngError, read_png

NAMES = st.sampled_from("ABCD")
PIECES = st.one_of(
    st.builds("${{{}}}".format, NAMES), st.builds("${}".format, NAMES), st.builds("${{{0}:-{1}}}".format, NAMES, NAMES),
    st.text(string.ascii_letters + " $\\{}#'\"`:-", max_size=8),
)  # fmt: skip
VALUES = st.dictionaries(NAMES, st.lists(PIECES, max_size=4).map("".join))
SEGMENTS = st.one_of(
    st.sampled_from(("a", "b", "index", "(g)", "(g,h)")),
    st.builds("[{}]".format, st.sampled_from("xyz")),
    st.builds("[...{}]".format, st.sampled_from("rst")),
)
PIXELS = st.binary(max_size=40).map(lambda some: zlib.compress((some + b"\x01") * (96 * 97 * 8 // (len(some) + 1) + 1)))
CHUNKS = st.lists(
    st.one_of(
        st.tuples(st.just(b"IDAT"), PIXELS),
        st.tuples(st.sampled_from((b"PLTE", b"tRNS", b"IDAT", b"IEND", b"tEXt")), st.binary(max_size=800)),
    ),
    max_size=4,
)
FILES = st.lists(st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda parts: "/".join(parts) + ".tsx"), max_size=8)


@given(st.text())
def test_any_text_is_read_as_assignments_of_its_lines(text: str) -> None:
    found = list(assignments(text))
    assert all(one.name and 1 <= one.line <= text.count("\n") + 1 for one in found)
    assert all(one.name in text.replace("\r", "") for one in found)


@given(VALUES, VALUES)
def test_expansion_ends_with_values_or_names_a_circle(parsed: dict[str, str], environ: dict[str, str]) -> None:
    try:
        values = expanded(parsed, environ)
    except ConfigError:
        return  # a circle: tests/app/test_env.py
    assert values.keys() == parsed.keys()
    plain = {name for name, value in parsed.items() if "$" not in value and "\\" not in value}
    assert all(values[name] == parsed[name] for name in plain)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    try:
        result = load_env(tmp_path, environ={})
    except ConfigError:
        return
    assert set(result.loaded) == set(result.values)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from((0, 2, 3, 4, 5, 6)),
    st.sampled_from((1, 2, 4, 8, 16, 3)),
    st.integers(0, 1),
    CHUNKS,
    st.integers(0, 60),
)
def test_any_image_has_colors_or_is_refused(
    tmp_path: Path, color: int, depth: int, interlaced: int, chunks: list[tuple[bytes, bytes]], cut: int
) -> None:
    header = struct.pack(">IIBBBBB", 96, 96, depth, color, 0, 0, interlaced)
    parts = [(b"IHDR", header), *chunks]
    content = SIGNATURE + b"".join(struct.pack(">I", len(body)) + kind + body + bytes(4) for kind, body in parts)
    (tmp_path / "icon.png").write_bytes(content[: len(content) - cut])
    try:
        found, colors = read_png(tmp_path / "icon.png", (96, 96))
    except PngError:
        return
    assert (found.width, found.height) == (96, 96)
    assert colors


@given(FILES)
def test_each_link_of_a_route_opens_a_route_with_its_values(files: list[str]) -> None:
    routes = Routes.of_files(files)
    for name, parameters in routes.linkable.items():
        values = {one.name: ["v", "w x"] if one.catch_all else "v/é" for one in parameters}
        match = routes.match(routes.href(name, values))
        assert match
        if match.route == name and len({one.name for one in parameters}) == len(parameters):
            several = [one for one in parameters if one.catch_all]
            if len(several) < 2:  # else it is open which takes what
                assert match.params == values


@given(FILES, st.text("ab/gh()%.?#", max_size=30))
def test_any_url_matches_a_known_route_or_none(files: list[str], url: str) -> None:
    routes = Routes.of_files(files)
    try:
        match = routes.match(url)
    except ConfigError:
        return
    assert match is None or match.page in {one.page for one in routes.all}


@given(
    st.lists(st.sampled_from(("process", ".", "env", "A", "`", "${", "}", "<a", ">", "</a>", "/", "'", "\n", "{", "=")))
)
def test_any_source_is_read(pieces: list[str]) -> None:
    source = "process.env.X;" + "".join(pieces)
    reads = inlined_public(source, {})
    assert reads[0].name in ("X", "XA")
    assert all(one.expression in source for one in reads)
