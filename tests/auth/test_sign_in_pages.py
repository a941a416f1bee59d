"""The browser that signs users in on the pages of identity providers, a process of its own."""

import asyncio
import os
import re
import socket
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, closing
from pathlib import Path

import psutil
import pytest

import pytest_device.local_browser
from pytest_device.errors import ConfigError, UnexpectedReplyError
from pytest_device.local_browser import PAGE_SECONDS, complete_sign_in
from pytest_device.service.devices.browser import browsing
from pytest_device.service.programs.guard import Guard
from pytest_device.service.sign_in.__main__ import chromium
from pytest_device.service.sign_in.page import RefusedError, signed_in
from tests.auth.pages import PASSWORD, REDIRECT, RETURNED, USER, Pages, serving

SignIn = Callable[[str], str]
BOTH = {"login": USER, "secret": PASSWORD}


@pytest.fixture(scope="module")
def server() -> Generator[Pages]:
    with serving() as running:
        yield running


@pytest.fixture
def pages(server: Pages) -> Pages:
    server.sent.clear()
    return server


def sign_in(url: str) -> str:
    return complete_sign_in(url, REDIRECT, USER, PASSWORD)


@pytest.fixture(scope="module")
def signed_in_at(tmp_path_factory: pytest.TempPathFactory) -> Generator[SignIn]:
    """Sign in in one browser for all kinds of pages, each in a context of its own: its start takes most of the time."""
    guard = Guard(environ=os.environ, log=print)
    stack = AsyncExitStack()
    with closing(guard), asyncio.Runner() as runner:
        running = browsing(
            runner.run(chromium(guard)),
            size=(1280, 900),
            directory=tmp_path_factory.mktemp("browser"),
            environ=os.environ,
            guard=guard,
            log=print,
        )
        browser = runner.run(stack.enter_async_context(running))

        yield lambda url: runner.run(
            signed_in(
                browser.connection,
                url=url,
                redirect_uri=REDIRECT,
                user=USER,
                password=PASSWORD,
                limit_seconds=PAGE_SECONDS,
            )
        )
        runner.run(stack.aclose())


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("one_page", [BOTH]),
        ("two_pages", [{"login": USER}, {"secret": PASSWORD}]),
        ("password", [{"secret": PASSWORD}]),
        ("component", [{"user_name": USER}, {"secret": PASSWORD}]),
        ("decoys", [{"email": "", "username": "", **BOTH, "csrf": "token"}]),
        ("by_script", [BOTH]),
        ("unseen_captcha", [BOTH]),
        ("restless", [BOTH]),
        ("slow", [BOTH]),
    ],
)
def test_a_user_is_signed_in_on_forms_of_every_kind(
    pages: Pages, signed_in_at: SignIn, kind: str, sent: list[dict[str, str]]
) -> None:
    assert signed_in_at(f"{pages.url}/{kind}") == RETURNED
    assert pages.sent == sent


def test_a_provider_that_refuses_at_once_redirects_with_its_error(pages: Pages) -> None:
    assert sign_in(f"{pages.url}/denied") == f"{REDIRECT}?error=access_denied"


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (
            "wrong_password",
            (
                "the page did not accept the user name and password: URL/refuse shows "
                "'Log in: That did not work, ada@example.com.'"
            ),
        ),
        ("wrong_user", "the page did not accept the user name: URL/refuse_user shows "),
        (
            "captcha",
            "the page shows a captcha: turn it off for tests at the provider. URL/captcha shows 'Just a moment: ",
        ),
        ("captcha_after", "the page shows a captcha: turn it off for tests at the "),
        (
            "second_factor",
            "the page asks for a one-time code (a second factor): use a user without one. ",
        ),
        (
            "consent",
            "after the password, the page asks for a decision ('Allow', 'Deny'), such as consent: make it once by hand",
        ),
        (
            "over_http",
            "the form at URL/over_http is not sent over https: the password was not typed",
        ),
        (
            "nothing",
            "no sign-in form on the page, and no redirect. URL/nothing shows 'Welcome: ",
        ),
        (
            "rejected",
            "an error page with status 400: URL/rejected shows 'Error: invalid redirect_uri'",
        ),
    ],
)
def test_a_page_that_refuses_is_an_error_of_one_line(
    pages: Pages, signed_in_at: SignIn, kind: str, problem: str
) -> None:
    with pytest.raises(RefusedError) as error:
        signed_in_at(f"{pages.url}/{kind}")

    text = str(error.value)
    assert text.startswith(problem.replace("URL", pages.url))
    assert "\n" not in text
    assert PASSWORD not in text
    # Once: more attempts could lock the account.
    assert len(pages.sent) <= 1


def test_a_page_that_refuses_is_a_configuration_error(pages: Pages) -> None:
    with pytest.raises(
        ConfigError, match="the page did not accept the user name and password: "
    ):
        sign_in(f"{pages.url}/wrong_password")


def test_a_provider_that_fails_is_no_configuration_error(pages: Pages) -> None:
    with pytest.raises(
        UnexpectedReplyError, match=r"an error page with status 503: .*memory"
    ):
        sign_in(f"{pages.url}/broken")


def test_a_provider_that_does_not_answer_is_given_up(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest_device.local_browser, "PAGE_SECONDS", 2.0)

    with pytest.raises(
        UnexpectedReplyError, match=f"no redirect to {REDIRECT} within 2 s: "
    ):
        sign_in(f"{pages.url}/silent")


def test_a_page_that_can_not_be_loaded_is_no_configuration_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    with pytest.raises(
        UnexpectedReplyError, match="can't be loaded: net::ERR_CONNECTION_REFUSED"
    ):
        sign_in(f"http://127.0.0.1:{port}/")


def test_the_browser_leaves_no_process_and_no_file(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # Services that other tests share may still be running.
    before = own_processes()

    sign_in(f"{pages.url}/one_page")

    assert list(tmp_path.iterdir()) == []
    assert own_processes() - before == set()


def own_processes() -> set[int]:
    """Return the browsers and the programs of this package that this process has started."""
    return {
        child.pid
        for child in psutil.Process(os.getpid()).children(recursive=True)
        if re.search("chrom|pytest_device", " ".join(child.cmdline()))
    }
