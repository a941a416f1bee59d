"""The gateway in front of a program that echoes its requests."""

import asyncio
import gzip
import json
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse

from pytest_device.service import gateway
from pytest_device.service.effects import ConnectionLostError
from pytest_device.service.keys import Keys
from pytest_device.service.replies import RefusalError
from tests.fakes.devices import FakeBrowserDevice, FakeDevice, FakeRunner
from tests.fakes.http_server import Handler, running
from tests.service.programs.alive import eventually

BASE = "http://127.0.0.1:1"
ID = "0b8e4d52-9c1f-4f3a-a7d6-5e2c8b9f1043"
TOKEN = "made-up-token-of-a-daemon"
SHOWN = "http://127.0.0.1:7777/notes?from=here"


class _Echo(Handler):
    """Echoes its requests."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        server = cast("_Server", self.server)
        server.asked.append(self.path)
        if self.path == "/dies":
            self.close_connection = True
            return
        body = self._chunks() if "transfer-encoding" in self.headers else self._whole()
        asked: Any = {
            "method": self.command,
            "path": self.path,
            "headers": dict(self.headers),
            "body": body.decode(),
        }
        said = json.dumps(asked).encode()
        self.send_response(302 if self.path.startswith("/moved") else 200)
        for name, value in (
            ("Content-Type", "application/json"),
            ("Location", "/health"),
            ("X-Own", "kept"),
        ):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _whole(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def _chunks(self) -> bytes:
        body = b""
        while length := int(self.rfile.readline(), 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = answer


class _Server(ThreadingMixIn, UnixStreamServer):
    """An HTTP server on a socket; ``accepted`` are its connections, ``asked`` the paths of its requests."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Echo)
        self.accepted: list[socket.socket] = []
        self.asked: list[str] = []

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        self.accepted.append(super().get_request()[0])
        return self.accepted[-1], ("a socket", 0)


@contextmanager
def serving(path: Path) -> Generator[_Server]:
    with running(_Server(path)) as server:
        yield server


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with TemporaryDirectory(prefix="pd-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def listener(directory: Path) -> Iterator[Path]:
    with serving(directory / "controller"):
        yield directory / "controller"


class GatewayHarness:
    """The gateway in this process, in front of one controller, of a session with the ID ``ID``."""

    def __init__(self, listener: Path, device: FakeDevice | None = None) -> None:
        self.keys = Keys(BASE)
        self.url = self.keys.url("controllers", ID)
        self.device = device
        self.runner = FakeRunner(device, ready=True)
        self.runner.start(ID, {})
        self.programs = self.runner.record(ID)
        self.runner.control(ID, "agent-device", listener, TOKEN)

    def ask(
        self, method: str, path: str = "", url: str | None = None, **more: Any
    ) -> httpx.Response:
        async def exchange() -> httpx.Response:
            async with gateway.connections() as opened:
                app = Starlette(
                    routes=gateway.routes(self.runner, self.keys, opened),
                    exception_handlers={RefusalError: _refused},
                )
                transport = httpx.ASGITransport(app)
                async with httpx.AsyncClient(transport=transport) as client:
                    return await client.request(
                        method, (url or self.url) + path, **more
                    )

        return asyncio.run(exchange())

    def rpc(
        self, command: str, *positionals: str, token: str = TOKEN, **flags: Any
    ) -> Any:
        """Send a request as agent-device's clients do; return what the daemon received, or the response instead."""
        params = {
            "session": "s",
            "command": command,
            "positionals": positionals,
            "flags": flags,
            "meta": {},
        }
        asked = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "agent_device.command",
            "params": params,
        }
        answer = self.ask(
            "POST", "/rpc", json=asked, headers={"Authorization": f"Bearer {token}"}
        ).json()
        return json.loads(answer["body"])["params"] if "body" in answer else answer


async def _refused(_request: object, error: Exception) -> JSONResponse:
    return JSONResponse({"message": str(error)}, cast("RefusalError", error).status)


@pytest.fixture
def harness(listener: Path) -> GatewayHarness:
    return GatewayHarness(listener)


@pytest.fixture
def browser(listener: Path) -> GatewayHarness:
    """The gateway of a browser device."""
    return GatewayHarness(
        listener,
        FakeBrowserDevice(in_front="com.example.notes", shown=SHOWN),
    )


def done(harness: GatewayHarness) -> list[tuple[object, ...]]:
    assert harness.device
    return harness.device.calls


