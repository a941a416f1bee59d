"""The local drivers answer as the public drivers of phones do: one test per row of tests/spec/phones."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from appium.webdriver import Remote
from selenium.common.exceptions import WebDriverException

import tests.spec.phones
from pytest_device.sessions.models import Session
from pytest_device.spec import Platform
from tests.service.appium_driver.conftest import driven
from tests.spec.phones import ROWS
from tests.spec.phones.row import ANDROID, APP_ID, IOS, Error, Row

APP: Final = Path(tests.spec.phones.__file__).parent / "app"
DOCUMENT: Final = Path(__file__).parents[3] / "docs/local-appium.md"


def rows_of(platform: Platform) -> list[object]:
    return [pytest.param(row, id=row.name) for row in ROWS if platform in row.platforms]


@pytest.fixture(scope="module")
def phone_with_app(android: Session) -> Generator[Remote]:
    with driven(android, {"app": str(APP), "appium:appPackage": APP_ID}) as driver:
        yield driver
        # Other modules share the device, where a link needs the only app.
        driver.remove_app(APP_ID)


@pytest.fixture(scope="module")
def iphone_with_app(ios: Session) -> Generator[Remote]:
    with driven(ios, {"app": str(APP), "appium:bundleId": APP_ID}) as driver:
        yield driver
        driver.remove_app(APP_ID)


@pytest.mark.parametrize("row", rows_of(ANDROID))
def test_an_android_row_holds(phone_with_app: Remote, row: Row) -> None:
    check(phone_with_app, row)


@pytest.mark.parametrize("row", rows_of(IOS))
def test_an_ios_row_holds(iphone_with_app: Remote, row: Row) -> None:
    check(iphone_with_app, row)


def check(driver: Remote, row: Row) -> None:
    # Each request costs more CPU time than the rule: the link also brings the app to the front.
    named = "bundleId" if driver.capabilities["platformName"] == "iOS" else "package"
    link = {"url": f"table:///?page={quote(row.page)}", named: APP_ID}
    driver.execute_script("mobile: deepLink", link)

    with settings_of(driver, row):
        answer = answer_of(driver, row)

    if isinstance(row.expected, Error):
        assert isinstance(answer, row.expected.kind), (row.rule, answer)
        assert re.search(row.expected.message, str(answer.msg)), row.rule
    else:
        assert answer == row.expected, (row.rule, str(row.source))


@contextmanager
def settings_of(driver: Remote, row: Row) -> Generator[None]:
    """Change Appium's settings during the example, if the row names any."""
    if not row.settings:
        yield
        return

    before = driver.get_settings()
    driver.update_settings(dict(row.settings))
    try:
        yield
    finally:
        driver.update_settings({name: before.get(name) for name, _ in row.settings})


def answer_of(driver: Remote, row: Row) -> object:
    try:
        return row.example(driver)
    except WebDriverException as error:
        return error


def test_names_of_rows_are_unique_on_their_platform() -> None:
    names = [(platform, row.name) for row in ROWS for platform in row.platforms]
    assert len(set(names)) == len(names)


def test_the_document_lists_each_difference_and_no_other() -> None:
    _, _, section = DOCUMENT.read_text().partition("\n## Differences from a phone\n")
    section, _, _ = section.partition("\n## ")
    listed = re.findall(r"^\| (.+?) \| .+ \|$", section, re.MULTILINE)
    differences = [row.difference for row in ROWS if row.difference]
    assert set(listed) - {"on a phone", "---"} == set(differences)
