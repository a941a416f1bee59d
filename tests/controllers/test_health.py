"""Health checks of controllers: the request, the responses that count as alive, and time limits."""

import base64
import gzip
import json
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from pytest_device.controllers.health import problem_of
from pytest_device.sessions.models import Session
from tests.contract.document import example_session
from tests.controllers.servers import TOKEN, session_at
from tests.fakes.http_server import Answer, ScriptedServer, says

READY = says({"value": {"ready": True}})
HTML = Answer(502, b"<html>Bad gateway</html>", {"Content-Type": "text/html"})


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("base", ["", "/", "/wd/hub", "/wd/hub/"])
@pytest.mark.parametrize(
    ("session_type", "path", "access", "reply"),
    [
        ("appium", "/status", None, {"value": {"ready": True, "message": "hello"}}),
        ("appium", "/status", None, {"value": {"build": {"version": "3"}}}),
        ("agent-device", "/health", None, {"ok": True, "service": "daemon"}),
        ("argent", "/tools", f"Bearer {TOKEN}", {"tools": []}),
    ],
)
def test_a_living_controller_has_no_problem(
    controller: ScriptedServer,
    base: str,
    session_type: str,
    path: str,
    access: str | None,
    reply: object,
) -> None:
    controller.answer = lambda _call: says(reply)

    assert problem_of(session_at(controller.url + base, session_type)) is None
    assert controller.asked == [(base.rstrip("/") + path, access)]


def test_a_compressed_response_is_decompressed(controller: ScriptedServer) -> None:
    controller.answer = lambda _call: Answer(
        200, gzip.compress(READY.body), {"Content-Encoding": "gzip"}
    )

    assert problem_of(session_at(controller.url, "appium")) is None


def test_an_argent_server_without_a_token_is_checked_without_one(
    controller: ScriptedServer,
) -> None:
    assert problem_of(session_at(controller.url, "argent", toolsAuthToken=None)) is None
    assert controller.asked == [("/tools", None)]


@pytest.mark.parametrize(
    "session",
    [
        session_at("http://127.0.0.1:9", "web-preview-only"),
        session_at("http://127.0.0.1:9", "quantum-device"),
        Session.from_wire(
            example_session(type="appium", status="stopped", remoteConfig=None)
        ),
    ],
    ids=lambda session: session.type,
)
def test_without_a_controller_nothing_is_checked(session: Session) -> None:
    assert problem_of(session) is None


@pytest.mark.parametrize(
    ("session_type", "answer", "problem"),
    [
        ("appium", HTML, "its Appium server returned status 502"),
        (
            "appium",
            Answer(200, HTML.body),
            "its Appium server returned something other than JSON",
        ),
        (
            "appium",
            Answer(200, b"\xff\xfe\xff"),
            "its Appium server returned something other than JSON",
        ),
        (
            "appium",
            Answer(200, b"[" * 100_000),
            "its Appium server returned something other than JSON",
        ),
        (
            "appium",
            Answer(302, headers={"Location": "http://127.0.0.1:9/"}),
            "its Appium server sent a redirect (status 302)",
        ),
        (
            "appium",
            says({"value": {"ready": False}}),
            "its Appium server responds, but does not report that it is ready",
        ),
        (
            "appium",
            says({"value": None}),
            "its Appium server responds, but does not report that it is ready",
        ),
        (
            "appium",
            says([]),
            "its Appium server responds, but does not report that it is ready",
        ),
        (
            "appium",
            Answer(200, gzip.compress(READY.body)[:-9], {"Content-Encoding": "gzip"}),
            "its Appium server returned something other than JSON",
        ),
        (
            "agent-device",
            says({"ok": "yes"}),
            "its agent-device daemon responds, but does not report that it is ready",
        ),
        (
            "agent-device",
            says([True]),
            "its agent-device daemon responds, but does not report that it is ready",
        ),
        (
            "argent",
            says({"error": "no"}, 401),
            "its argent tool server rejected the session's credentials (status 401)",
        ),
    ],
)
def test_any_other_response_is_a_problem(
    controller: ScriptedServer, session_type: str, answer: Answer, problem: str
) -> None:
    controller.answer = lambda _call: answer

    assert problem_of(session_at(controller.url, session_type)) == problem
    assert len(controller.asked) == 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer(rest=b" " * 65536), "returned more than 1048576 bytes"),
        (Answer(rest=b" ", pause=0.02), "does not respond within 0.5 s"),
        (
            Answer(headers={"Content-Length": "100"}, rest=b" ", pause=60),
            "does not respond within 0.5 s",
        ),
    ],
    ids=["endless", "trickling", "silent"],
)
def test_an_endless_response_times_out(
    controller: ScriptedServer, answer: Answer, problem: str
) -> None:
    controller.answer = lambda _call: answer
    seconds = 60 if answer.pause == 0 else 0.5

    assert (
        problem_of(session_at(controller.url), timeout_seconds=seconds)
        == f"its Appium server {problem}"
    )


