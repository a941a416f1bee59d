"""Messages between coordinator and worker arrive intact; anything else is a named error of the run."""

from collections.abc import Callable
from typing import Any

import pytest

from pytest_device.plugin.xdist import messages
from pytest_device.sessions.breaker import Cause, Pause
from pytest_device.sessions.reporter import SafetyNet
from pytest_device.testing import FaultyService
from pytest_device.verdict import Verdict
from pytest_device.wire import MessageError

CAUSE = Cause(Verdict.INFRASTRUCTURE, "no answer", calls=2)
FROM_WORKER: list[messages.FromWorker] = [
    messages.Collected('["a\n"]', "shard 1/2"),
    messages.Progress("gw0 boots \N{SNOWMAN}"),
    messages.Preview("gw0 ios appium", "https://devices.example/preview"),
    messages.MissingSafetyNet(SafetyNet.LEDGER, "no ledger"),
    messages.Ask("key", 1),
    messages.Succeeded("key", 1),
    messages.Released("key", 1),
    messages.Failed("key", 1, CAUSE, is_final=True),
]
FROM_COORDINATOR: list[messages.FromCoordinator] = [
    messages.Assigned((0, 3, 2)),
    messages.Interrupt(),
    messages.Answered(1, None),
    messages.Answered(2, Pause(15.0, CAUSE)),
    messages.Answered(3, CAUSE),
]
SUITE = """
import pytest

@pytest.mark.device(platform="android")
def test_it(device_session):
    pass
"""
WORKER_SENDS = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config):
    if hasattr(config, "workerinput"):
        config.workerinput["device_channel"].send({sent!r})
"""
COORDINATOR_SENDS = """
import pytest

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node):
    node.workerinput["device_channel"].send({sent!r})
"""
MALFORMED = [
    b'{"type": "Progress"}',
    b'{"type": "Unheard"}',
    b'{"type": "Answered", "number": 1, "answer": "perhaps"}',
    b"rubbish",
    ("pid", "plan", "shard", "and more"),
]
MALFORMED_IDS = ["field", "type", "word", "text", "tuple"]


@pytest.mark.parametrize(
    "message", FROM_WORKER, ids=lambda message: type(message).__name__
)
def test_a_message_of_a_worker_arrives_as_it_was_sent(
    message: messages.FromWorker,
) -> None:
    assert messages.from_worker(messages.encode(message)) == message


@pytest.mark.parametrize(
    "message", FROM_COORDINATOR, ids=lambda message: type(message).__name__
)
def test_a_message_of_the_coordinator_arrives_as_it_was_sent(
    message: messages.FromCoordinator,
) -> None:
    assert messages.from_coordinator(messages.encode(message)) == message


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (messages.from_worker, messages.Answered(1, None)),
        (messages.from_coordinator, messages.Ask("key", 1)),
    ],
)
def test_a_message_in_the_wrong_direction_is_refused(
    decode: Callable[[bytes], object],
    message: messages.FromWorker | messages.FromCoordinator,
) -> None:
    with pytest.raises(MessageError, match="is not expected here"):
        decode(messages.encode(message))


@pytest.mark.parametrize("decode", [messages.from_worker, messages.from_coordinator])
@pytest.mark.parametrize("sent", MALFORMED, ids=MALFORMED_IDS)
def test_a_message_of_another_version_is_refused(
    decode: Callable[[Any], object], sent: object
) -> None:
    with pytest.raises(MessageError):
        decode(sent)


@pytest.mark.parametrize(
    ("conftest", "sender", "sent"),
    [
        pytest.param(WORKER_SENDS, "worker gw0", MALFORMED[0], id="worker"),
        pytest.param(
            *(WORKER_SENDS, "worker gw0", MALFORMED[-1]),
            id="no bytes",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            COORDINATOR_SENDS, "the coordinator", MALFORMED[0], id="coordinator"
        ),
    ],
)
def test_a_message_of_another_version_is_an_error_that_names_its_sender(
    pytester: pytest.Pytester,
    service: FaultyService,
    conftest: str,
    sender: str,
    sent: object,
) -> None:
    pytester.makeconftest(conftest.format(sent=sent))
    pytester.makepyfile(SUITE)

    result = pytester.runpytest_subprocess("-n1")

    result.stdout.fnmatch_lines(
        [
            f"ERROR: {sender} sent a message that this version of pytest-device cannot read (*"
        ]
    )
    assert "install the same version on all machines of the run" in result.stdout.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert service.statuses() == ["stopped"]