def test_request_and_response_are_forwarded_unchanged(harness: GatewayHarness) -> None:
    reply = harness.ask(
        "POST",
        "/tools/des%2Fcribe?x=a%20b",
        content=b"a body",
        headers={"X-Mine": "1", "TE": "gzip"},
    )

    asked = reply.json()
    assert (asked["method"], asked["path"], asked["body"]) == (
        "POST",
        "/tools/des%2Fcribe?x=a%20b",
        "a body",
    )
    assert reply.headers["x-own"] == "kept"
    headers = {name.lower(): value for name, value in asked["headers"].items()}
    assert headers["x-mine"] == "1"
    assert "te" not in headers


def test_the_program_sees_its_own_host_name(harness: GatewayHarness) -> None:
    headers = harness.ask("GET", "/x", headers={"Host": "somewhere.example"}).json()[
        "headers"
    ]

    assert {name.lower(): value for name, value in headers.items()}[
        "host"
    ] == "127.0.0.1"


def test_a_body_of_unknown_length_is_forwarded(harness: GatewayHarness) -> None:
    async def parts() -> Any:
        yield b"in "
        yield b"parts"

    reply = harness.ask("POST", "/x", content=parts())

    assert reply.json()["body"] == "in parts"


def test_a_redirect_is_returned_and_not_followed(harness: GatewayHarness) -> None:
    assert harness.ask("GET", "/moved").status_code == 302


@pytest.mark.parametrize(
    "path", ["/controllers/{id}/wrong/health", "/controllers/unknown/{key}/health"]
)
def test_a_wrong_key_and_an_ended_session_are_not_found(
    harness: GatewayHarness, path: str
) -> None:
    key = harness.url.rpartition("/")[2]

    reply = harness.ask("GET", url=BASE + path.format(id=ID, key=key))

    assert reply.status_code == 404
    assert "its session may have ended" in reply.json()["errors"][0]["message"]


def test_the_key_of_another_purpose_opens_nothing(harness: GatewayHarness) -> None:
    key = harness.keys.url("preview", ID).rpartition("/")[2]

    assert (
        harness.ask("GET", url=f"{BASE}/controllers/{ID}/{key}/health").status_code
        == 404
    )


async def forwarded(connections: gateway.Connections, socket: Path, path: str) -> int:
    """Send a POST request over the gateway's connections, read its response; return the status."""
    asked = httpx.Request("POST", f"http://127.0.0.1{path}", content=b"{}")
    reply = await connections.send(socket, asked)
    async for _ in reply.aiter_raw():
        pass
    return reply.status_code


def test_the_connection_to_a_program_is_kept_for_the_next_request(
    directory: Path,
) -> None:
    async def scenario() -> None:
        async with gateway.connections() as opened:
            for _ in range(3):
                assert await forwarded(opened, directory / "kept", "/x") == 200

    with serving(directory / "kept") as server:
        asyncio.run(scenario())

    assert (len(server.asked), len(server.accepted)) == (3, 1)


def test_first_requests_at_the_same_time_leave_no_connection_open(
    directory: Path,
) -> None:
    async def scenario() -> None:
        async with gateway.connections() as opened:
            await forwarded(opened, directory / "gone", "/x")
            (directory / "gone").unlink()
            requests = [forwarded(opened, directory / "new", "/x") for _ in range(3)]
            assert await asyncio.gather(*requests) == [200] * 3
        # The server closes its end when the other one is closed.
        await eventually(lambda: all(one.fileno() == -1 for one in new.accepted))

    with serving(directory / "gone"), serving(directory / "new") as new:
        asyncio.run(scenario())


def test_a_connection_that_the_program_has_closed_is_replaced(directory: Path) -> None:
    async def scenario() -> None:
        async with gateway.connections() as opened:
            assert await forwarded(opened, directory / "closing", "/x") == 200
            server.accepted[0].shutdown(socket.SHUT_RDWR)
            assert await forwarded(opened, directory / "closing", "/x") == 200

    with serving(directory / "closing") as server:
        asyncio.run(scenario())

    assert (len(server.asked), len(server.accepted)) == (2, 2)


def test_a_request_that_gets_no_response_is_not_repeated(directory: Path) -> None:
    async def scenario() -> None:
        async with gateway.connections() as opened:
            assert await forwarded(opened, directory / "dying", "/x") == 200
            with pytest.raises(httpx.TransportError):
                await forwarded(opened, directory / "dying", "/dies")

    with serving(directory / "dying") as server:
        asyncio.run(scenario())

    assert server.asked == ["/x", "/dies"]


