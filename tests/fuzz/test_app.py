"""Environment files and routes of any shape: a result or one clear error, in bounded time."""

import re
import string
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_device import ConfigError
from pytest_device.app import Routes, inlined_public, load_env
from pytest_device.app.dotenv import assignments, expanded
from pytest_device.app.routes.names import is_group, parameter

NAMES = st.sampled_from("ABCD")
PIECES = st.one_of(
    st.builds("${{{}}}".format, NAMES), st.builds("${}".format, NAMES), st.builds("${{{0}:-{1}}}".format, NAMES, NAMES),
    st.text(string.ascii_letters + " $\\{}#'\"`:-", max_size=8),
)  # fmt: skip
VALUES = st.dictionaries(NAMES, st.lists(PIECES, max_size=4).map("".join))
SEGMENTS = st.one_of(
    st.sampled_from(("a", "b", "index", "(g)", "(g,h)", "+not-found")),
    st.builds("[{}]".format, st.sampled_from("xyz")),
    st.builds("[...{}]".format, st.sampled_from("rst")),
)
FILES = st.lists(
    st.lists(SEGMENTS, min_size=1, max_size=4).map(
        lambda parts: "/".join(parts) + ".tsx"
    ),
    max_size=8,
)


@given(st.text())
def test_any_text_is_parsed_as_assignments_by_line(text: str) -> None:
    found = list(assignments(text))
    assert all(one.name and 1 <= one.line <= text.count("\n") + 1 for one in found)
    assert all(one.name in text.replace("\r", "") for one in found)


@given(VALUES, VALUES)
def test_expansion_ends_with_values_or_names_a_circular_reference(
    parsed: dict[str, str], environ: dict[str, str]
) -> None:
    try:
        values = expanded(parsed, environ)
    except ConfigError:
        return  # a circle: tests/app/test_env.py
    assert values.keys() == parsed.keys()
    plain = {
        name for name, value in parsed.items() if "$" not in value and "\\" not in value
    }
    assert all(values[name] == parsed[name] for name in plain - environ.keys())
    assert all(values[name] == environ[name] for name in parsed.keys() & environ.keys())


REFERENCES = st.tuples(
    st.sampled_from(("${{{}}}", "${}/", "${{{}:-d}}", "${{{}-d}}")), st.integers(0, 9)
)
LINES = st.lists(
    st.lists(st.one_of(st.text("xy /#-"), REFERENCES), max_size=4), max_size=6
)


@given(LINES, st.dictionaries(st.sampled_from(("V0", "V1")), st.text("pq")))
def test_references_to_earlier_variables_are_replaced_by_their_values(
    lines: list[list[str | tuple[str, int]]], environ: dict[str, str]
) -> None:
    parsed: dict[str, str] = {}
    expected: dict[str, str] = {}
    for index, pieces in enumerate(lines):
        text = wanted = ""
        for piece in pieces:
            if isinstance(piece, str):
                text, wanted = text + piece, wanted + piece
                continue
            form, number = piece
            name = f"V{number % index}" if index else "NONE"
            # An empty variable of the process does not hide the one of the file.
            value = environ.get(name) or expected.get(name)
            if not value:
                value = "d" if "-d" in form else ""
            text, wanted = (
                text + form.format(name),
                wanted + value + "/" * form.endswith("/"),
            )
        parsed[f"V{index}"], expected[f"V{index}"] = text, wanted
    values = expanded(parsed, environ)
    assert {name: values[name] for name in expected.keys() - environ.keys()} == {
        name: value for name, value in expected.items() if name not in environ
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    try:
        result = load_env(tmp_path, environ={})
    except ConfigError:
        return
    assert set(result.loaded) == set(result.values)


@given(FILES)
def test_each_link_of_a_route_opens_a_route_with_the_same_values(
    files: list[str],
) -> None:
    routes = Routes.of_files(files)
    for name, parameters in routes.linkable.items():
        values = {
            one.name: ["v", "w x"] if one.catch_all else "v/é" for one in parameters
        }
        match = routes.match_on_server(routes.href(name, values))
        assert match
        # The router in the app ignores directories of this name.
        has_index = any("index" in one.segments[:-1] for one in routes.all)
        assert has_index or routes.match(routes.href(name, values))
        if match.route == name and len({one.name for one in parameters}) == len(
            parameters
        ):
            several = [one for one in parameters if one.catch_all]
            if len(several) < 2:  # else it is open which takes what
                assert match.params == values


def _pattern(segments: tuple[str, ...]) -> "tuple[re.Pattern[str], dict[str, str]]":
    """Return the expression that the reference cases have for a route, and its groups with their parameters."""
    names: dict[str, str] = {}
    written = ""
    for index, segment in enumerate(segments):
        found = parameter(segment)
        if found:
            names[f"g{index}"] = found.name
            written += (
                f"(?:/(?P<g{index}>.+?))?"
                if found.catch_all
                else f"/(?P<g{index}>[^/]+?)"
            )
        else:
            written += (
                f"(?:/{re.escape(segment)})?"
                if is_group(segment)
                else f"/{re.escape(segment)}"
            )
    return re.compile(f"^{written if segments else '/'}(?:/)?$"), names


URLS = st.lists(
    st.sampled_from(("a", "b", "c", "(g)", "(h)", "index")), max_size=5
).map("/".join)


@given(FILES, URLS, st.sampled_from(("", "/")))
def test_a_url_opens_the_first_matching_route(
    files: list[str], path: str, end: str
) -> None:
    routes = Routes.of_files(files)
    url = f"/{path}{end if path else ''}"
    first = None
    for route in routes.all:
        pattern, names = _pattern(route.visible)
        if found := pattern.match(url):
            first = (
                route.page,
                {names[group]: value for group, value in found.groupdict().items()},
            )
            break
    match = routes.match_on_server(url)
    assert (match and (match.page, dict(match.raw_params))) == first


@given(FILES, st.text("ab/gh()%.?#", max_size=30))
def test_any_url_matches_a_known_route_or_none(files: list[str], url: str) -> None:
    routes = Routes.of_files(files)
    try:
        matches = routes.match(url), routes.match_on_server(url)
    except ConfigError:
        return
    pages = {one.page for one in (*routes.all, *routes.navigators)}
    assert {match.page for match in matches if match} <= pages


@given(
    st.lists(
        st.sampled_from(
            (
                "process",
                ".",
                "env",
                "A",
                "`",
                "${",
                "}",
                "<a",
                ">",
                "</a>",
                "/",
                "'",
                "\n",
                "{",
                "=",
            )
        )
    )
)
def test_any_source_is_read(pieces: list[str]) -> None:
    source = "process.env.X;" + "".join(pieces)
    reads = inlined_public(source, {})
    assert reads[0].name in ("X", "XA")
    assert all(one.expression in source for one in reads)
