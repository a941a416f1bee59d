"""The tests of the suite, unchanged by the migration: they use the fixture ``driver`` and no marker."""

from appium.webdriver.webdriver import WebDriver
from pages import SignInPage


def test_signs_in(sign_in_page: SignInPage) -> None:
    assert sign_in_page.sign_in("ada", "correct horse") == "Welcome back"


def test_starts_afresh(sign_in_page: SignInPage) -> None:
    assert sign_in_page.name() == ""


def test_offers_no_recovery_yet(sign_in_page: SignInPage) -> None:
    assert not sign_in_page.offers_recovery()


def test_is_held_upright(driver: WebDriver) -> None:
    assert driver.orientation == "PORTRAIT"
