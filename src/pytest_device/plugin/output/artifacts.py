"""Saves artifacts of failed tests and the receipt of the run."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest

from pytest_device.options import Options
from pytest_device.plugin.state import DRIVERS, USES
from pytest_device.redact import Redactor, shown
from pytest_device.report.receipt import Receipt
from pytest_device.sessions.models import Session
from pytest_device.sessions.reporter import Reporter
from pytest_device.settings import Settings

_NAME_LENGTH: Final = 100
_TEXTS: Final = frozenset({".xml", ".json", ".txt"})
_HIDDEN: Final = frozenset({"remote_config", "launchArgs", "openUrl"})
"""Connection details, which give access to the device, and launch arguments, any part of which may be a credential."""


def directory_of(item: pytest.Item, settings: Settings) -> Path:
    """Return the directory for a test's artifacts, one for each attempt under pytest-rerunfailures."""
    attempt: int = getattr(item, "execution_count", 1)
    name = _file_name(item.nodeid)
    return _root(settings, item.config) / (
        name if attempt <= 1 else f"{name}-rerun-{attempt - 1}"
    )


def save(
    item: pytest.Item,
    sessions: Mapping[str, Session],
    settings: Settings,
    redactor: Redactor,
    reporter: Reporter,
) -> Path | None:
    """Save screenshot, page source and session details of a failed test's devices; return the directory.

    If they cannot be written, a note gives the reason, so that this error does not replace the test's own.
    """
    directory = directory_of(item, settings)
    if not sessions:
        return None
    try:
        directory.parent.mkdir(
            parents=True, exist_ok=True
        )  # first, so that the note is the same as for the receipt
        if settings.is_default("artifacts_dir"):
            (directory.parent / ".gitignore").write_text("*\n", "utf-8")
        for name, session in sessions.items():
            _write(
                directory / _file_name(name), _evidence(item, name, session), redactor
            )
    except OSError as error:
        reporter.note(_not_saved(directory.parent, error))
        return None
    if ("device_artifacts", str(directory)) not in item.user_properties:
        item.user_properties.append(("device_artifacts", str(directory)))
    return directory


def save_receipt(
    settings: Settings, receipt: Receipt, config: pytest.Config
) -> str | None:
    """Save the receipt of the run; return the error message if it cannot be written, else None."""
    root = _root(settings, config)
    if (
        settings.is_default("artifacts_dir") or not receipt.has_sessions
    ):  # a run without failures leaves no files there
        return None
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / "receipt.json").write_text(
            json.dumps(receipt.to_json(), indent=2) + "\n", encoding="utf-8"
        )
    except OSError as error:
        return _not_saved(root, error)
    return None


def _root(settings: Settings, config: pytest.Config) -> Path:
    return config.invocation_params.dir / settings.artifacts_dir


def _file_name(name: str) -> str:
    """Return a unique name that is safe as a file name."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")
    if plain == name and len(name) <= _NAME_LENGTH:
        return name
    return f"{plain[:_NAME_LENGTH]}-{crc32(name.encode(errors='replace')):08x}".lstrip(
        "-"
    )


def _not_saved(root: Path, error: OSError) -> str:
    """Return the same text for all tests, so that the run notes it only once."""
    reason = error.strerror or error
    return f"cannot save artifacts in {root} ({reason}): make it writable or change {Options.artifacts_dir.flag}"


def _write(
    place: Path, evidence: Iterator[tuple[str, bytes]], redactor: Redactor
) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for file_name, content in evidence:
        is_text = Path(file_name).suffix in _TEXTS
        masked = (
            redactor.text(content.decode(errors="replace")).encode()
            if is_text
            else content
        )
        (place / file_name).write_bytes(masked)


def _evidence(
    item: pytest.Item, name: str, session: Session
) -> Iterator[tuple[str, bytes]]:
    facts = session.model_dump(mode="json", by_alias=True, exclude=set(_HIDDEN))
    if session.application_archive_url:
        facts["applicationArchiveUrl"] = shown(session.application_archive_url)
    yield "session.json", (json.dumps(facts, indent=2) + "\n").encode()
    driver = item.stash[DRIVERS].get(name) if DRIVERS in item.stash else None
    if driver is not None:
        from pytest_device.controllers.appium.evidence import evidence_of

        yield from evidence_of(driver)
    use = item.stash[USES].get(name) if USES in item.stash else None
    if use is not None:
        from pytest_device.controllers.evidence import evidence_on

        yield from evidence_on(session, use.environment)
