"""The recorder of this process, and that of each device of its tests."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from pytest_device.plugin.options import settings_of
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.trace.recorder import DeviceRecorder, Recorder
from pytest_device.trace.recording import Recording
from pytest_device.trace.values import Device

if TYPE_CHECKING:
    from pytest_device.sessions.models import Session

RECORDING: Final = pytest.StashKey[Recording]()
"""What the devices of a test did in its current attempt."""
EVIDENCE_SINCE: Final = pytest.StashKey[float]()
"""When evidence was taken before the ``tearDown`` of unittest, on the recorder's clock: before the error was reported."""
_RECORDER: Final = pytest.StashKey[Recorder]()
_NUMBERS: Final = pytest.StashKey[dict[str, int]]()
"""Numbers of the sessions of this process, by their IDs: the IDs are not recorded."""


def recorder_of(config: pytest.Config) -> Recorder:
    """Return the recorder of this process."""
    if _RECORDER not in config.stash:
        settings = settings_of(config)
        config.stash[_RECORDER] = Recorder(
            config.rootpath,
            redactor_of(config),
            typed_text="all" if settings.trace_mask_typing else "secrets",
        )

    return config.stash[_RECORDER]


@contextmanager
def collecting_evidence(recorder: Recorder) -> Generator[None]:
    """Record what is read from devices in the block as evidence, not as commands of the test; may be nested."""
    if recorder.collects_evidence:
        yield
        return

    with recorder.step(
        "Collect evidence", method="hook", group="configuration", stack=()
    ):
        recorder.collects_evidence = True
        try:
            yield
        finally:
            recorder.collects_evidence = False


def device_recorder(
    config: pytest.Config, name: str, session: "Session"
) -> DeviceRecorder:
    """Return the recorder of one device; ``name`` is that of its marker."""
    numbers = config.stash.setdefault(_NUMBERS, {})
    number = numbers.setdefault(str(session.id), len(numbers) + 1)
    device = Device(
        _key(number),
        name,
        str(session.platform),
        str(session.type),
        session.device_name or "",
    )
    recorder = DeviceRecorder(recorder_of(config), device)
    recorder.takes_pictures = settings_of(config).trace == "on"
    return recorder


def silent_seconds(config: pytest.Config, session_id: str) -> float | None:
    """Return the longest time in which a session of this process got no command, None if none was recorded."""
    number = config.stash.setdefault(_NUMBERS, {}).get(session_id)
    return None if number is None else recorder_of(config).silences.of(_key(number))


def _key(number: int) -> str:
    return f"device-{number}"
