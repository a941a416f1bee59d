"""The entries that the generated TypeScript declaration needs."""

from pathlib import Path
from typing import Final

import pytest

from pytest_device.app import check, load_project
from pytest_device.app.document import Document
from pytest_device.app.routes.entries import completed
from pytest_device.errors import ProjectError
from tests.app.rows import project_files, put

pytestmark = pytest.mark.every_python

INCLUDE: Final = (".vendor/types/**/*.ts", "vendor-env.d.ts")
EVERYTHING: Final = ["**/*.ts", "**/*.tsx"]
TSCONFIGS: Final = {
    "none": (None, EVERYTHING),
    "without include": ('{"extends": "x"}', EVERYTHING),
    "an empty object": ("{}", EVERYTHING),
    "empty": ('{"include": []}', []),
    "on a line": ('{"include": ["src"]}', ["src"]),
    "with comments": (
        '// "include": [\r\n{\r\n  "include": [ // [\r\n    "src",\r\n  ],\r\n}',
        ["src"],
    ),
    "with one entry": ('{"include": ["vendor-env.d.ts", "src"]}', ["src"]),
    "with both": ('{"include": [".vendor/types/**/*.ts", "vendor-env.d.ts"]}', []),
}


@pytest.mark.parametrize("name", TSCONFIGS)
def test_missing_entries_are_added_once_and_the_rest_is_unchanged(
    name: str, tmp_path: Path
) -> None:
    text, kept = TSCONFIGS[name]
    config = {"experiments": {"typedRoutes": True}}
    files = {"app/index.tsx": "", ".gitignore": "dist"} | (
        {"tsconfig.json": text} if text else {}
    )
    project = load_project(put(tmp_path, project_files(config, **files)))

    for path, content in completed(tmp_path, "vendor-env.d.ts", INCLUDE):
        path.write_bytes(content.encode())

    document = Document.read(tmp_path / "tsconfig.json")
    assert sorted(map(str, document.object["include"])) == sorted([*kept, *INCLUDE])  # type: ignore[arg-type]
    assert ("// [" in document.text) == ("// [" in (text or ""))
    assert (tmp_path / ".gitignore").read_text() == "dist\nvendor-env.d.ts\n"
    assert {
        one.status for one in check(project) if one.id.startswith("typed-routes")
    } == {"passed"}
    again = {
        path: content.encode()
        for path, content in completed(tmp_path, "vendor-env.d.ts", INCLUDE)
    }
    assert again == {path: path.read_bytes() for path in again}


def test_an_include_that_is_not_a_list_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, {"tsconfig.json": {"include": "src"}})
    with pytest.raises(
        ProjectError, match=r"tsconfig\.json: include must be a list of patterns"
    ):
        list(completed(tmp_path, "vendor-env.d.ts", INCLUDE))
