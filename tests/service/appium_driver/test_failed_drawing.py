"""What the browser refuses: no driver starts, or a dialog is not drawn. Nothing waits for it, and nothing is left."""

from collections.abc import Generator
from pathlib import Path

import psutil
import pytest
from appium.webdriver import Remote
from selenium.common.exceptions import (
    SessionNotCreatedException,
    UnexpectedAlertPresentException,
    WebDriverException,
)

from pytest_device.local import LocalService
from pytest_device.spec import Platform
from tests.service.appium_driver.conftest import (
    WAIT_SECONDS,
    booted,
    driven,
    seen,
    with_own_driver,
)
from tests.service.appium_driver.test_permissions import (
    APP,
    CONFIRM,
    POSITION,
    ask,
    heard,
)
from tests.spec.phones.row import APP_ID
from tests.waiting import eventually

SELECT = "<select data-testid='ask'><option>red</option><option>green</option></select>"


@pytest.fixture(scope="module")
def own(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[tuple[LocalService, Path]]:
    with with_own_driver(tmp_path_factory.mktemp("source")) as own:
        yield own


@pytest.fixture(
    scope="module",
    params=[
        # The other one fails a line later, and leaves a page to be closed.
        pytest.param("openOverlay", marks=pytest.mark.nightly),
        "setDocumentContent",
    ],
)
def opened(
    request: pytest.FixtureRequest, own: tuple[LocalService, Path]
) -> Generator[Remote]:
    """Provide a driver that cannot draw: it opens no page for a dialog, or an empty one."""
    service, source = own
    dialogs = source / "dialogs.js"
    text = dialogs.read_text()
    assert text.count(request.param) == 1
    dialogs.write_text(text.replace(request.param, f"{request.param}X"))
    with (
        booted(service, Platform.ANDROID) as session,
        driven(session, {"app": str(APP), "appPackage": APP_ID}) as driver,
    ):
        driver.implicitly_wait(WAIT_SECONDS)
        driver.set_location(48.1, 11.5)
        yield driver

    dialogs.write_text(text)


def test_a_click_on_a_list_fails(opened: Remote) -> None:
    opened.get(f"table:///?page={SELECT}")
    with pytest.raises(WebDriverException, match="X"):
        seen(opened, "ask").click()
    assert seen(opened, "ask").text == "red"


def test_commands_name_the_open_alert(opened: Remote) -> None:
    ask(opened, CONFIRM)
    with pytest.raises(UnexpectedAlertPresentException, match="Sure"):
        seen(opened, "heard")
    opened.switch_to.alert.accept()
    assert seen(opened, "heard").text == "-true"


def test_a_permission_is_refused(opened: Remote) -> None:
    ask(opened, POSITION)
    assert heard(opened, "-no1")


def test_a_driver_that_cannot_connect_is_not_created_and_closes_its_connection(
    own: tuple[LocalService, Path],
) -> None:
    service, source = own
    browser = source / "browser.js"
    text = browser.read_text()
    assert text.count("Target.setAutoAttach") == 1
    browser.write_text(text.replace("Target.setAutoAttach", "Target.setAutoAttachX"))

    with booted(service, Platform.ANDROID) as session:
        before = connections_to_browsers()

        refused = "Target.setAutoAttachX"
        with (
            pytest.raises(SessionNotCreatedException, match=refused),
            driven(session, {"app": str(APP), "appPackage": APP_ID}),
        ):
            pass

        assert eventually(lambda: connections_to_browsers() <= before)

    browser.write_text(text)


def connections_to_browsers() -> set[tuple[str, int]]:
    """Return the own addresses of the connections to relays.

    A program that is isolated has its connections in the service.
    """
    processes = psutil.Process().children(recursive=True)
    programs = [process for process in processes if process.name().startswith("node")]
    relays = {
        process.environ().get("PYTEST_DEVICE_DEBUGGING_PORT") for process in programs
    }

    services = [process for process in processes if process.name().startswith("python")]
    return {
        (connection.laddr.ip, connection.laddr.port)
        for process in [*services, *programs]
        for connection in process.net_connections("tcp4")
        if connection.status == psutil.CONN_ESTABLISHED
        and str(connection.raddr.port) in relays
    }
