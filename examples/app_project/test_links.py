"""Links of an app, by the names of its routes: a misspelt one fails here, not on a device."""

import pytest

from pytest_device import ConfigError
from pytest_device.app import Links, Project

VALUES = {"id": "7", "rest": ["guide", "start"]}


def test_a_note_has_a_link(device_link: Links) -> None:
    assert device_link("/notes/[id]", id="7") == "notes://notes/7"


def test_each_route_opens_itself(device_app: Project, device_link: Links) -> None:
    for route, parameters in device_app.routes.linkable.items():
        link = device_link(route, {one.name: VALUES[one.name] for one in parameters})
        match = device_app.routes.match(link)
        assert match
        assert match.route == route.replace("/(tabs)", "")


def test_a_wrong_link_names_the_right_one(device_link: Links) -> None:
    with pytest.raises(ConfigError, match=r"did you mean '/notes/\[id\]'"):
        device_link("/note/[id]", id="7")
