"""The sign-in at a provider that the run does not control, through its page in a real browser."""

import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from pytest_device.auth.provider import Client, IdentityProvider, Lifetimes, User
from pytest_device.testing import FaultyService
from tests.app.rows import project_files, put
from tests.auth.pages import PASSWORD, Pages, serving
from tests.plugin.runs import ON_A_WORKER
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("installed_programs")

CONFTEST = """
import os
import pytest
from pytest_device.auth.provider import Client, User

@pytest.fixture(scope="session")
def device_identity_settings():
    return {
        "clients": [Client("app", ["myapp://redirect"])],
        "users": [User("ada"), User("bob", password=os.environ["BOB_PASSWORD"])],
    }
"""
ON_DEVICE = """
import pytest

@pytest.mark.device(platform="android", type="web-preview-only")
def test_it(device_session, device_sign_in):
    device_sign_in("ada")
"""


@pytest.fixture(scope="module")
def pages() -> Generator[Pages]:
    with serving() as running:
        yield running


@pytest.fixture
def lifetimes() -> Lifetimes:
    """Lifetimes of the provider's tokens; a test with others parametrizes it."""
    return Lifetimes()


@pytest.fixture
def staging(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, lifetimes: Lifetimes
) -> Generator[IdentityProvider]:
    """A provider of the team, which the environment of the run selects."""
    users = [User("ada", password=PASSWORD), User("bob", password="an adding machine")]
    client = Client("app", ["myapp://redirect"])
    with IdentityProvider(
        users=users, clients=[client], lifetimes=lifetimes
    ) as provider:
        select(monkeypatch, provider.issuer)
        pytester.makeconftest(CONFTEST)
        yield provider


def select(monkeypatch: pytest.MonkeyPatch, issuer: str) -> None:
    monkeypatch.setenv("DEVICE_IDENTITY_ISSUER", issuer)
    monkeypatch.setenv("DEVICE_IDENTITY_CLIENT_ID", "app")
    monkeypatch.setenv("DEVICE_IDENTITY_USER", "ada")
    monkeypatch.setenv("DEVICE_IDENTITY_PASSWORD", PASSWORD)
    monkeypatch.setenv("BOB_PASSWORD", "an adding machine")


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)


def test_workers_share_one_sign_in_of_each_user(
    pytester: pytest.Pytester, staging: IdentityProvider
) -> None:
    pytester.makepyfile("""
        import os, pathlib

        def test_it(device_sign_in):
            tokens = [device_sign_in(name) for name in ("ada", "bob", "ada")]
            assert tokens[0].id_token and tokens[0].access_token == tokens[2].access_token
            pathlib.Path(os.environ["PYTEST_XDIST_WORKER"]).write_text(tokens[1].access_token)
    """)

    run(pytester, "--tx=2*popen", "--dist=each").assert_outcomes(passed=2)

    assert sorted(one.user for one in staging.authorizations) == ["ada", "bob"]
    tokens = [pytester.path.joinpath(name).read_text() for name in ("gw0", "gw1")]
    assert tokens[0] == tokens[1]
    # The page, not the form alone: the provider was asked for it.
    assert [one.method for one in staging.requests if one.endpoint == "authorize"] == [
        *("GET", "POST", "GET", "POST")
    ]


def test_the_redirect_is_by_default_the_scheme_of_the_app(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(pytester.path / "app", project_files({"scheme": "acme"}))
    pytester.makeini("[pytest]\ndevice_app_root = app\n")
    pytester.makepyfile('def test_it(device_sign_in): assert device_sign_in("ada")')
    users = [User("ada", password=PASSWORD)]
    with IdentityProvider(
        users=users, clients=[Client("app", ["acme://redirect"])]
    ) as provider:
        select(monkeypatch, provider.issuer)

        run(pytester).assert_outcomes(passed=1)


# In the gate, `auth/test_sign_in_pages` has the error, and the test of a refused sign-in its verdict.
@pytest.mark.nightly
def test_a_client_that_the_provider_does_not_know_is_a_configuration_error(
    pytester: pytest.Pytester,
    staging: IdentityProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEVICE_IDENTITY_CLIENT_ID", "other")
    pytester.makepyfile('def test_it(device_sign_in): device_sign_in("ada")')

    result = run(pytester)

    result.stdout.fnmatch_lines(
        [
            f"*ConfigError: sign-in of 'ada' at {staging.issuer}: an error page with status 400: *Unknown client*"
        ]
    )


def test_a_user_without_an_account_is_a_configuration_error(
    pytester: pytest.Pytester, staging: IdentityProvider
) -> None:
    pytester.makepyfile('def test_it(device_sign_in): device_sign_in("adda")')

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*AuthConfigError: unknown user 'adda': did you mean 'ada'? (available: ada, bob)"
        ]
    )
    assert staging.requests == ()


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_refused_sign_in_costs_no_device_and_is_tried_once(
    pytester: pytest.Pytester,
    service: FaultyService,
    staging: IdentityProvider,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    monkeypatch.setenv("DEVICE_IDENTITY_PASSWORD", "a wrong engine")
    pytester.makepyfile(ON_DEVICE + "\ntest_again = test_it\n")

    result = run(pytester, *options)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            f"*config: sign-in of 'ada' at {staging.issuer}: the page did not accept the user name and password: *"
        ]
    )
    assert service.statuses() == []
    posts = [one for one in staging.requests if one.method == "POST"]
    assert len(posts) == 1
    assert "a wrong engine" not in result.stdout.str() + result.stderr.str()


