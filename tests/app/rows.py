"""The reference cases, and the projects they describe."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

DATA: Final = Path(__file__).with_name("data")

VENDOR_PACKAGE: Final = {
    "node_modules/vendor/package.json": {"name": "vendor", "version": "57.0.26"}
}


def rows(name: str, *ops: str) -> list[Any]:
    """Return the rows of a table as parameters, those of some operations only."""
    found = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return [
        pytest.param(row, id=row["name"])
        for row in found
        if not ops or row.get("op") in ops
    ]


def put(root: Path, files: Mapping[str, object]) -> Path:
    """Write files, objects as JSON."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (
            content
            if isinstance(content, str)
            else json.dumps(content, ensure_ascii=False)
        )
        path.write_text(text, encoding="utf-8", newline="")
    return root


def project_files(config: object, **files: object) -> dict[str, object]:
    """Return the files of a small project with a static configuration."""
    package = {"name": "pkg", "version": "9.9.9", "dependencies": {"vendor": "^57.0.0"}}
    return {
        **VENDOR_PACKAGE,
        "package.json": package,
        "app.json": {"vendor": config},
        **files,
    }
