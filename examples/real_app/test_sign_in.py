"""Sign-in, with a provider that belongs to the test run."""

import pytest

from pytest_device.auth import link_with_tokens
from pytest_device.auth.provider import IdentityProvider

from .notes_app import NotesApp

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")


def test_a_user_signs_in(app: NotesApp, device_identity_provider: IdentityProvider) -> None:
    app.tap("sign-in")
    app.type("user", "ada")
    app.type("password", "analytical engine")
    app.tap("allow")

    app.wait_for("user", "Hello Ada Lovelace")
    assert device_identity_provider.wait_for_sign_in("ada").scopes == ("openid", "profile")


def test_a_user_denies(app: NotesApp) -> None:
    app.tap("sign-in")
    app.tap("deny")

    app.wait_for("user", "You denied the sign-in")


@pytest.fixture
def signed_in(app: NotesApp, device_identity_provider: IdentityProvider) -> NotesApp:
    """Start with a signed-in user, without the pages of the provider."""
    app.open(link_with_tokens("notes://redirect", device_identity_provider.sign_in("ada")))
    return app


def test_the_app_greets_its_user(signed_in: NotesApp) -> None:
    signed_in.wait_for("user", "Hello Ada Lovelace")


def test_an_expired_session_is_refreshed(signed_in: NotesApp, device_identity_provider: IdentityProvider) -> None:
    signed_in.wait_for("user", "Hello Ada Lovelace")

    device_identity_provider.clock.advance(3601)
    signed_in.restart()

    signed_in.wait_for("user", "Hello Ada Lovelace")
