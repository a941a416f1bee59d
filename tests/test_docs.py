"""The reference matches the code, links in the docs work, and the README shows the suite of `init` and CI's command."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import pytest_device
from pytest_device import DeviceArguments, errors
from pytest_device.options import OPTIONS, Option
from pytest_device.plugin import fixtures, hookspecs
from pytest_device.sessions.request import SHARING, SessionRequest
from tests.bare.blocks import commands_of_readme, files_of_readme

ROOT = Path(__file__).parent.parent
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")})
REFERENCE = "".join(
    (ROOT / "docs" / f"{page}.md").read_text()
    for page in ("writing-tests", "fixtures", "settings", "hooks", "troubleshooting")
)


def section(title: str) -> str:
    return REFERENCE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(title: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", section(title), flags=re.MULTILINE)


def row_of(option: Option[Any]) -> str:
    default = "" if option.default in (None, ()) else f"`{str(option.default).removesuffix('.0').lower()}`"
    return f"| `{option.flag}` | `{option.variable}` | `{option.ini}` | {default} | {option.help} |"


def test_every_marker_argument_is_listed() -> None:
    assert set(first_column("Marker")) == {*SessionRequest.model_fields, *SHARING}
    assert set(DeviceArguments.__annotations__) == {*SessionRequest.model_fields, *SHARING}


def test_every_fixture_is_listed() -> None:
    defined = {name for name in vars(fixtures) if name.startswith("device_")}

    assert set(first_column("Fixtures")) == defined


def test_every_hook_is_listed_with_its_arguments() -> None:
    specs = {name: spec for name, spec in vars(hookspecs).items() if name.startswith("pytest_device_")}
    written = [f"{name}({', '.join(inspect.signature(spec).parameters)})" for name, spec in specs.items()]

    assert re.findall(r"^\| `(pytest_device_.*?)` \|", section("Hooks"), flags=re.MULTILINE) == written


def test_every_option_is_listed_as_the_table_has_it() -> None:
    rows = [line for line in section("Settings").splitlines() if line.startswith("| `--")]

    assert rows == [row_of(option) for option in OPTIONS]


def test_every_error_that_is_raised_is_listed_and_public() -> None:
    tree = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.DeviceError)}
    groups = {"DeviceError", "ServiceError", "SessionError"}

    assert set(first_column("Errors")) == tree - groups
    assert tree <= set(dir(pytest_device))


def test_ci_runs_the_second_command_of_the_readme_and_nothing_else() -> None:
    steps = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if not line.startswith("#")]
    examples, tests = commands_of_readme("python3 -m venv")

    assert examples == f"{tests} -e examples"
    assert steps == ["set -euo pipefail", 'cd "$(dirname "${BASH_SOURCE[0]}")/.."', tests]


def test_the_suite_of_the_readme_is_that_of_init() -> None:
    templates = ROOT / "src" / "pytest_device" / "cli" / "suite"
    shown = files_of_readme()

    assert list(shown) == ["test_sign_in.py", "conftest.py", "app/index.html"]
    assert shown == {name: (templates / name).read_text() for name in shown}


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_page_of_the_project_leads_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text())
    targets = [((page.parent / path if path else page), anchor) for path, anchor in links]

    assert [str(target) for target, _ in targets if not target.exists()] == []
    assert [(str(target), anchor) for target, anchor in targets if anchor and anchor not in anchors_of(target)] == []
