"""Evidence of a failed test: screenshot and page source, as far as they are available."""

import json
import logging
from collections.abc import Callable

import pytest

from pytest_device.controllers.appium.connection import COMMAND_SECONDS, DriverPolicy
from pytest_device.controllers.appium.drivers import driver
from pytest_device.controllers.appium.evidence import (
    EVIDENCE_SECONDS,
    LOG_LINES,
    evidence_of,
)
from pytest_device.controllers.evidence import evidence_on
from pytest_device.sessions.models import Session
from pytest_device.testing import FakeClock
from tests.controllers.appium_servers import appium, received, refuses, session_on
from tests.controllers.daemons import done
from tests.controllers.servers import session_at
from tests.fakes.http_server import Answer, ScriptedServer, says
from tests.waiting import eventually

PNG = "iVBORw0KGgo="


def test_a_real_appium_provides_screenshot_source_and_details(appium: Session) -> None:
    with driver(appium, {}) as driven:
        evidence = dict(evidence_of(driven))

    assert list(evidence) == ["screenshot.png", "source.xml", "app.json"]
    assert evidence["screenshot.png"].startswith(b"\x89PNG")
    assert b"<app" in evidence["source.xml"]
    assert json.loads(evidence["app.json"]) == {
        "context": "NATIVE_APP",
        "orientation": "PORTRAIT",
    }