# In the gate, the device that does not boot ahead has the captcha, and an issuer without metadata the other verdict.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "verdict"), [("captcha", "config"), ("broken", "infrastructure")]
)
def test_a_page_that_fails_costs_no_device(
    pytester: pytest.Pytester,
    service: FaultyService,
    pages: Pages,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    verdict: str,
) -> None:
    select(monkeypatch, f"{pages.url}/{kind}")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(ON_DEVICE)

    result = run(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [f"*{verdict}: sign-in of 'ada' at {pages.url}/{kind}: *"]
    )
    assert service.statuses() == []


@pytest.mark.parametrize(
    ("issuer", "line"),
    [
        ("/unknown", "config: * returned 404 (expected 200). The issuer must be *"),
        ("/captcha/", "config: * both must match exactly, including a trailing *"),
        ("/deployed", "infrastructure: *sign-in of 'ada' at * returned 503 *"),
    ],
    ids=["missing", "slash", "unavailable"],
)
def test_an_issuer_without_its_metadata_is_a_configuration_error(
    pytester: pytest.Pytester,
    service: FaultyService,
    pages: Pages,
    monkeypatch: pytest.MonkeyPatch,
    issuer: str,
    line: str,
) -> None:
    select(monkeypatch, f"{pages.url}{issuer}")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(ON_DEVICE)

    result = run(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{line}"])
    assert service.statuses() == []


def test_all_users_sign_in_before_the_first_device(
    pytester: pytest.Pytester, service: FaultyService, staging: IdentityProvider
) -> None:
    service.add_fault("create", "reply", status=400, body="{}", times=None)
    pytester.makepyfile(ON_DEVICE.replace("ada", "bob"))

    run(pytester).assert_outcomes(errors=1)

    assert [one.user for one in staging.authorizations] == ["ada", "bob"]


# Tests may use tokens for half of their lifetime: the refreshed ones until they are revoked.
@pytest.mark.parametrize("lifetimes", [Lifetimes(access_token=10)], ids=["short"])
def test_stale_tokens_are_refreshed_and_revoked_ones_renewed_on_the_page_if_a_test_asks_for_them(
    pytester: pytest.Pytester, service: FaultyService, staging: IdentityProvider
) -> None:
    pytester.makepyfile("""
        import os, pytest, time
        from pytest_device import auth

        pytestmark = pytest.mark.device(platform="android", type="web-preview-only")

        def changed(sign_in, before):
            deadline = time.monotonic() + 60
            while (tokens := sign_in("ada")) is before:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            return tokens

        def test_until_the_tokens_are_stale(device_session, device_sign_in):
            refreshed = changed(device_sign_in, device_sign_in("ada"))
            provider = auth.fetch_discovery(os.environ["DEVICE_IDENTITY_ISSUER"])
            auth.revoke({"token": refreshed.refresh_token, "client_id": "app"}, provider)
            changed(device_sign_in, refreshed)

        def test_next(device_session, device_sign_in): pass
    """)

    run(pytester).assert_outcomes(passed=2)

    users = [one.user for one in staging.tokens]
    assert users[:2] == ["ada", "bob"]
    assert set(users[2:]) == {"ada"}
    assert [one.grant_type for one in staging.tokens if one.user == "ada"][:3] == [
        "authorization_code",
        "refresh_token",
        "authorization_code",
    ]
    assert len(service.sessions()) == 2


def test_a_user_whom_no_test_asks_for_may_be_refused(
    pytester: pytest.Pytester,
    service: FaultyService,
    staging: IdentityProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BOB_PASSWORD", "a wrong machine")
    pytester.makepyfile(
        ON_DEVICE
        + "\n@pytest.mark.device(platform='android', type='web-preview-only')"
        + "\ndef test_bob(device_session, device_sign_in): device_sign_in('bob')\n"
    )

    result = run(pytester)

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*sign-in of 'bob' at *: the page did not accept *"])
    assert service.statuses() == ["stopped", "stopped"]
    posts = [one for one in staging.requests if one.method == "POST"]
    assert (
        len(posts) == 3
    )  # the form and the code of the first user, the form of the other


def test_a_device_does_not_boot_ahead_of_a_sign_in_that_may_fail(
    pytester: pytest.Pytester,
    service: FaultyService,
    pages: Pages,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    select(monkeypatch, f"{pages.url}/captcha")
    monkeypatch.setenv("DEVICE_PREFETCH", "3")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="ios", type="web-preview-only")
        def test_first(device_session): pass

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_next(device_session, device_sign_in): device_sign_in("ada")
    """)

    result = run(pytester, "--device-no-reorder")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [f"*config: sign-in of 'ada' at {pages.url}/captcha: *"]
    )
    assert service.statuses() == ["stopped"]


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_no_password_and_no_token_reaches_an_output_or_a_file(
    pytester: pytest.Pytester,
    staging: IdentityProvider,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("tmp")))
    pytester.makepyfile("""
        import logging, os

        def test_fails(device_sign_in, device_identity_settings):
            password = os.environ["DEVICE_IDENTITY_PASSWORD"]
            other = device_identity_settings["users"][1].password
            tokens = device_sign_in("ada")
            print(password, other, tokens.access_token, tokens.refresh_token, tokens.id_token)
            logging.warning("as %s with %s", password, tokens.access_token)
            assert not tokens.access_token, f"{password} {other}"
    """)

    result = run(
        pytester, "--showlocals", "--junitxml=report.xml", "--log-file=log", *options
    )

    result.assert_outcomes(failed=1)
    (issued,) = staging.tokens
    secrets = [
        *(PASSWORD, "an adding machine"),
        *(issued.access_token, issued.refresh_token, issued.id_token or ""),
    ]
    files = [
        path
        for path in pytester.path.rglob("*")
        if path.is_file() and path.name != "conftest.py" and path.suffix != ".pyc"
    ]
    texts = [path.read_bytes() for path in files]
    texts.append((result.stdout.str() + result.stderr.str()).encode())
    assert [one for one in secrets if any(one.encode() in text for text in texts)] == []
    assert b"***" in texts[-1]


@pytest.mark.parametrize(
    ("number", "options"),
    [
        pytest.param(signal.SIGKILL, [], id="killed", marks=pytest.mark.nightly),
        pytest.param(signal.SIGKILL, ["-n1"], id="coordinator killed"),
        pytest.param(signal.SIGINT, ["-n1"], id="interrupted"),
    ],
)
def test_a_run_that_ends_during_a_sign_in_leaves_no_browser(
    pytester: pytest.Pytester,
    pages: Pages,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    number: signal.Signals,
    options: list[str],
) -> None:
    pages.sent.clear()
    select(monkeypatch, f"{pages.url}/silent")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile('def test_it(device_sign_in): device_sign_in("ada")')

    output = pytester.path / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
            stdout=file,
            stderr=file,
        )
    try:
        assert eventually(lambda: bool(pages.sent))
        assert browsers(tmp_path)
        assert PASSWORD not in " ".join(map(" ".join, arguments()))
        process.send_signal(number)
        # Before the page is given up.
        assert eventually(lambda: process.poll() is not None, 40)
    finally:
        process.kill()
        process.wait()

    assert eventually(lambda: not browsers(tmp_path))
    assert eventually(lambda: not list(tmp_path.glob("pytest-device-*")))
    assert b"Traceback" not in output.read_bytes()


def browsers(directory: Path) -> list[list[str]]:
    """Return the arguments of the browsers with a profile below a directory."""
    return [words for words in arguments() if f"={directory}" in " ".join(words)]


def arguments() -> list[list[str]]:
    return [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
