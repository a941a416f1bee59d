"""The pages of faults list exactly the existing rows."""

from pathlib import Path

from tests.faults.row import Record
from tests.faults.rows import GROUPS, ROWS
from tests.faults.rows.nightly import COVERED, NIGHTLY
from tests.faults.table import names_in, pages

PAGES = Path(__file__).parents[2] / "docs" / "development" / "faults"


def test_no_two_rows_have_the_same_name() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_a_row_of_the_night_is_covered_by_one_of_the_gate() -> None:
    names = {row.name for row in ROWS}

    assert {*COVERED} <= names - NIGHTLY
    assert names > NIGHTLY
    assert len(NIGHTLY) == sum(map(len, COVERED.values()))


def test_the_pages_list_every_row_of_their_group_and_no_other() -> None:
    names = list(
        pages({row.name: Record(row.name, True, None, "", None, ()) for row in ROWS})
    )

    assert {path.name for path in PAGES.glob("*.md")} == set(names)
    for name, rows in zip(names[1:], GROUPS.values(), strict=True):
        assert names_in((PAGES / name).read_text()) == [row.name for row in rows]


def test_a_page_shows_the_recorded_results_of_a_row() -> None:
    records = {
        row.name: Record(row.name, True, 1.25, "as | reported", 143, ()) for row in ROWS
    }

    line = next(
        line
        for line in pages(records)["signals.md"].splitlines()
        if line.startswith("| SIGTERM in a test |")
    )

    assert " | stopped | yes | 1.2 s | 143 | `as \\| reported` | " in line


def test_the_first_page_names_a_row_that_failed() -> None:
    records = {
        row.name: Record(row.name, True, None, "", None, ("broken",))
        for row in ROWS[:1]
    } | {row.name: Record(row.name, True, None, "", None, ()) for row in ROWS[1:]}

    assert f"Failed rows: {ROWS[0].name}." in pages(records)["index.md"]