def test_credentials_in_the_url_are_sent_and_not_logged(
    controller: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    controller.answer = lambda _call: READY

    assert (
        problem_of(
            session_at(controller.url.replace("://", "://ada%40home:p%3Assword@"))
        )
        is None
    )

    assert controller.asked == [
        ("/status", f"Basic {base64.b64encode(b'ada@home:p:ssword').decode()}")
    ]
    assert "ssword" not in caplog.text


def test_no_proxy_is_used_for_a_controller_on_this_machine(
    controller: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    controller.answer = lambda _call: READY

    assert problem_of(session_at(controller.url)) is None


Dial = Callable[[socket.socket], None]


@pytest.fixture
def listener() -> "Callable[[list[Dial]], str]":
    """Handle connections in turn; return the URL."""

    def listen(acts: list[Dial]) -> str:
        server = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            with server:
                for act in acts:
                    with server.accept()[0] as dialled:
                        act(dialled)

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    return listen


def _hang_up(dialled: socket.socket) -> None:
    dialled.recv(4096)


def _answer(dialled: socket.socket) -> None:
    dialled.recv(4096)
    body = json.dumps({"value": {}}).encode()
    dialled.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )


def _speak_no_http(dialled: socket.socket) -> None:
    dialled.recv(4096)
    dialled.sendall(b"SSH-2.0 open-sesame-open\r\n\r\n")


def test_after_a_broken_connection_the_check_is_retried_once(
    listener: Callable[[list[Dial]], str],
) -> None:
    assert problem_of(session_at(listener([_hang_up, _answer]))) is None


@pytest.mark.parametrize("act", [_hang_up, _speak_no_http])
def test_after_two_broken_connections_the_check_fails(
    listener: Callable[[list[Dial]], str], act: Dial
) -> None:
    problem = problem_of(session_at(listener([act, act, _answer])))

    assert (
        problem
        == "its Appium server does not respond: the connection was cut, or it does not speak HTTP"
    )


def test_a_controller_with_an_untrusted_certificate_is_a_problem(
    controller: ScriptedServer,
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("secret-host.example.com").configure_cert(context)
    controller.socket = context.wrap_socket(controller.socket, server_side=True)

    problem = problem_of(session_at(controller.url.replace("http:", "https:")))

    assert (
        problem == "its Appium server does not respond: TLS, certificate verify failed"
    )


@pytest.mark.parametrize("session_type", ["appium", "agent-device", "argent"])
def test_the_certificate_variables_apply_to_a_controller_on_this_machine(
    controller: ScriptedServer,
    session_type: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller.use_own_tls(tmp_path / "ca.pem")
    controller.answer = lambda _call: says({"ok": True, "value": {"ready": True}})
    assert problem_of(session_at(controller.url, session_type)) is not None
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    assert problem_of(session_at(controller.url, session_type)) is None


@pytest.mark.parametrize("session_type", ["appium", "agent-device", "argent"])
@pytest.mark.parametrize(
    "url",
    [
        "https://secret-host.invalid/base",
        "ftp://secret-host.invalid",
        "https://[secret-host",
        "https://secret-host.invalid:port",
        "secret-host",
        "https://secret-host\x00.invalid",
    ],
)
def test_an_unreachable_url_is_a_problem_that_does_not_show_it(
    session_type: str, url: str
) -> None:
    problem = problem_of(session_at(url, session_type))

    assert problem is not None
    assert "secret-host" not in problem


@pytest.mark.parametrize("token", ["open\nsesame", "öffne-dich", "open\x00sesame"])
def test_a_token_that_cannot_be_sent_is_a_problem_that_does_not_show_it(
    controller: ScriptedServer, token: str
) -> None:
    problem = problem_of(session_at(controller.url, "argent", toolsAuthToken=token))

    assert problem is not None
    assert not any(part in problem for part in ("open", "sesame", "öffne"))


def test_a_proxy_that_cannot_be_used_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://ada:password@127.0.0.1:9")

    assert (
        problem_of(session_at("https://secret-host.invalid"))
        == "its Appium server cannot be checked: ValueError"
    )


@pytest.mark.nightly
def test_a_real_appium_is_alive_until_it_is_killed(
    appium: Session, kill_appium: Callable[[], None]
) -> None:
    assert problem_of(appium) is None

    kill_appium()

    # The service cuts the connection, and returns 404 once it has noticed the exit.
    assert problem_of(appium) in (
        "its Appium server does not respond: the connection was cut, or it does not speak HTTP",
        "its Appium server returned status 404",
    )
