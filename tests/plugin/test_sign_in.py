"""The fixtures that sign a test's user in."""

import pytest

CONFTEST = """
import pytest
from pytest_device.auth.provider import Client, User

@pytest.fixture(scope="session")
def device_service_settings():
    users = [User("ada", {"name": "Ada"}, password="analytical"), User("bob")]
    clients = [
        Client("app", ["myapp://redirect"]),
        Client("server", ["myapp://redirect"], secret="a client's secret"),
    ]
    return {"device_identity_provider": {"users": users, "clients": clients}}
"""


def test_tests_share_a_users_tokens_until_they_are_stale(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("""
        seen = {}

        def test_first(device_identity_provider):
            seen["ada"] = device_identity_provider.sign_in("ada")
            assert device_identity_provider.wait_for_sign_in("ada").user == "ada"

        def test_same(device_identity_provider):
            assert device_identity_provider.sign_in("ada") is seen["ada"]
            assert device_identity_provider.sign_in("bob").access_token != seen["ada"].access_token
            assert device_identity_provider.sign_in("ada", scopes=["openid"]) is not seen["ada"]

        def test_refreshed_once_expired(device_identity_provider):
            device_identity_provider.clock.advance(3601)
            fresh = device_identity_provider.sign_in("ada")
            assert fresh.refresh_token != seen["ada"].refresh_token
            assert device_identity_provider.tokens[-1].grant_type == "refresh_token"
            assert device_identity_provider.sign_in("ada") is fresh

        def test_signed_in_again_once_revoked(device_identity_provider):
            device_identity_provider.revoke_user("ada")
            assert device_identity_provider.sign_in("ada")
            assert device_identity_provider.tokens[-1].grant_type == "authorization_code"
    """)

    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=4)


def test_no_secret_reaches_a_report_or_a_file(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    secrets_file = tmp_path_factory.mktemp("secrets") / "secrets"
    monkeypatch.setenv("SECRETS", str(secrets_file))
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("tmp")))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("""
        import logging, os, pathlib
        import httpx
        from pytest_device import auth

        def test_fails(device_identity_provider):
            tokens = device_identity_provider.sign_in("ada")
            device_identity_provider.automatic_user = "ada"
            discovery = auth.fetch_discovery(device_identity_provider.issuer)
            app = {"client_id": "server", "redirect_uri": "myapp://redirect", "scopes": ["profile"]}
            request = auth.AuthRequest(app)
            result = request.prompt(discovery, browser=lambda url: httpx.get(url).headers["location"])
            code, verifier = result.params["code"], request.code_verifier
            exchange = {**app, "client_secret": "a client's secret", "code": code}
            theirs = auth.exchange_code({**exchange, "extra_params": {"code_verifier": verifier}}, discovery)
            secrets = [
                *(tokens.access_token, tokens.refresh_token, tokens.id_token, "a client's secret"),
                *(code, verifier, theirs.access_token, theirs.refresh_token),
            ]
            pathlib.Path(os.environ["SECRETS"]).write_text("\\n".join(secrets))
            print(secrets, result.url, auth.launch_arguments(theirs))
            logging.warning("opened %s", auth.link_with_tokens("myapp://in", theirs, part="query"))
            assert not secrets, f"https://app.example/{verifier}?x={secrets[0]}#{code}"
    """)

    result = pytester.runpytest_subprocess("--showlocals", "--junitxml=report.xml")

    result.assert_outcomes(failed=1)
    secrets = secrets_file.read_text().splitlines()
    assert len(secrets) == 8
    output = result.stdout.str()
    assert [secret for secret in secrets if secret in output] == []
    assert "***" in output
    files = {
        path: path.read_bytes() for path in pytester.path.rglob("*") if path.is_file()
    }
    assert b"***" in files[pytester.path / "report.xml"]
    # The source of the suite contains the secret that it chose.
    issued = [secret.encode() for secret in secrets if secret != "a client's secret"]
    assert [
        path
        for path, content in files.items()
        for secret in issued
        if secret in content
    ] == []


def test_an_unknown_argument_of_the_provider_is_named(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def device_service_settings():
            return {"device_identity_provider": {"client": "app"}}
    """)
    pytester.makepyfile(
        'def test_it(device_identity_provider): device_identity_provider.sign_in("ada")'
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    problem = "device_service_settings: device_identity_provider: unknown argument 'client': did you mean 'clients'?"
    result.stdout.fnmatch_lines([f"*{problem} *"])
