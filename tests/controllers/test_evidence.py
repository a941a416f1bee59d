"""What a device shows when a test has failed: a picture and the page source, as far as they can be had."""

import logging
from collections.abc import Callable

import pytest

from pytest_device.controllers.appium import COMMAND_SECONDS, EVIDENCE_SECONDS, driver, evidence_of
from pytest_device.sessions.models import Session
from tests.controllers.servers import Answer, Controller, says, session_at

NEW_SESSION = says({"value": {"sessionId": "1", "capabilities": {}}})
PNG = "iVBORw0KGgo="


def _appium(**answers: Answer) -> Callable[[str], Answer]:
    """Answer like an Appium server, to ``screenshot`` and ``source`` as told."""

    def answer(call: str) -> Answer:
        return NEW_SESSION if call == "POST /session" else answers.get(call.rpartition("/")[2], says({"value": None}))

    return answer


def test_picture_and_source_of_a_real_appium_are_had(appium: Session) -> None:
    with driver(appium, {}) as driven:
        evidence = dict(evidence_of(driven))

    assert list(evidence) == ["screenshot.png", "source.xml"]
    assert evidence["screenshot.png"].startswith(b"\x89PNG")
    assert b"<app" in evidence["source.xml"]


def test_of_a_killed_appium_there_is_none_and_that_is_told(
    appium: Session, kill_appium: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    with driver(appium, {}) as driven:
        kill_appium()

        assert list(evidence_of(driven)) == []

        told = [record.getMessage() for record in caplog.records if record.name == "pytest_device"]
        assert [message.partition(":")[0] for message in told] == [
            "no screenshot.png of the device",
            "no source.xml of the device",
        ]


@pytest.mark.parametrize(
    "answer",
    [
        says({"value": {"error": "unknown error", "message": "no", "stacktrace": "at\nlines"}}, 500),
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
def test_a_picture_that_is_none_does_not_cost_the_source(
    far: Controller, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    far.answer = _appium(screenshot=answer, source=says({"value": "<app/>"}))

    with driver(session_at(far.url), {}) as driven:
        assert list(evidence_of(driven)) == [("source.xml", b"<app/>")]

    assert [record.levelname for record in caplog.records if record.name == "pytest_device"] == ["WARNING"]


@pytest.mark.parametrize("answer", [says({"value": None}), says({"value": 7}), says([]), Answer(200, b"\xff\xfe")])
def test_a_source_that_is_none_does_not_cost_the_picture(far: Controller, answer: Answer) -> None:
    far.answer = _appium(screenshot=says({"value": PNG}), source=answer)

    with driver(session_at(far.url), {}) as driven:
        assert [name for name, _content in evidence_of(driven)] == ["screenshot.png"]


def test_evidence_has_a_limit_of_its_own_and_the_test_s_commands_keep_theirs(far: Controller) -> None:
    limits: list[tuple[str, object]] = []
    far.answer = _appium()
    with driver(session_at(far.url), {}) as driven:
        config = driven.command_executor.client_config

        def answer(call: str) -> Answer:
            limits.append((call.rpartition("/")[2], config.timeout))
            return says({"value": PNG})

        far.answer = answer
        for _name, _content in evidence_of(driven):
            assert driven.page_source == PNG

    assert limits[:4] == [
        ("screenshot", EVIDENCE_SECONDS),
        ("source", COMMAND_SECONDS),
        ("source", EVIDENCE_SECONDS),
        ("source", COMMAND_SECONDS),
    ]


def test_a_log_that_tells_what_is_missing_has_one_line(far: Controller, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "pytest_device")
    far.answer = _appium(screenshot=says({"value": {"error": "e", "message": "no", "stacktrace": "at\nlines"}}, 500))

    with driver(session_at(far.url), {}) as driven:
        list(evidence_of(driven))

    assert "no screenshot.png of the device: Message: no" in caplog.messages
