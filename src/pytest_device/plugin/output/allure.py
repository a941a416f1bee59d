"""Completes the results of Allure with devices and files, and masks secrets in all that it formats itself."""

import tempfile
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pytest_device.redact import Redactor

if TYPE_CHECKING:
    import pytest

LISTENER: Final = "allure_listener"
"""Name of the plugin that a run with ``--alluredir`` has."""
_TYPES: Final = {
    ".png": ("image/png", "png"),
    ".md": ("text/markdown", "md"),
    ".txt": ("text/plain", "txt"),
    ".zip": ("application/vnd.allure.playwright-trace", "zip"),
    ".mp4": ("video/mp4", "mp4"),
    ".webm": ("video/webm", "webm"),
}
"""Allure's type and extension for each suffix."""
_HEAD_BYTES: Final = 8192
"""Bytes to check: a file with a zero byte in them is an image or a video, without text to mask."""


def mask_results(
    config: "pytest.Config", redactor: Redactor, masked: Callable[[Any], Any]
) -> None:
    """Mask what Allure writes from now on: results, containers and attachments. ``masked`` masks its objects."""
    from importlib import import_module

    writer = _Writer(redactor, masked)
    manager = import_module("allure_commons").plugin_manager
    config.add_cleanup(manager.add_hookcall_monitoring(writer.before, writer.after))


def add_device(
    listener: Any, device: str, session: str, files: Mapping[str, Path]
) -> None:
    """Add the files of a test, by the names to show, to its result, and show its device in the timeline.

    Allure's timeline has a row for each ``thread`` of a ``host``: those of this machine become the session and device.
    """
    logger = listener.allure_logger
    result = logger.get_test(None)
    if result is None:
        return

    labels = {"host": device, "thread": session}
    for label in result.labels:
        if labels.get(label.name):
            label.value = labels[label.name]

    for name, path in files.items():
        kind, extension = _TYPES[path.suffix]
        logger.attach_file(
            uuid4(),
            str(path),
            name=name,
            attachment_type=kind,
            extension=extension,
        )


def add_verdict(verdict: str) -> None:
    """Add a label with a verdict to the result of the current test."""
    from importlib import import_module

    import_module("allure").dynamic.label("device_verdict", verdict)


class _Writer:
    def __init__(self, redactor: Redactor, masked: Callable[[Any], Any]) -> None:
        self._redactor = redactor
        self._masked = masked
        self._copy: Path | None = None

    def before(
        self, name: str, _impls: object, arguments: MutableMapping[str, Any]
    ) -> None:
        """Mask the arguments of a hook that writes."""
        if name == "report_attached_data":
            arguments["body"] = self._bytes(arguments["body"])
        elif name == "report_attached_file":
            arguments["source"] = self._file(Path(arguments["source"]))
        elif name.startswith("report_"):
            for argument, value in arguments.items():
                arguments[argument] = self._masked(value)

    def after(self, *_: object) -> None:
        """Remove the masked copy of an attachment, which Allure has copied by now."""
        if self._copy:
            self._copy.unlink()
            self._copy = None

    def _bytes(self, body: str | bytes) -> bytes:
        plain = body.encode() if isinstance(body, str) else bytes(body)
        if b"\0" in plain[:_HEAD_BYTES]:
            return plain

        # So that bytes that are not UTF-8 stay as they are.
        text = plain.decode(errors="surrogateescape")
        return self._redactor.text(text).encode(errors="surrogateescape")

    def _file(self, source: Path) -> Path:
        """Return the file, or a masked copy if it contains a secret."""
        # Allure reports the problem.
        if not source.is_file():
            return source

        plain = source.read_bytes()
        if (masked := self._bytes(plain)) == plain:
            return source

        with tempfile.NamedTemporaryFile(delete=False) as copy:
            copy.write(masked)

        self._copy = Path(copy.name)
        return self._copy
