"""The security page promises only what a test attacks: each section has a table, and each test in it exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs_pages import DOCS, ROOT

TABLES = sorted(
    {*(DOCS / "development/promises").glob("*.md")}
    - {DOCS / "development/promises/index.md"}
)
COLUMNS = ["promise", "tests", "where it does not hold"]


def rows_of(page: Path) -> list[list[str]]:
    """Return the rows of a page's tables, without headers."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if row != COLUMNS and set(row[0]) != {"-"}]


def titles_of(page: Path) -> list[str]:
    return re.findall(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)


@cache
def functions_in(path: Path) -> set[str]:
    """Return the names of the functions and methods in a module."""
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_each_section_of_the_security_page_has_a_table() -> None:
    titles = [title for page in TABLES for title in titles_of(page)]

    assert sorted(titles) == sorted(titles_of(DOCS / "security.md"))


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.stem)
def test_each_promise_has_a_test_that_exists_and_says_where_it_does_not_hold(
    page: Path,
) -> None:
    rows = rows_of(page)

    assert rows
    assert [row for row in rows if len(row) != len(COLUMNS) or not all(row)] == []
    for promise, tests, _ in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
        assert ", ".join(f"`{path}::{name}`" for path, name in named) == tests, promise
        assert [
            name for path, name in named if name not in functions_in(ROOT / path)
        ] == [], promise
