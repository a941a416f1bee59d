"""Routes: which files are routes, what a URL opens, which links are valid."""

from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device import ConfigError
from pytest_device.app import Routes
from tests.app.rows import put, rows

pytestmark = pytest.mark.every_python

DEVIATIONS: Final = {
    "'./about'", "'../about'", "'https://example.com/x'", "'mailto:a@b.c'",  # relative and external
    "{pathname:'/about',params:{q:'1'}}",  # a parameter that the route does not have
    "'/docs/a'", "'/docs/a/b/c'", "'/docs/'", "'/mix/f/c/a/b'", "'/(home)/item/x'", "'/item/x'",  # concrete paths
}  # fmt: skip
"""Links that the existing declaration accepts and the document refuses."""


def routes_of(*files: str) -> Routes:
    return Routes.of_files(files)


def routes_of_row(row: Any) -> Routes:
    return routes_of(*(file.removeprefix("app/") for file in row["input"]["files"]))


@pytest.mark.parametrize("row", rows("typed_routes", "match_url"))
def test_a_url_opens_the_route_of_the_reference_case(row: Any) -> None:
    routes = routes_of_row(row)
    for url in row["output"]["matches"]:
        match = routes.match_on_server(url["url"])
        found = match and (match.kind, match.page, match.file, dict(match.raw_params))
        assert found == (
            url["kind"] and (url["kind"], url["page"], url["file"], url["raw_params"])
        ), url
    assert [one.page for one in routes.all] == [
        one["page"] for one in row["output"]["routes"]
    ]


@pytest.mark.parametrize("row", rows("phone_routes"))
def test_a_url_opens_the_screens_of_the_reference_case(row: Any) -> None:
    routes = routes_of_row(row)
    for url, wanted in row["output"]["native"].items():
        match = routes.match(url)
        chain = [*match.screens] if match else []
        params = {**match.params} if match else {}
        assert {"chain": chain, "params": params} == wanted, url
        assert not match or match.page == "/" + "/".join(wanted["chain"])
    for one in row["output"].get("server", ()):
        match = routes.match_on_server(one["url"])
        kind = one["kind"] and one["kind"].replace("notFound", "not_found")
        found = match and (match.kind, match.page, match.file, dict(match.raw_params))
        assert found == (kind and (kind, one["page"], one["file"], one["raw_params"]))


def _arguments(link: str) -> tuple[str, dict[str, Any]]:
    if not link.startswith("{"):
        return link[1:-1], {}
    import re

    given = eval(re.sub(r"([{,])(\w+):", r"\1'\2':", link))  # an object of the table
    return given["pathname"], given.get("params", {})


VERDICTS: Final = [
    pytest.param(row.values[0], verdict, id=f"{row.id}-{verdict['href']}")
    for row in rows("typed_routes")
    for verdict in row.values[0]["output"].get("href_verdicts", ())
]


@pytest.mark.parametrize(("row", "verdict"), VERDICTS)
def test_a_link_is_accepted_or_refused_as_documented(row: Any, verdict: Any) -> None:
    routes, (route, params) = routes_of_row(row), _arguments(verdict["href"])
    if verdict["accepted"] and verdict["href"] not in DEVIATIONS:
        assert routes.match(routes.href(route, params))
    else:
        with pytest.raises(ConfigError):
            routes.href(route, params)


def test_parameters_are_decoded_and_catch_all_parameters_are_lists() -> None:
    routes, url = routes_of("[id]/[...rest].tsx"), "myapp://a%20b/c%2Fd/e?x=1#f"
    match, on_server = routes.match(url), routes.match_on_server(url)
    assert match
    assert on_server
    assert (
        match.raw_params == on_server.raw_params == {"id": "a%20b", "rest": "c%2Fd/e"}
    )
    assert on_server.params == {"id": "a b", "rest": ["c/d", "e"]}
    # On the phone, the value is decoded before it is split.
    assert match.params == {"id": "a b", "rest": ["c", "d", "e"], "x": "1"}


@pytest.mark.parametrize(
    ("url", "params"),
    [
        ("/u/%FF", {"id": "%FF"}),
        ("/u/a%20%zz", {"id": "a%20%zz"}),
        ("/x/../u/./7?id=8&q=a&q=b&e", {"id": "7", "q": ["a", "b"], "e": ""}),
        ("https://example.com/u/7?q=%2B#ü", {"id": "7", "#": "%C3%BC", "q": "+"}),
        ("myapp://ada@u/7?q=%252B#f", {"id": "7", "q": " "}),  # decoded twice
        ("u\\7", {"id": "7"}),
    ],
)
def test_a_phone_reads_a_url_as_its_router_does(
    url: str, params: dict[str, Any]
) -> None:
    match = routes_of("u/[id].tsx").match(url)
    assert match
    assert match.params == params


