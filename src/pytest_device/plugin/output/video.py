"""Videos of tests, where the controller records: from the start of the test function until it ends or fails."""

import base64
import logging
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pytest

from pytest_device.controllers.appium.connection import (
    capability,
    client_errors,
    limited,
)
from pytest_device.errors import ControllerError
from pytest_device.plugin.output.artifacts import (
    directory_of,
    file_name,
    ignore_in_git,
    not_saved,
    root_of,
)
from pytest_device.plugin.state import ACCESSES, DRIVERS, requirements_of

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.agent_device import AgentDevice
    from pytest_device.controllers.argent import Argent
    from pytest_device.sessions.reporter import Reporter
    from pytest_device.settings import Settings

VIDEOS: Final = pytest.StashKey[list[Path]]()
"""The videos of a test's current attempt."""
STEM: Final = "video"
_SECONDS: Final = 20.0
"""Maximum seconds to start or stop a recording."""
_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    # Its default, Motion JPEG, is not played by browsers.
    "ios": {"videoType": "libx264", "pixelFormat": "yuv420p"},
}
"""Options of Appium's recordings, by platform."""
_NO_CLIENT: Final = (
    "no video of %s: only a test with device_driver, device_agent_device, device_argent "
    "or their variants is recorded"
)
_WEBM: Final = b"\x1aE\xdf\xa3"

_logger: Final = logging.getLogger("pytest_device")


class DeviceVideos:
    """Registered as a plugin in a run with ``--device-video``."""

    def __init__(self, settings: "Settings", reporter: "Reporter") -> None:
        self._settings = settings
        self._reporter = reporter

    # Within the hooks of others, so that it begins and ends with the test function.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record the devices of a test while its function runs."""
        item.stash[VIDEOS] = []
        recordings = _started(item)

        try:
            result = yield
        except BaseException as error:
            is_skipped = isinstance(error, pytest.skip.Exception)
            self._stop(item, recordings, keep=not is_skipped)
            raise

        self._stop(item, recordings, keep=self._settings.video == "on")
        return result

    def _stop(
        self,
        item: pytest.Item,
        recordings: Mapping[str, Callable[[], bytes]],
        *,
        keep: bool,
    ) -> None:
        """Stop the recordings, and save those that are kept."""
        directory = directory_of(item, self._settings)
        for name, stop in recordings.items():
            video = _tried(stop)
            if video and keep:
                try:
                    self._save(item, directory / file_name(name), video)
                except OSError as error:
                    root = root_of(self._settings, item.config)
                    self._reporter.note(not_saved(root, error))

    def _save(self, item: pytest.Item, folder: Path, video: bytes) -> None:
        # First, so that the note is the same as for other artifacts.
        root_of(self._settings, item.config).mkdir(parents=True, exist_ok=True)
        ignore_in_git(self._settings, item.config)

        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{STEM}{_suffix(video)}"
        path.write_bytes(video)
        item.stash[VIDEOS].append(path)


def _started(item: pytest.Item) -> Mapping[str, Callable[[], bytes]]:
    """Start a recording on each device of a test that can; return what stops it and returns the video."""
    recordings: dict[str, Callable[[], bytes]] = {}
    drivers = item.stash.get(DRIVERS, None) or {}
    for name, driver in drivers.items():
        if _tried(partial(_start_driver, driver)) is not None:
            recordings[name] = partial(_stop_driver, driver)

    accesses = item.stash.get(ACCESSES, None) or {}
    for name, access in accesses.items():
        if access.client and _tried(partial(_start_client, access.client)) is not None:
            recordings[name] = partial(_stop_client, access.client)

    clients = {name for name, access in accesses.items() if access.client}
    others = set(requirements_of(item)) - clients - set(drivers)
    if others:
        _logger.warning(_NO_CLIENT, ", ".join(filter(None, sorted(others))) or "device")

    return recordings


def _start_driver(driver: "WebDriver") -> bytes:
    platform = str(capability(driver, "platformName")).casefold()
    with limited(driver, _SECONDS):
        driver.start_recording_screen(**_OPTIONS.get(platform, {}))

    return b""


def _stop_driver(driver: "WebDriver") -> bytes:
    with limited(driver, _SECONDS):
        video = driver.stop_recording_screen()

    try:
        return base64.b64decode(video)
    except (TypeError, ValueError) as error:
        message = f"stop_recording_screen returned no video in Base64: {error}"
        raise ControllerError(message) from error


def _start_client(client: "AgentDevice | Argent") -> bytes:
    from pytest_device.controllers.argent import Argent

    if isinstance(client, Argent):
        client.start_recording()
    else:
        # Not of the app, since none is open yet.
        client.start_recording(recordingScope="device")

    return b""


def _stop_client(client: "AgentDevice | Argent") -> bytes:
    from pytest_device.controllers.argent import Argent

    if isinstance(client, Argent):
        return client.stop_recording()

    with TemporaryDirectory() as directory:
        paths = client.stop_recording(Path(directory))
        return paths[0].read_bytes() if paths else b""


def _tried(command: Callable[[], bytes]) -> bytes | None:
    """Return what a command of a recording returns, None with a line in the log if it fails: a test never does."""
    errors: tuple[type[Exception], ...] = (ControllerError, OSError, *client_errors())
    try:
        return command()
    except errors as error:
        reason = str(error).partition("\n")[0]
        _logger.warning("no video of the device: %s", reason)
        return None


def _suffix(video: bytes) -> str:
    return ".webm" if video.startswith(_WEBM) else ".mp4"
