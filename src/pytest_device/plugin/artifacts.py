"""What is left of failed tests, and of the run, in the artifacts directory."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

import pytest

from pytest_device.plugin.devices import DRIVERS, Devices
from pytest_device.redact import Redactor
from pytest_device.sessions.models import Session
from pytest_device.settings import Settings

if TYPE_CHECKING:
    from pytest_device.report.receipt import Receipt

_NAME_LENGTH: Final = 100
_TEXTS: Final = frozenset({".xml", ".json", ".txt"})


def directory_of(item: pytest.Item, settings: Settings) -> Path | None:
    """Return where a test's artifacts go, None when they go nowhere."""
    if settings.artifacts_dir.value is None:
        return None
    plain = re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-.")
    if plain != item.nodeid:  # two names may become the same one
        plain = f"{plain[:_NAME_LENGTH]}-{crc32(item.nodeid.encode(errors='replace')):08x}"
    return item.config.invocation_params.dir / settings.artifacts_dir.value / plain


def save(item: pytest.Item, devices: Devices, redactor: Redactor) -> None:
    """Save what a failed test's devices show, while they can: screenshot, page source, facts of the session."""
    directory = directory_of(item, devices.settings)
    sessions = devices.taken(item)
    if directory is None or not sessions:
        return
    for name, session in sessions.items():
        place = directory / re.sub(r"[^\w.-]+", "-", name)
        place.mkdir(parents=True, exist_ok=True)
        for file_name, content in _evidence(item, name, session):
            is_text = Path(file_name).suffix in _TEXTS
            masked = redactor.text(content.decode(errors="replace")).encode() if is_text else content
            (place / file_name).write_bytes(masked)
    if ("device_artifacts", str(directory)) not in item.user_properties:
        item.user_properties.append(("device_artifacts", str(directory)))


def save_receipt(settings: Settings, receipt: "Receipt") -> None:
    """Save the receipt of the run."""
    if settings.artifacts_dir.value is None or not (receipt.lives or receipt.lost):
        return
    directory = Path(settings.artifacts_dir.value)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "receipt.json").write_text(json.dumps(receipt.to_json(), indent=2) + "\n", encoding="utf-8")


def _evidence(item: pytest.Item, name: str, session: Session) -> Iterator[tuple[str, bytes]]:
    facts = session.model_dump(mode="json", by_alias=True, exclude={"remote_config"})
    yield "session.json", (json.dumps(facts, indent=2) + "\n").encode()
    driver = item.stash[DRIVERS].get(name) if DRIVERS in item.stash else None
    if driver is not None:
        from pytest_device.controllers.appium import evidence_of

        yield from evidence_of(driver)