@pytest.mark.parametrize(
    ("url", "screens", "kind"),
    [
        ("/", ("(tabs)", "index"), "html"),
        ("/feed/7", ("(tabs)", "feed", "[post]"), "html"),
        ("/shop", ("shop",), "layout"),
        ("/shop/list", ("shop", "list"), "html"),
        ("/bob", ("[user]", "index"), "html"),
        ("/zoo", ("(zoo)", "zoo"), "html"),  # the first screen of its group
        ("/a%20b", ("a b",), "html"),
        ("/ü", (), None),  # the router compares the encoded URL with the file's name
    ],
)
def test_a_phone_opens_layouts_and_a_page_in_them(
    url: str, screens: tuple[str, ...], kind: str | None
) -> None:
    match = routes_of(
        "_layout.tsx",
        "(tabs)/_layout.tsx",
        "(tabs)/index.tsx",
        "(tabs)/feed/_layout.tsx",
        "(tabs)/feed/[post].tsx",
        "shop/_layout.tsx",
        "shop/list.tsx",
        "[user]/_layout.tsx",
        "[user]/index.tsx",
        "(b)/zoo.tsx",
        "(zoo)/_layout.tsx",
        "(zoo)/zoo.tsx",
        "a b.tsx",
        "u/ü.tsx",
    ).match("/u/ü" if url == "/ü" else url)
    assert (match.screens if match else (), match and match.kind) == (screens, kind)


def test_a_web_url_names_a_host_before_the_path() -> None:
    routes = routes_of("notes/index.tsx")
    with pytest.raises(ConfigError, match="'iOS' must be one of"):
        Routes.of_files([], platform="iOS")
    assert [
        bool(routes.match(url))
        for url in ("https://example.com/notes", "myapp://notes/", "myapp:///notes")
    ] == [True] * 3
    client = routes.match("vendorgo://192.168.1.5:8081/--/notes")
    assert client
    assert client.route == "/notes"
    with pytest.raises(ConfigError, match="is not a valid URL"):
        routes.match("//[x/notes")


@pytest.mark.parametrize(
    ("url", "opened", "params"),
    [
        # A link to a development build opens what it carries, a page or the address of the bundler.
        ("myapp://acme-development-client", "/", {}),
        ("acme+app://acme-development-client/?url=http://127.0.0.1:8081", "/", {}),
        ("myapp://acme-development-client/?url=other://notes/7?q=1&q=2", "/notes/[id]", {"id": "7", "q": "1"}),
        ("myapp://acme-development-client/?url=notes%2F7&url=notes/8", "/notes/[id]", {"id": "7"}),
        ("/acme-development-client/?url=notes/7", None, {}),
        ("myapp://vendor-development-client/?url=notes/7", None, {}),  # of another vendor
        # No URL has such a scheme: the rest is read as it is.
        ("my_app://notes/7?q=%252B#f", "/notes/[id]", {"id": "7", "q": "%2B", "#": "f"}),
        ("my_app:///notes/7", "/notes/[id]", {"id": "7"}),
        ("my_app://", "/", {}),
        ("/notes/7?next=https://example.com/x", "/notes/[id]", {"id": "7", "next": "https://example.com/x"}),
        # A path that begins with a scheme is read as a URL.
        ("/a:b", None, {}),
        ("https://example.com/a:b", None, {}),
        ("/a:notes/7", "/notes/[id]", {"id": "7"}),
        ("myapp://a:/b", None, {}),
        ("/notes/a:b", "/notes/[id]", {"id": "a:b"}),
        ("myapp://notes/a:b", "/notes/[id]", {"id": "a:b"}),
    ],
)  # fmt: skip
def test_a_phone_reads_links_that_begin_otherwise(
    url: str, opened: str | None, params: dict[str, Any]
) -> None:
    files = ("index.tsx", "notes/[id].tsx", "a:b.tsx")
    match = Routes.of_files(files, vendor="acme").match(url)

    assert (match.route if match else None) == opened
    assert (match.params if match else {}) == params


