"""The pages match the code, and each other: tables, links, code blocks, names of options."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_device
from pytest_device import DeviceArguments, errors
from pytest_device.cli import COMMANDS
from pytest_device.options import (
    OPTIONS,
    TOKEN_VARIABLE,
    Group,
    Option,
)
from pytest_device.plugin import fixtures, hookspecs, services
from pytest_device.plugin.selection import SCOPED_DRIVERS
from pytest_device.sessions.request import ROUTE, SHARING, SessionRequest
from pytest_device.verdict import Verdict
from tests.bare.blocks import files_of_readme
from tests.docs_pages import DOCS, PAGES, ROOT, blocks, name_of

SOURCE = ROOT / "src" / "pytest_device"
TESTED = (
    ROOT / "examples",
    SOURCE / "cli" / "suite",
    SOURCE / "cli" / "agent_suite",
)
RUN = {
    DOCS / name
    for name in ("hooks.md", "local-service.md", "reference/sessions.md", "results.md")
}
"""Their blocks of Python are run by ``test_docs_run``."""
MOST_WORDS = 1500
READERS = {
    "new user",
    "test author",
    "CI maintainer",
    "security reviewer",
    "contributor",
}
MAX_DIFFERENCE = 150
"""Between the words of a page and those in the table of pages, which are rounded."""
PICTURES = DOCS / "pictures"
MAX_PICTURE_BYTES = 600_000
IMAGE = re.compile(r'!\[([^\]]+)\]\(([^)]+)\)|<img src="([^"]+)" alt="([^"]+)"')


def first_column(page: str, title: str) -> list[str]:
    section = (
        (DOCS / f"{page}.md").read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    )
    return re.findall(r"^\| `(.*?)` \|", section, flags=re.MULTILINE)


def row_of(option: Option[Any]) -> str:
    default = (
        ""
        if option.default in (None, ())
        else f"`{str(option.default).removesuffix('.0').lower()}`"
    )
    return f"| `{option.flag}` | `{option.variable}`, `{option.ini}` | {default} | {option.help} |"


def test_every_marker_argument_is_listed() -> None:
    assert set(first_column("writing-tests", "Marker")) == {
        *SessionRequest.model_fields,
        *SHARING,
        *ROUTE,
    }
    assert set(DeviceArguments.__annotations__) == {
        *SessionRequest.model_fields,
        *SHARING,
        *ROUTE,
    }


def test_every_fixture_is_listed() -> None:
    defined = {
        name
        for name in (*vars(fixtures), *vars(services))
        if name.startswith("device_")
    }

    assert set(first_column("fixtures", "All fixtures")) == {
        *defined,
        "`, `".join(SCOPED_DRIVERS),
    }


def test_every_verdict_is_listed() -> None:
    assert set(first_column("reports", "Verdicts")) == {*Verdict}


def test_every_hook_is_listed_with_its_arguments() -> None:
    specs = {
        name: spec
        for name, spec in vars(hookspecs).items()
        if name.startswith("pytest_device_")
    }
    written = [
        f"{name}({', '.join(inspect.signature(spec).parameters)})"
        for name, spec in specs.items()
    ]

    assert first_column("hooks", "All hooks") == written


def test_every_option_is_listed_as_declared_under_the_heading_of_its_group() -> None:
    listed = [
        (heading, row)
        for name in ("settings.md", "settings-results.md", "vendor.md")
        for heading, row in rows_with_heading(DOCS / name)
    ]

    assert listed == [
        ("Options" if option.group is Group.VENDOR else option.group, row_of(option))
        for option in OPTIONS
    ]


def rows_with_heading(page: Path) -> Iterator[tuple[str, str]]:
    heading = ""
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("| `--"):
            yield heading, line


def test_the_help_shows_the_groups_of_options_in_the_order_of_the_settings(
    pytester: pytest.Pytester,
) -> None:
    # Not in this process: a run unloads what it imports, and other runs have parts of it.
    shown = pytester.runpytest_subprocess("--help").stdout.str()

    titles = re.findall(r"^devices: ([\w ,]+)", shown, flags=re.MULTILINE)
    assert [title.strip() for title in titles] == [group.lower() for group in Group]
    of_group = re.split(r"^\S.*:$", shown, flags=re.MULTILINE)
    flags = [
        re.findall(r"^  (--device-[\w-]+)", text, re.MULTILINE) for text in of_group
    ]
    assert [those for those in flags if those] == [
        [option.flag for option in OPTIONS if option.group is group] for group in Group
    ]


def test_every_raised_error_is_listed_and_public() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    tree = {kind.__name__ for kind in kinds if issubclass(kind, errors.DeviceError)}
    groups = {"DeviceError", "ServiceError", "SessionError"}

    assert set(first_column("troubleshooting/index", "Errors")) == tree - groups
    assert tree <= set(dir(pytest_device))


def test_the_suite_of_the_readme_is_that_of_init() -> None:
    templates = ROOT / "src" / "pytest_device" / "cli" / "suite"
    shown = files_of_readme()

    assert list(shown) == ["test_sign_in.py", "conftest.py", "app/index.html"]
    assert shown == {name: (templates / name).read_text() for name in shown}


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def test_every_term_of_the_glossary_is_linked_from_another_page() -> None:
    glossary = DOCS / "glossary.md"
    others = [page.read_text() for page in PAGES if page != glossary]
    terms = anchors_of(glossary) - {"glossary"}
    unlinked = [
        term
        for term in terms
        if not any(f"glossary.md#{term})" in text for text in others)
    ]

    assert len(terms) > 20
    assert unlinked == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_to_a_page_of_the_project_works(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text())
    targets = [
        ((page.parent / path if path else page), anchor) for path, anchor in links
    ]

    assert [str(target) for target, _ in targets if not target.exists()] == []
    assert [
        (str(target), anchor)
        for target, anchor in targets
        if anchor and anchor not in anchors_of(target)
    ] == []


def test_every_picture_has_an_alternative_text_and_is_shown_on_a_page() -> None:
    shown = {
        (page.parent / (match[2] or match[3])).resolve()
        for page in PAGES
        for match in IMAGE.finditer(page.read_text())
    }

    made = {*PICTURES.iterdir()}
    assert made <= shown
    assert all(path.is_file() for path in shown)
    assert sum(path.stat().st_size for path in made) < MAX_PICTURE_BYTES


def test_a_picture_shows_nothing_of_the_machine_that_made_it() -> None:
    texts = [path.read_text() for path in PICTURES.glob("*.svg")]

    assert texts
    assert not any(re.search(r"/(tmp|root|home|Users)/", text) for text in texts)


def test_the_table_of_pages_has_each_page_with_its_reader_and_length() -> None:
    table = DOCS / "development/pages.md"
    rows = re.findall(
        r"^\| \[.+?\]\((.+?)\) \| (.+?) \| .+\? \| (\d+) \|$",
        table.read_text(),
        flags=re.MULTILINE,
    )
    pages = [(table.parent / path).resolve() for path, _, _ in rows]

    assert sorted(pages) == sorted(DOCS.rglob("*.md"))
    assert {reader for _, reader, _ in rows} == READERS
    outdated = [
        (name_of(page), len(page.read_text().split()))
        for page, (_, _, words) in zip(pages, rows, strict=True)
        if abs(len(page.read_text().split()) - int(words)) > MAX_DIFFERENCE
    ]
    assert outdated == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_a_page_can_be_read_in_one_sitting(page: Path) -> None:
    assert len(page.read_text().split()) <= MOST_WORDS


def lines_of(code: str) -> str:
    return "\n".join(["", *(line.strip() for line in code.splitlines()), ""])


@pytest.mark.parametrize("page", sorted({*PAGES} - RUN), ids=name_of)
def test_code_on_a_page_comes_from_a_tested_suite(page: Path) -> None:
    tested = [
        lines_of(path.read_text())
        for directory in TESTED
        for path in directory.rglob("*.py")
    ]

    assert [
        block
        for block in blocks(page, "python")
        if not any(lines_of(block) in file for file in tested)
    ] == []


@pytest.mark.parametrize(
    "page", sorted({*PAGES} - {ROOT / "CHANGELOG.md"}), ids=name_of
)
def test_options_variables_ini_keys_and_commands_on_a_page_exist(page: Path) -> None:
    text = page.read_text()
    ini = "".join(blocks(page, "ini"))

    assert {*re.findall(r"--device-\w[\w-]*\w", text)} <= {
        option.flag for option in OPTIONS
    }
    assert {*re.findall(r"\bDEVICE_(?!IN_USE)\w+", text)} <= {
        TOKEN_VARIABLE,
        *(option.variable for option in OPTIONS),
    }
    assert {*re.findall(r"^(device_\w+) *=", ini, flags=re.MULTILINE)} <= {
        option.ini for option in OPTIONS
    }
    used = re.findall(
        r"(?:`|^\$ |[;&] )pytest-device ([a-z]+)", text, flags=re.MULTILINE
    )
    assert {*used} <= {command.name for command in COMMANDS}


def messages_on(page: Path) -> list[str]:
    """Return the messages that the tables of a page explain."""
    tables = re.findall(
        r"^\| message \|.*\n\|.*\n((?:\|.*\n)+)", page.read_text(), flags=re.MULTILINE
    )
    cells = [row.split(" | ")[0] for table in tables for row in table.splitlines()]
    return [message for cell in cells for message in re.findall(r"`(.+?)`", cell)]


def texts_of(path: Path) -> Iterator[str]:
    """Yield the strings in a module; what is formatted into them is shown as "…"."""
    if path.suffix == ".js":
        yield re.sub(r"\$\{.*?\}", "…", path.read_text())
        return

    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=parts):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "…"
                    for part in parts
                )
            case _:
                pass


def test_every_explained_message_exists_in_the_code() -> None:
    pages = sorted((DOCS / "troubleshooting").glob("*.md"))
    modules = [*SOURCE.rglob("*.py"), *(SOURCE / "service/appium_driver").glob("*.js")]
    code = "\n".join(text for path in modules for text in texts_of(path))
    messages = [
        (name_of(page), message) for page in pages for message in messages_on(page)
    ]

    assert len(messages) > 100
    assert [
        one
        for one in messages
        if any(part.strip() not in code for part in one[1].split("…"))
    ] == []
