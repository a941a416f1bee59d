"""A web build as a browser sees it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from pytest_device.service.apps.site import serving
from tests.service.apps.archives import PAGE

FILES = {
    "index.html": PAGE,
    "app.js": b"let notes",
    "module.mjs": b"export {}",
    "style.css": b"body{}",
    "data.wasm": b"\0asm",
    "font.woff2": b"wOF2",
    "app.webmanifest": b"{}",
    "app.js.map": b"{}",
    "icon.svg": b"<svg/>",
    "about.html": b"about",
    "help/index.html": b"help",
    "empty/file.txt": b"text",
    "404.html": b"nothing here",
    "ünï.txt": b"odd",
    ".well-known/assetlinks.json": b"[]",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    directory = tmp_path / "site"
    for name, content in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    (tmp_path / "secret.txt").write_text("secret")
    (directory / "link.txt").symlink_to(tmp_path / "secret.txt")
    (directory / "up").symlink_to(tmp_path)
    return directory


def browser(base_url: str = "") -> httpx.AsyncClient:
    # Without certificates it starts sooner.
    return httpx.AsyncClient(base_url=base_url, trust_env=False, verify=False)


def asked(site: Path, *paths: str, **more: object) -> list[httpx.Response]:
    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [await client.request("GET", path, **more) for path in paths]  # type: ignore[arg-type]

    return visited(site, ask)


def visited(
    site: Path, visit: Callable[[httpx.AsyncClient], Awaitable[list[httpx.Response]]]
) -> list[httpx.Response]:
    async def over_sockets() -> list[httpx.Response]:
        async with serving(site) as url, browser(base_url=url) as client:
            return await visit(client)

    return asyncio.run(over_sockets())


def test_every_file_is_served_with_its_type_and_never_cached(site: Path) -> None:
    types = {
        "/": "text/html; charset=utf-8",
        "/app.js": "text/javascript; charset=utf-8",
        "/module.mjs": "text/javascript; charset=utf-8",
        "/style.css": "text/css; charset=utf-8",
        "/data.wasm": "application/wasm",
        "/font.woff2": "font/woff2",
        "/app.webmanifest": "application/manifest+json",
        "/app.js.map": "application/json",
        "/icon.svg": "image/svg+xml",
        "/%C3%BCn%C3%AF.txt": "text/plain; charset=utf-8",
        "/.well-known/assetlinks.json": "application/json",
    }

    replies = asked(site, *types)

    assert [reply.status_code for reply in replies] == [200] * len(types)
    assert [reply.headers["content-type"] for reply in replies] == list(types.values())
    assert {reply.headers["cache-control"] for reply in replies} == {"no-store"}
    assert replies[0].content == PAGE


def test_a_path_of_the_app_returns_the_app(site: Path) -> None:
    replies = asked(site, "/notes/17?edit=1", "/no/such", "/empty/", "/..%2f..%2fnotes")

    assert [(reply.status_code, reply.content) for reply in replies] == [
        (200, PAGE)
    ] * 4


def test_an_exported_page_is_found_by_its_route(site: Path) -> None:
    about, help_, moved = asked(site, "/about", "/help/", "/help")

    assert (about.content, help_.content) == (b"about", b"help")
    assert (moved.status_code, httpx.URL(moved.headers["location"]).path) == (
        307,
        "/help/",
    )


def test_a_file_that_is_not_there_is_not_found(site: Path) -> None:
    (reply,) = asked(site, "/static/old.js")

    assert reply.status_code == 404
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/link.txt",
        "/up/secret.txt",
        "/..%2fsecret.txt",
        "/help/..%2f..%2fsecret.txt",
        "/%00.txt",
        "//etc/x.txt",
    ],
)
def test_nothing_outside_the_build_is_served(site: Path, path: str) -> None:
    (reply,) = asked(site, path)

    assert reply.status_code == 404
    assert "secret" not in reply.text


def test_requests_for_another_host_are_refused(site: Path) -> None:
    (foreign,) = asked(site, "/", headers={"Host": "devices.example"})
    (broken,) = asked(site, "/", headers={"Host": "["})
    (local,) = asked(site, "/", headers={"Host": "localhost:80"})

    assert [reply.status_code for reply in (foreign, broken, local)] == [421, 421, 200]


def test_a_site_is_read_only(site: Path) -> None:
    async def post(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [await client.post("/"), await client.head("/app.js")]

    posted, looked = visited(site, post)

    assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")
    assert (looked.status_code, looked.headers["content-length"]) == (200, "9")


def test_a_range_of_a_file_can_be_requested(site: Path) -> None:
    (part,) = asked(site, "/app.js", headers={"Range": "bytes=4-8"})

    assert (part.status_code, part.content) == (206, b"notes")


def test_two_sites_are_separate(site: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.html").write_bytes(b"other")

    async def both() -> list[bytes]:
        async with (
            serving(site) as one,
            serving(tmp_path / "other") as two,
            browser() as http,
        ):
            return [(await http.get(url)).content for url in (one, two)]

    assert asyncio.run(both()) == [PAGE, b"other"]


def test_a_site_closes_immediately_despite_open_connections(site: Path) -> None:
    async def ended() -> None:
        async with browser() as http:
            async with asyncio.timeout(10), serving(site) as url:
                await http.get(url)  # its connection is kept
            with pytest.raises(httpx.ConnectError):
                await http.get(url)

    asyncio.run(ended())
