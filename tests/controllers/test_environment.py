"""Variables for the controllers' own tools: their names, and that no value is shown."""

import json
import os
import pprint
import subprocess
import sys

import pytest

from pytest_device.controllers.environment import environment_of
from pytest_device.errors import ControllerError
from pytest_device.sessions.models import Session
from tests.contract.document import example_session
from tests.controllers.servers import TOKEN, session_at

URL = "https://secret-host.example.com/base"


@pytest.mark.parametrize(
    ("session", "variables"),
    [
        (
            session_at(URL, "agent-device"),
            {
                "AGENT_DEVICE_DAEMON_BASE_URL": URL,
                "AGENT_DEVICE_DAEMON_AUTH_TOKEN": TOKEN,
                "AGENT_DEVICE_PLATFORM": "android",
                "AGENT_DEVICE_NO_UPDATE_NOTIFIER": "1",
            },
        ),
        (
            session_at(URL, "argent"),
            {"ARGENT_TOOLS_URL": URL, "ARGENT_AUTH_TOKEN": TOKEN},
        ),
        (session_at(URL, "argent", toolsAuthToken=None), {"ARGENT_TOOLS_URL": URL}),
        (
            session_at(URL),
            {"APPIUM_URL": URL, "APPIUM_CAPS": '{"platformName": "Fake"}'},
        ),
    ],
    ids=["agent-device", "argent", "argent without a token", "appium"],
)
def test_each_type_has_the_variables_of_its_tools(
    session: Session, variables: dict[str, str]
) -> None:
    assert dict(environment_of(session)) == variables


@pytest.mark.parametrize(
    "session",
    [
        session_at(URL, "web-preview-only"),
        session_at(URL, "quantum-device"),
        Session.from_wire(
            example_session(type="appium", status="stopped", remoteConfig=None)
        ),
    ],
    ids=lambda session: session.type,
)
def test_a_session_without_a_controller_has_no_variables(session: Session) -> None:
    with pytest.raises(
        ControllerError,
        match=f"of type {session.type}, {session.status}, has no controller",
    ):
        environment_of(session)


@pytest.mark.parametrize(
    "show",
    [str, repr, "{}".format, "%s".__mod__, pprint.pformat, lambda it: f"{[it]!r}"],
)
def test_names_are_shown_and_values_are_not(show: object) -> None:
    assert callable(show)
    shown = show(environment_of(session_at(URL, "argent")))

    assert "ARGENT_TOOLS_URL" in shown
    assert "ARGENT_AUTH_TOKEN" in shown
    assert "secret-host" not in shown
    assert TOKEN not in shown


def test_a_subprocess_gets_the_values() -> None:
    program = [sys.executable, "-c", "import os; print(os.environ['APPIUM_CAPS'])"]

    printed = subprocess.check_output(
        program, env={**os.environ, **environment_of(session_at(URL))}, text=True
    )

    assert json.loads(printed) == {"platformName": "Fake"}