def test_special_files_cannot_be_linked_to_and_match_after_pages() -> None:
    routes = routes_of(
        "_layout.tsx",
        "+html.tsx",
        "+not-found.tsx",
        "index.tsx",
        "hello+api.ts",
        "notes/_layout.tsx",
    )
    assert list(routes.linkable) == ["/"]
    assert routes.layouts == ("_layout", "notes/_layout")
    found = [routes.match_on_server(url) for url in ("/hello", "/nowhere", "/")]
    assert [match and (match.kind, match.page) for match in found] == [
        ("api", "/hello"), ("not_found", "/+not-found"), ("html", "/index"),
    ]  # fmt: skip
    for name in ("/hello", "/+not-found", "/_layout", "/_sitemap"):
        with pytest.raises(ConfigError, match="special file"):
            routes.href(name)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["a.tsx", "a.js"], "is the same route as a.js"),
        (["(group).tsx"], "a file cannot be a group"),
        (["+odd.tsx"], "rename it to odd"),
        (["x.ios.tsx"], "needs a file of the same name without a platform"),
        (["x+api.ios.ts"], ""),
        (["a\nb.tsx"], "a URL cannot hold its name"),
        (["\udcff.tsx"], "a URL cannot hold its name"),
    ],
)
def test_a_file_that_cannot_be_a_route_is_reported(
    files: list[str], problem: str
) -> None:
    problems = [one.problem for one in routes_of(*files).problems]
    assert any(problem in one for one in problems) or not problem


@pytest.mark.parametrize(
    ("files", "pages"),
    [
        (
            ["(t)/index", "(t)/profile", "modal", "abc/index"],
            ["/(t)/index", "/(t)/profile", "/modal", "/abc/index"],
        ),
        (
            [
                "_layout",
                "(t)/_layout",
                "(t)/index",
                "(t)/profile",
                "modal",
                "abc/index",
            ],
            ["/(t)/index", "/modal", "/(t)/profile", "/abc/index"],
        ),
        (["(a,b)/_layout", "(a,b)/x", "(c)/x"], ["/(c)/x", "/(b)/x", "/(a)/x"]),
        (["deep/_layout", "deep/index", "about"], ["/deep/index", "/about"]),
    ],
)
def test_static_routes_are_ordered_as_seen_from_their_layout(
    files: list[str], pages: list[str]
) -> None:
    assert [
        one.page for one in routes_of(*(f"{file}.tsx" for file in files)).all
    ] == pages


def test_platform_files_replace_common_files() -> None:
    files = ("a.tsx", "a.native.tsx", "a.ios.tsx", "a.web.tsx")
    used = {
        platform: Routes.of_files(files, platform=platform).all[0].file
        for platform in ("ios", "android", "web", None)
    }
    assert used == {
        "ios": "./a.ios.tsx",
        "android": "./a.native.tsx",
        "web": "./a.web.tsx",
        None: "./a.tsx",
    }


@pytest.mark.parametrize(
    ("route", "params", "written"),
    [
        ("/notes/[id]", {"id": 7}, "/notes/7"),
        ("/notes/[id]", {"id": 7.0}, "/notes/7"),
        ("/docs/[...rest]", {"rest": [1.5, 2.0]}, "/docs/1.5/2"),
        ("/notes/[id]", {"id": "ä/ö ü"}, "/notes/%C3%A4%2F%C3%B6%20%C3%BC"),
        ("/docs/[...rest]", {"rest": ["a", 1]}, "/docs/a/1"),
        ("/docs/[...rest]", {"rest": []}, "/docs"),
        ('/a b"ü/100%', {}, "/a%20b%22%C3%BC/100%25"),
    ],
)
def test_a_route_is_formatted_with_its_parameters(
    route: str, params: dict[str, object], written: str
) -> None:
    routes = routes_of("notes/[id].tsx", "docs/[...rest].tsx", 'a b"ü/100%.tsx')
    assert routes.href(route, params) == written
    assert (match := routes.match_on_server(written))
    assert match.route == route


def test_a_query_is_appended_to_the_routes_own() -> None:
    routes = routes_of("index.tsx")
    assert (
        routes.href("/?a=1#f", query={"b": [True, "x y", 2.0]})
        == "/?a=1&b=true&b=x%20y&b=2#f"
    )
    assert [routes.href(route, query={"b": 2}) for route in ("/", "/?", "/?#f")] == [
        "/?b=2",
        "/?b=2",
        "/?b=2#f",
    ]
    assert [routes.href("/#f", query={"b": value}) for value in ([], None, [None])] == [
        "/#f"
    ] * 3