def test_connections_to_the_program_of_an_ended_session_are_closed(
    directory: Path,
) -> None:
    async def scenario() -> None:
        async with gateway.connections() as opened:
            await forwarded(opened, directory / "ended", "/x")
            (directory / "ended").unlink()
            await forwarded(opened, directory / "next", "/x")
            # The server closes its end when the other one is closed.
            await eventually(lambda: ended.accepted[0].fileno() == -1)

    with serving(directory / "ended") as ended, serving(directory / "next"):
        asyncio.run(scenario())


def test_an_unresponsive_program_is_a_bad_harnesserror_that_names_it(
    tmp_path: Path,
) -> None:
    reply = GatewayHarness(tmp_path / "gone").ask("POST", "/rpc", json={})

    assert reply.status_code == 502
    assert (
        reply.json()["errors"][0]["message"]
        == "agent-device does not respond: ConnectError"
    )


def test_commands_count_as_use_but_health_checks_do_not(
    harness: GatewayHarness,
) -> None:
    harness.ask("GET", "/health")
    harness.ask("GET", "/tools")
    assert harness.programs.last_activity is None

    harness.ask("POST", "/tools/describe")
    used = harness.programs.last_activity
    assert used is not None
    assert harness.programs.last_activity == used  # and nothing is under way any more


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_a_phone_is_a_web_browser_to_the_daemon(
    browser: GatewayHarness, platform: str
) -> None:
    got = browser.rpc(
        "snapshot", platform=platform, target="mobile", snapshotInteractiveOnly=True
    )

    assert got["flags"] == {"platform": "web", "snapshotInteractiveOnly": True}


def test_steps_of_a_batch_are_translated_too(browser: GatewayHarness) -> None:
    steps = [
        {"command": "snapshot", "flags": {"platform": "ios"}},
        {"platform": ["ios"]},
        "ios",
    ]

    got = browser.rpc("batch", batchSteps=steps)

    assert got["flags"]["batchSteps"] == [
        {"command": "snapshot", "flags": {"platform": "web"}},
        *steps[1:],
    ]


def test_an_app_is_launched_and_the_daemon_gets_its_url(
    browser: GatewayHarness,
) -> None:
    got = browser.rpc("open", "com.example.notes", launchArgs=["-x", "1"])

    assert done(browser) == [("launch", "com.example.notes", "-x", "1")]
    assert (got["positionals"], got["flags"]) == ([SHOWN], {"platform": "web"})


def test_a_relaunched_app_is_terminated_first(browser: GatewayHarness) -> None:
    got = browser.rpc("open", "com.example.notes", "notes://list", relaunch=True)

    assert got["flags"] == {"platform": "web"}
    assert done(browser) == [
        ("terminate", "com.example.notes"),
        ("launch", "com.example.notes"),
        ("open_url", "notes://list", "com.example.notes"),
    ]


@pytest.mark.parametrize("url", ["notes://item/3", "https://example.com/"])
def test_a_url_is_opened_by_the_device(browser: GatewayHarness, url: str) -> None:
    assert browser.rpc("open", url)["positionals"] == [SHOWN]
    assert done(browser) == [("open_url", url, None)]


def test_the_device_clears_an_apps_state_instead_of_the_daemon(
    browser: GatewayHarness,
) -> None:
    answer = browser.rpc("settings", "clear-app-state", "com.example.notes")

    assert done(browser) == [("clear", "com.example.notes")]
    assert (answer["id"], answer["result"]["ok"]) == (7, True)


def test_a_push_message_is_refused_with_the_fix(browser: GatewayHarness) -> None:
    answer = browser.rpc("push", "com.example.notes", "{}")

    assert "in Appium sessions only" in answer["error"]["message"]
    assert done(browser) == []


def test_a_test_run_of_scripts_is_refused_with_the_fix(browser: GatewayHarness) -> None:
    answer = browser.rpc("test", "login.ad")

    assert "replay each one" in answer["error"]["message"]


def test_closing_an_app_terminates_it(browser: GatewayHarness) -> None:
    assert browser.rpc("close", "com.example.notes")["positionals"] == []
    assert done(browser) == [("terminate", "com.example.notes")]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("no-app", "no-app is not installed here"),
        ("broken:x", "no app here opens broken:"),
    ],
)
def test_a_refusal_by_the_device_has_the_daemons_form(
    browser: GatewayHarness, target: str, why: str
) -> None:
    error = browser.rpc("open", target)["error"]

    assert why in error["message"]
    assert error["data"]["code"] == "COMMAND_FAILED"


def test_without_the_token_the_request_is_forwarded_untranslated(
    browser: GatewayHarness,
) -> None:
    got = browser.rpc("open", "com.example.notes", token="wrong", platform="ios")

    assert done(browser) == []
    assert (got["positionals"], got["flags"]) == (
        ["com.example.notes"],
        {"platform": "ios"},
    )


