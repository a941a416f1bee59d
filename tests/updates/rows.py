"""The reference cases, and the values that most tests begin with."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.updates import (
    Asset,
    Build,
    CodeSigning,
    Signature,
    Update,
    UpdateSettings,
)

DATA: Final = Path(__file__).with_name("data")
URL: Final = "https://u.example/manifest"
SETTINGS: Final = UpdateSettings.from_config({"updates": {"url": URL}})
ASSET: Final = Asset("bundle", "h1", "h1", True)
EMBEDDED: Final = Update(
    "e",
    "1.0",
    "ios",
    datetime(2026, 1, 1, tzinfo=UTC),
    URL,
    [ASSET],
    Signature.missing(),
)
UPDATE: Final = replace(EMBEDDED, id="u", created_at=datetime(2026, 2, 1, tzinfo=UTC))
BUILD: Final = Build("ios", "1.0", SETTINGS, EMBEDDED, URL)


def cases(op: str) -> list[Any]:
    """Return the reference cases of an operation as parameters."""
    found = json.loads((DATA / "cases.json").read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["name"]) for row in found if row["op"] == op]


def reference_signing() -> CodeSigning:
    """Return a key and its certificate of the reference cases: generating one takes a tenth of a second."""
    given = cases("sign")[0].values[0]["input"]
    return CodeSigning(given["private_key_pem"], given["certificate_pem"])


def export(
    directory: Path,
    bundle: str = "v1",
    *,
    logo: bytes = b"logo",
    platforms: tuple[str, ...] = ("ios",),
) -> Path:
    """Write an export as the ecosystem's tool lays it out; an asset's name is its MD5."""
    name = hashlib.md5(logo, usedforsecurity=False).hexdigest()
    (directory / "assets").mkdir(parents=True, exist_ok=True)
    (directory / "assets" / name).write_bytes(logo)
    parts = {}
    for platform in platforms:
        path = f"static/js/{platform}/index-0123.hbc"
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(f"{platform} {bundle}")
        parts[platform] = {
            "bundle": path,
            "assets": [{"path": f"assets/{name}", "ext": "png"}] * 2,
        }
    metadata = {"version": 0, "bundler": "metro", "fileMetadata": parts}
    (directory / "metadata.json").write_text(json.dumps(metadata))
    return directory