@pytest.mark.parametrize(
    ("route", "params", "fix"),
    [
        ("/notes/7", {}, r"use '/notes/\[id\]' with params=\{'id': …\}"),
        ("/notes/[id]", {}, "lacks the parameter 'id'"),
        ("/notes/[id]", {"id": "1", "x": "1"}, "has no parameter 'x'"),
        ("/notes/[id]", {"id": True}, "must be a string or a number"),
        ("/notes/[id]", {"id": ".."}, "a URL has no such segment"),
        ("/notes/[id]", {"id": "\ud800"}, "cannot be encoded in a URL"),
        ("/\ud800", {}, "cannot be encoded in a URL"),
        ("/note/[id]", {"id": "1"}, r"did you mean '/notes/\[id\]'"),
        ("/notes/[ids]", {"ids": "1"}, r"is unknown: did you mean '/notes/\[id\]'"),
        ("/notes/[id]/", {"id": "1"}, r"is unknown: did you mean '/notes/\[id\]'"),
        ("/about/", {}, "is unknown: did you mean '/about'"),
        ("notes", {}, "must be an absolute path"),
        ("https://example.com", {}, "external address"),
    ],
)
def test_a_wrong_link_is_refused_with_the_fix(
    route: str, params: dict[str, object], fix: str
) -> None:
    with pytest.raises(ConfigError, match=fix):
        routes_of("notes/[id].tsx", "[page].tsx", "about.tsx", "index.tsx").href(
            route, params
        )


def test_a_directory_is_scanned_without_following_links(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "app/index.tsx": "",
            "app/a/b.tsx": "",
            "app/style.css": "",
            "app/node_modules/x.tsx": "",
        },
    )
    (tmp_path / "app/a/loop").symlink_to(tmp_path / "app")
    routes = Routes.scan(tmp_path / "app")
    assert list(routes.linkable) == ["/", "/a/b"]
    assert [(one.file, one.problem.partition(":")[0]) for one in routes.problems] == [
        ("a/loop", "links to directories are not followed")
    ]


def test_a_directory_that_cannot_be_scanned_is_an_error_with_the_path(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="nowhere: cannot be read: No such file"):
        Routes.scan(tmp_path / "nowhere")


def test_three_catch_alls_match_a_long_url() -> None:
    routes, url = routes_of("[...a]/[...b]/[...c]/[d].tsx"), "/q" * 400
    for match, wanted in (
        (routes.match(url), {"a": 397, "b": 1, "c": 1, "d": 1}),
        (routes.match_on_server(url), {"a": 1, "b": 1, "c": 397, "d": 1}),
    ):
        assert match
        assert match.page == "/[...a]/[...b]/[...c]/[d]"
        assert {name: len(one) for name, one in match.params.items()} == wanted
    match = routes_of("[...a]/x/[...b]/y/[...c]/z.tsx").match_on_server(
        "/q" * 400 + "/x/y/" + "q/" * 400 + "z"
    )
    assert match
    assert match.params == {"a": ["q"] * 400, "b": [], "c": ["q"] * 400}


def test_a_repeated_parameter_is_declared_once() -> None:
    declared = routes_of("[id]/[id].tsx").typescript_declaration()
    assert "params: { id: string; }" in declared
    assert "params: { id: string | number; }" in declared


def test_an_array_without_groups_is_an_ordinary_name() -> None:
    assert [one.page for one in routes_of("(,)/a.tsx").all] == ["/(,)/a"]


def test_a_url_that_cannot_be_matched_is_refused() -> None:
    routes = routes_of("[...all].tsx")
    for match in (routes.match, routes.match_on_server):
        with pytest.raises(ConfigError, match="8192 are the maximum"):
            match("/" + "a/" * 10_000)
        with pytest.raises(ConfigError, match=r"'/\\ud800' cannot be encoded in a URL"):
            match("/\ud800")


def test_a_query_that_no_url_can_contain_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"query '\\ud800' cannot be encoded in a URL"
    ):
        routes_of("index.tsx").href("/", query={"a": "\ud800"})


def test_a_url_may_name_a_group_with_a_blank() -> None:
    match = routes_of("(my tabs)/[id].tsx").match("/(my%20tabs)/7")

    assert match
    assert match.params == {"id": "7"}
