"""The fault table as pages, one for each group: what is promised, and what a pass has shown."""

from collections.abc import Iterator, Mapping
from typing import Final

from tests.faults.row import Promise, Record, Row
from tests.faults.rows import GROUPS, ROWS

_INTRO: Final = """\
# What happens to sessions when something goes wrong

Each row injects one fault into a real run: pytest, with or without workers, at a local service with simulated
devices. The run is killed or cut off, or the service gives a wrong response. The result comes from the service's
records, not from the run's output. [Nothing leaks](../../no-leak.md) explains the guarantees behind the table.

**Promised** is one of

{promises}

**Stopped** is whether all sessions have ended. **After** is the time from the fault until the end of the last
session, by the service's clock; if the service itself injects the fault, it counts from the first create call.
**Exit** is the run's exit code, negative for the signal that killed it. **Output** is the relevant line of the run's
output. The figures come from one pass on one machine and only show orders of magnitude.

In the last column, *bounded* means that the session's own limits end it, and *reported* that the run's output says
so.

All rows use a service that outlives the run (`--device-url`). With `--device-local`, the service ends with the run,
and so do all sessions.

`python -m tests.faults --write docs/development/faults` runs all rows and writes these pages.
"""
_MEANS: Final[Mapping[Promise, str]] = {
    Promise.STOPPED: "by the run, its reaper or the coordinator of a pytest-xdist run.",
    Promise.SWEPT: "no process was left to stop it; this needs the same state directory.",
    Promise.BOUNDED: "the session can't be found or can't be stopped. Its maximum duration and idle limit end it, and "
    "the run reports it if it is still alive.",
    Promise.KEPT: "`--device-keep-on-failure` asked for it; its limits end it.",
    Promise.NONE: "there is nothing to stop.",
}
_HEAD: Final = """\
| fault | promised | stopped | after | exit | output | result |
| --- | --- | --- | ---: | ---: | --- | --- |"""
_TOLD_LENGTH: Final = 110


def pages(records: Mapping[str, Record]) -> Mapping[str, str]:
    """Return the pages by file name; ``records`` maps row names to results."""
    promises = "\n".join(f"- *{promise}*: {means}" for promise, means in _MEANS.items())
    index = "\n".join(
        [_INTRO.format(promises=promises), *_summary(records), *_contents()]
    )
    return {"index.md": index} | {
        f"{_slug(title)}.md": _group(title, records) for title in GROUPS
    }


def names_in(text: str) -> list[str]:
    """Return the row names on a page."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    names = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    return [name.replace(r"\|", "|") for name in names if name not in {"fault", "---"}]


def _summary(records: Mapping[str, Record]) -> Iterator[str]:
    promised = [row.promise for row in ROWS]
    counts = ", ".join(
        f"{promised.count(promise)} *{promise}*"
        for promise in Promise
        if promise in promised
    )
    broken = [name for name, record in records.items() if record.problems]
    yield f"{len(ROWS)} rows: {counts}. Failed rows: {', '.join(broken) or 'none'}.\n"


def _contents() -> Iterator[str]:
    yield "```{toctree}\n:maxdepth: 1\n"
    yield from (_slug(title) for title in GROUPS)
    yield "```\n"


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _group(title: str, records: Mapping[str, Record]) -> str:
    lines = [_line(row, records[row.name]) for row in GROUPS[title]]
    return "\n".join(
        [
            f"# Faults: {title}\n",
            "The [overview](index.md) explains the columns.\n",
            _HEAD,
            *lines,
            "",
        ]
    )


def _line(row: Row, record: Record) -> str:
    cells = (
        row.name,
        row.promise,
        "yes" if record.stopped else "no",
        "" if record.seconds is None else f"{record.seconds:.1f} s",
        "" if record.status is None else str(record.status),
        f"`{_shortened(record.reported)}`" if record.reported else "",
        row.words,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _shortened(reported: str) -> str:
    """Cut after a word: half a word may read like the name of another option."""
    plain = reported.replace("`", "'")
    if len(plain) <= _TOLD_LENGTH:
        return plain
    words, _, _ = plain[: _TOLD_LENGTH - 1].rpartition(" ")
    return f"{words}…"
