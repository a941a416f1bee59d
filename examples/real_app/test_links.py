"""Deep links: each route of the project opens its page."""

import pytest

from pytest_device import ConfigError
from pytest_device.app import Links, Project

from .notes_app import NotesApp

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")

PAGES = {"/": "Home", "/settings": "Settings", "/notes/[id]": "Note 7", "/redirect": "Home"}
"""The page of each route. A new route has to be added here."""


def test_each_route_opens_its_page(app: NotesApp, device_app: Project, device_link: Links) -> None:
    for route, parameters in device_app.routes.linkable.items():
        app.open(device_link(route, {parameter.name: "7" for parameter in parameters}))

        app.wait_for("page", PAGES[route.replace("/(tabs)", "") or "/"])


def test_a_link_opens_the_app_if_it_is_closed(app: NotesApp, device_link: Links) -> None:
    app.close()

    app.open(device_link("/notes/[id]", id="8"))

    app.wait_for("page", "Note 8")


def test_a_link_to_no_page_says_so(app: NotesApp) -> None:
    app.open("notes://trash")

    app.wait_for("page", "Not found")


def test_a_misspelled_route_needs_no_device_to_be_noticed(device_link: Links) -> None:
    with pytest.raises(ConfigError, match=r"did you mean '/notes/\[id\]'"):
        device_link("/note/[id]", id="7")
