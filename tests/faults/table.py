"""The table of faults as a page: what is promised in plain words, and what was seen."""

from collections.abc import Iterator, Mapping
from typing import Final

from tests.faults.row import Promise, Record, Row
from tests.faults.rows import GROUPS, ROWS

_INTRO: Final = """\
# What happens to sessions when something goes wrong

Every row is a fault that strikes a real run: pytest with its workers, a local service with simulated devices as the
other side, killed, cut off or lied to. What became of each session is what the service says of it, not the run.

**Promised** is one of

{promises}

**After** is the time from the fault until the last session had ended by the service's own clock; where the fault lies
in wait in the service, from the first create. **Exit** is the run's status, negative for the signal that killed it.
**Told** is what a person finds in the output. The figures are of one pass on one machine and show orders of magnitude.

A row is about a service that outlives the run (`--device-url`). The local service of `--device-local` ends with the
run, and its sessions with it.

`python -m tests.faults` runs all of it and prints this page, `python -m tests.faults --write docs/faults.md` keeps it.
"""
_MEANS: Final[Mapping[Promise, str]] = {
    Promise.STOPPED: "by the run, by the process that it leaves behind for this, or by the controlling process.",
    Promise.SWEPT: "nobody was left to do it before; it happens where the state directory is still there.",
    Promise.BOUNDED: "nothing can find it or nothing may stop it. Its maximum duration and idle limit end it, and the "
    "run says so where anybody is left to.",
    Promise.KEPT: "because `--device-keep-on-failure` asked for it; its limits end it.",
    Promise.NONE: "there is nothing to stop.",
}
_HEAD: Final = """\
| fault | promised | stopped | after | exit | told | in plain words |
| --- | --- | --- | ---: | ---: | --- | --- |"""
_TOLD_LENGTH: Final = 110


def page(records: Mapping[str, Record]) -> str:
    """Return the page, with the records by the names of their rows."""
    promises = "\n".join(f"- *{promise}*: {means}" for promise, means in _MEANS.items())
    return "\n".join([_INTRO.format(promises=promises), *_summary(records), *_groups(records)])


def names_in(text: str) -> list[str]:
    """Return the names of the rows that a page has."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    names = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    return [name.replace(r"\|", "|") for name in names if name not in {"fault", "---"}]


def _summary(records: Mapping[str, Record]) -> Iterator[str]:
    promised = [row.promise for row in ROWS]
    counts = ", ".join(f"{promised.count(promise)} *{promise}*" for promise in Promise if promise in promised)
    broken = [name for name, record in records.items() if record.problems]
    yield f"{len(ROWS)} rows: {counts}. Rows that did not hold: {', '.join(broken) or 'none'}.\n"


def _groups(records: Mapping[str, Record]) -> Iterator[str]:
    for title, rows in GROUPS.items():
        yield f"## {title}\n"
        yield _HEAD
        for row in rows:
            yield _line(row, records[row.name])
        yield ""


def _line(row: Row, record: Record) -> str:
    cells = (
        row.name,
        row.promise,
        "yes" if record.stopped else "no",
        "" if record.seconds is None else f"{record.seconds:.1f} s",
        "" if record.status is None else str(record.status),
        f"`{_shortened(record.told)}`" if record.told else "",
        row.words,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _shortened(told: str) -> str:
    plain = told.replace("`", "'")
    return plain if len(plain) <= _TOLD_LENGTH else f"{plain[: _TOLD_LENGTH - 1].rstrip()}…"