@pytest.mark.parametrize(
    "body",
    [b"no json", b"[]", b'{"params": 1}', b'{"params": {"flags": 1}}', b"[" * 100_000],
)
def test_an_invalid_request_is_left_to_the_daemon(
    browser: GatewayHarness, body: bytes
) -> None:
    reply = browser.ask(
        "POST", "/rpc", content=body, headers={"Authorization": f"Bearer {TOKEN}"}
    )

    assert reply.json()["body"].encode() == body


def test_for_a_real_phone_nothing_is_translated(listener: Path) -> None:
    harness = GatewayHarness(listener, FakeDevice())

    got = harness.rpc("open", "com.example.notes", platform="ios")

    assert (got["positionals"], got["flags"]) == (
        ["com.example.notes"],
        {"platform": "ios"},
    )


@pytest.mark.parametrize("purpose", ["controllers", "appium"])
def test_a_web_page_is_refused_even_with_the_key(
    harness: GatewayHarness, purpose: Literal["controllers", "appium"]
) -> None:
    url = harness.keys.url(purpose, ID)

    assert (
        harness.ask(
            "POST", "/session", url=url, headers={"Origin": "https://page.example"}
        ).status_code
        == 403
    )
    assert harness.ask("POST", "/session", url=url).status_code == 200


def test_an_appium_client_understands_a_refusal(harness: GatewayHarness) -> None:
    reply = harness.ask("GET", url=f"{BASE}/appium/{ID}/wrong/session/1/source")

    assert reply.status_code == 404
    assert reply.json()["value"]["error"] == "invalid session id"


@pytest.mark.parametrize("capability", ["webSocketUrl", "appium:webSocketUrl"])
@pytest.mark.parametrize("part", ["alwaysMatch", "appium:options"])
def test_the_capability_for_webdriver_bidi_is_refused_on_every_device(
    harness: GatewayHarness, capability: str, part: str
) -> None:
    url = harness.keys.url("appium", ID)
    bodies = [
        {"capabilities": {part: {"platformName": "Android", capability: value}}}
        for value in (True, False)
    ]

    refused, passed = (
        harness.ask("POST", "/session", url=url, json=body) for body in bodies
    )

    assert refused.json()["value"]["error"] == "session not created"
    assert (
        "the capability webSocketUrl is refused: " in refused.json()["value"]["message"]
    )
    assert json.loads(passed.json()["body"]) == bodies[1]


_WITH_BIDI: Final = '{"capabilities": {"alwaysMatch": {"webSocketUrl": true}}}'


@pytest.mark.parametrize(
    ("path", "content", "content_type", "encoding"),
    [
        ("/Session/", _WITH_BIDI.encode(), "", ""),
        ("/session", gzip.compress(_WITH_BIDI.encode(), mtime=0), "", "gzip"),
        ("/session", _WITH_BIDI.encode("utf-16"), "charset=utf-16", ""),
        ("/session", _WITH_BIDI.replace("S", "+AFM-").encode(), "charset=utf-7", ""),
        (
            "/session",
            _WITH_BIDI.replace("}}}", ',"x":' + "9" * 5000 + "}}}").encode(),
            "",
            "",
        ),
        (
            "/session",
            _WITH_BIDI.replace(
                "}}}", ',"x":' + "[" * 99999 + "]" * 99999 + "}}}"
            ).encode(),
            "",
            "",
        ),
    ],
    ids=["path", "gzip", "utf-16", "utf-7", "number", "depth"],
)
def test_the_capability_for_webdriver_bidi_is_refused_in_any_form_that_appium_reads(
    harness: GatewayHarness, path: str, content: bytes, content_type: str, encoding: str
) -> None:
    headers = {"Content-Type": f"application/json; {content_type}".rstrip("; ")}
    if encoding:
        headers["Content-Encoding"] = encoding

    url = harness.keys.url("appium", ID)
    answer = harness.ask("POST", path, url=url, content=content, headers=headers)

    assert answer.json()["value"]["error"] == "session not created"


def test_the_key_of_a_daemon_does_not_open_appium(harness: GatewayHarness) -> None:
    key = harness.url.rpartition("/")[2]

    assert harness.ask("GET", url=f"{BASE}/appium/{ID}/{key}/status").status_code == 404


def test_a_dead_appium_is_a_lost_connection(tmp_path: Path) -> None:
    harness = GatewayHarness(tmp_path / "gone")

    with pytest.raises(ConnectionLostError):
        harness.ask("POST", "/session", url=harness.keys.url("appium", ID), json={})
