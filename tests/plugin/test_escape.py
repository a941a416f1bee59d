"""Foreign text reaches neither a terminal nor a CI log unescaped, whatever its source."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pytest_device import errors
from pytest_device.escape import escaped
from pytest_device.sessions.runs import OwnRun
from pytest_device.sessions.states import Phase
from pytest_device.testing import FaultyService
from tests.cli.running import call
from tests.sessions.reaper_clients import entry_of

HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J\r\n::error::owned\n  ::warning::\t##[error]x ##vso[task]\u202e\u2028\ud800"
UNSAFE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]|^[ \t]*::|##(\\[|vso)", re.MULTILINE
)
CONFTEST = """
import dataclasses, pytest
from pytest_device.sessions import events
from tests.plugin.test_escape import HOSTILE
from tests.sessions.test_events import EVENTS

@pytest.fixture
def device_wait_policy(device_wait_policy):
    return dataclasses.replace(device_wait_policy, controller_timeout_seconds=None)

@pytest.fixture
def terminal(request): return request.config.pluginmanager.get_plugin("device-terminal")

def hostile(event):
    names = [one.name for one in dataclasses.fields(event) if isinstance(getattr(event, one.name), str)]
    texts = {name: HOSTILE for name in names if name not in ("boot_key", "session_id")}
    if hasattr(event, "session"):
        texts["session"] = dataclasses.replace(event.session, label=HOSTILE, url=HOSTILE, session_id=f"{event}")
    return dataclasses.replace(event, **texts)
"""
SUITE = """
import pytest
from tests.plugin.test_escape import HOSTILE
from conftest import EVENTS, hostile

@pytest.mark.device(platform="ios", share="test")
def test_refused(device_session): pass

@pytest.mark.device(platform="android", share="test")
def test_shown(device_session, terminal):
    for event in map(hostile, EVENTS):
        terminal.show_event(event)
        terminal.event(event)
    terminal.announce(HOSTILE)

@pytest.mark.device(platform="android", type="appium", share="test", application_archive_url="https://builds.example")
def test_driven(device_driver): pass
"""


def unsafe(text: str) -> list[str]:
    """Return the unsafe parts of a text, with their surroundings."""
    return [
        f"{text[max(0, found.start() - 60) : found.end() + 20]!r}"
        for found in UNSAFE.finditer(text)
    ]


def test_text_from_services_and_controllers_is_escaped(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    plain = json.dumps({"errors": [{"message": HOSTILE}]})
    service.add_fault("create", "reply", status=400, body=plain)
    driver = {
        "value": {
            "error": "session not created",
            "message": HOSTILE,
            "stacktrace": HOSTILE,
        }
    }
    service.add_fault(
        "controller", "reply", status=500, body=json.dumps(driver), times=None
    )
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(SUITE)

    result = pytester.runpytest_subprocess("-v", "--device-no-reorder", "--color=no")

    assert result.parseoutcomes() == {"passed": 1, "errors": 2}
    assert unsafe(result.stdout.str() + result.stderr.str()) == []
    result.stdout.fnmatch_lines(["*did not start a driver: *x1b[[]31mred*"])


@pytest.mark.parametrize(
    "kind", [one for one in vars(errors).values() if isinstance(one, type)], ids=str
)
def test_the_message_of_every_error_is_escaped(kind: type[errors.DeviceError]) -> None:
    if not issubclass(kind, errors.DeviceError):
        return
    needed: dict[str, Any] = {"sent": False} if kind is errors.TransportError else {}
    needed |= {"session_id": "one"} if issubclass(kind, errors.SessionError) else {}
    needed |= {"verdict": "infrastructure"} if kind is errors.NotAttemptedError else {}
    needed |= {"status": 500} if issubclass(kind, errors.StatusError) else {}
    given: Any = (
        {"error": HOSTILE, "error_description": HOSTILE}
        if issubclass(kind, errors.ResponseError)
        else HOSTILE
    )

    assert unsafe(str(kind(given, **needed))) == []


def test_every_command_escapes_the_ledgers_text_and_file_names(
    service: FaultyService, tmp_path: Path
) -> None:
    run = OwnRun.join(tmp_path, uuid4().hex, "main")
    directory = Path(run.ledger.directory)
    for state in (Phase.LIVE, Phase.KEPT):
        run.ledger.write(
            entry_of(
                str(uuid4()),
                service,
                state=state,
                label=HOSTILE,
                name=HOSTILE,
                url=HOSTILE,
            )
        )
    name = HOSTILE.replace("/", "").encode(errors="replace").decode()
    (directory / f"{name}.json").write_text("{}")
    run.leave()
    environ = {
        "DEVICE_STATE_DIR": str(tmp_path),
        "DEVICE_URL": service.url,
        "DEVICE_TOKEN": service.token,
    }

    for arguments in (["sessions"], ["doctor"], ["stop"], ["sessions", "--json"]):
        result = call(*arguments, **environ)
        assert "owned" in result.stdout + result.stderr or arguments == ["doctor"]
        assert unsafe(result.stdout + result.stderr) == []


def test_escaped_text_is_readable_and_unchanged_by_escaping_again() -> None:
    text = escaped(f"line one\n\ttab and ünïcode\n{HOSTILE}")

    assert text.startswith(
        "line one\n\ttab and ünïcode\n\\x1b[31mred\\x1b]0;title\\x07 \\x9b2J\\r\n\\::error::owned\n"
    )
    assert escaped(text) == text