def test_a_killed_appium_provides_no_evidence_and_that_is_reported(
    appium: Session, kill_appium: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    with driver(appium, {}) as driven:
        kill_appium()

        assert list(evidence_of(driven)) == []

        logged = [
            record.getMessage()
            for record in caplog.records
            if record.name == "pytest_device"
        ]
        assert [message.partition(":")[0] for message in logged] == [
            "no screenshot.png of the device"
        ]


@pytest.mark.parametrize(
    "answer",
    [
        says(
            {
                "value": {
                    "error": "unknown error",
                    "message": "no",
                    "stacktrace": "at\nlines",
                }
            },
            500,
        ),
        says({"value": {"error": "invalid session id", "message": "gone"}}, 404),
        says({"value": None}),
        says({"value": 7}),
        says({"value": {}}),
        says({"value": "no picture"}),
        says({"value": "bm8gcGljdHVyZQ=="}),
        says([]),
        says(None),
        Answer(502, b"<html>Bad gateway</html>"),
        Answer(200, b"\xff\xfe"),
        Answer(200, b"[" * 100_000),
    ],
)
def test_an_invalid_screenshot_does_not_prevent_the_source(
    controller: ScriptedServer, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    controller.answer = appium(screenshot=answer, source=says({"value": "<app/>"}))

    with driver(session_at(controller.url), {}) as driven:
        assert list(evidence_of(driven)) == [("source.xml", b"<app/>")]

    assert [
        record.levelname for record in caplog.records if record.name == "pytest_device"
    ] == ["WARNING"]


@pytest.mark.parametrize(
    "answer",
    [says({"value": None}), says({"value": 7}), says([]), Answer(200, b"\xff\xfe")],
)
def test_an_invalid_source_does_not_prevent_the_screenshot(
    controller: ScriptedServer, answer: Answer
) -> None:
    controller.answer = appium(screenshot=says({"value": PNG}), source=answer)

    with driver(session_at(controller.url), {}) as driven:
        assert [name for name, _content in evidence_of(driven)] == ["screenshot.png"]


def test_evidence_has_its_own_limit_and_the_tests_commands_keep_theirs(
    controller: ScriptedServer,
) -> None:
    limits: list[tuple[str, object]] = []
    controller.answer = appium()
    with driver(session_at(controller.url), {}) as driven:
        config = driven.command_executor.client_config

        def answer(call: str) -> Answer:
            limits.append((call.rpartition("/")[2], config.timeout))
            return says({"value": PNG})

        controller.answer = answer
        for _name, _content in evidence_of(driven, clock=FakeClock()):
            assert driven.page_source == PNG

    assert limits[:4] == [
        ("screenshot", EVIDENCE_SECONDS),
        ("source", COMMAND_SECONDS),
        ("source", EVIDENCE_SECONDS),
        ("source", COMMAND_SECONDS),
    ]


def test_all_evidence_together_has_a_limit_too(controller: ScriptedServer) -> None:
    clock, limits = FakeClock(), list[object]()
    controller.answer = appium()
    with driver(session_at(controller.url), {}) as driven:
        config = driven.command_executor.client_config

        def answer(_call: str) -> Answer:
            limits.append(config.timeout)
            clock.sleep(EVIDENCE_SECONDS)
            return refuses("timeout", "too slow")

        controller.answer = answer
        assert list(evidence_of(driven, clock=clock)) == []

    # The last three ask for one piece; then the quit.
    assert limits[:-1] == [
        20.0,
        20.0,
        5.0,
        5.0,
        5.0,
    ]


def test_a_slow_screenshot_does_not_prevent_the_rest(
    controller: ScriptedServer,
) -> None:
    controller.answer = appium(
        screenshot=Answer(rest=b" ", pause=60), source=says({"value": "<app/>"})
    )

    # Its start has a limit of its own.
    options = {"appium:wdaLaunchTimeout": 100}
    policy = DriverPolicy(timeout_seconds=0.2)

    def names() -> list[str]:
        with driver(session_at(controller.url), options, policy=policy) as driven:
            return [name for name, _content in evidence_of(driven)]

    # On a busy machine, the source may take too long as well.
    assert eventually(lambda: names() == ["source.xml"])


def test_an_android_device_provides_its_last_log_lines_and_the_apps_activity(
    controller: ScriptedServer,
) -> None:
    lines = [
        {"timestamp": 0, "level": "ALL", "message": f"line {number}"}
        for number in range(600)
    ]
    controller.answer = appium(
        {"platformName": "Android"},
        types=says({"value": ["server", "logcat", "browser"]}),
        log=says(
            {"value": [*lines, {"timestamp": 1e99, "message": "two\nlines"}, "bare"]}
        ),
        context=says({"value": "NATIVE_APP"}),
        orientation=refuses("unknown command", "no", 404),
        sync=says({"value": "com.example.notes"}),
    )

    with driver(session_on(controller), {}) as driven:
        evidence = dict(evidence_of(driven))

    logged = evidence["logcat.txt"].decode().splitlines()
    assert list(evidence) == ["app.json", "logcat.txt", "browser.txt"]
    assert len(logged) == LOG_LINES == 500
    assert logged[-4:] == [
        "1970-01-01T00:00:00.000+00:00 ALL line 599",
        "two",
        "lines",
        "bare",
    ]
    assert json.loads(evidence["app.json"]) == {
        "context": "NATIVE_APP",
        "time": "com.example.notes",
        "package": "com.example.notes",
        "activity": "com.example.notes",
    }
    assert received(controller, "/log") == [{"type": "logcat"}, {"type": "browser"}]


@pytest.mark.parametrize(
    "answer",
    [refuses("unknown command", "no", 404), says({"value": None}), says({"value": 7})],
)
def test_a_driver_without_logs_causes_no_warning(
    controller: ScriptedServer, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    controller.answer = appium(
        types=answer, source=says({"value": "<app/>"}), screenshot=says({"value": PNG})
    )

    with driver(session_on(controller), {}) as driven:
        assert [name for name, _content in evidence_of(driven)] == [
            "screenshot.png",
            "source.xml",
        ]

    assert caplog.messages == []


def test_a_warning_about_missing_evidence_has_one_line(
    controller: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pytest_device")
    controller.answer = appium(
        screenshot=says(
            {"value": {"error": "e", "message": "no", "stacktrace": "at\nlines"}}, 500
        )
    )

    with driver(session_at(controller.url), {}) as driven:
        list(evidence_of(driven))

    assert "no screenshot.png of the device: Message: no" in caplog.messages


def test_a_hanging_controller_costs_the_time_that_is_left_and_leaves_a_line(
    controller: ScriptedServer,
) -> None:
    controller.answer = lambda _call: Answer(rest=b" ", pause=60)
    missing: list[str] = []

    for kind in ("agent-device", "argent"):
        session = session_at(controller.url, kind)
        pieces = list(evidence_on(session, {}, seconds=0.3, missing=missing.append))
        assert pieces == []

    assert [line.partition(":")[0] for line in missing] == [
        "no screenshot.png of the device",
        "no screenshot.png of the device",
    ]


def test_a_controller_that_cannot_be_called_leaves_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "ftp://no.proxy")  # as a test may do
    missing: list[str] = []

    for kind in ("agent-device", "argent"):
        session = session_at("https://controller.invalid", kind)
        assert list(evidence_on(session, {}, missing=missing.append)) == []

    assert [line.partition(":")[0] for line in missing] == [
        "no evidence of the device",
        "no evidence of the device",
    ]


def test_a_device_that_dies_while_it_is_read_leaves_what_was_read_before(
    controller: ScriptedServer,
) -> None:
    missing: list[str] = []
    picture = {"artifacts": [{"field": "path", "artifactId": "1"}]}

    def answer(call: str) -> Answer:
        if call == "GET /artifacts/1":
            return Answer(body=b"picture")
        if received(controller, "/rpc")[-1]["params"]["command"] == "screenshot":
            return done(**picture)
        return Answer(502, b"<html>Bad gateway</html>")

    controller.answer = answer
    session = session_at(controller.url, "agent-device")

    pieces = dict(evidence_on(session, {}, missing=missing.append))

    assert pieces == {"screenshot.png": b"picture"}
    (line,) = missing
    assert line.startswith("no screen.txt of the device: the agent-device daemon")


def test_without_time_nothing_is_read(controller: ScriptedServer) -> None:
    missing: list[str] = []
    controller.answer = appium()

    with driver(session_at(controller.url), {}) as driven:
        before = len(controller.asked)
        assert list(evidence_of(driven, seconds=0, missing=missing.append)) == []
        assert len(controller.asked) == before
