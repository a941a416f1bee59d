"""The summary of a GitHub job: Markdown, below the size that the service accepts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import punctuation
from typing import Final

from pytest_device.escape import escaped
from pytest_device.figures import counted, shortened
from pytest_device.report.phase import FAILED
from pytest_device.report.test_result import TestResult
from pytest_device.verdict import Verdict

MAX_BYTES: Final = 1_000_000
"""GitHub refuses the whole summary of a step if it exceeds 1 MiB."""
_MAX_TEXT: Final = 300
"""Characters of a name or an error."""
_MAX_LINE: Final = 1000
_MAX_LINES: Final = 50
"""Lines about devices: the receipt already counts what it has many of."""
_LEFT_OUT_BYTES: Final = 200
"""Room for the line that says how much is left out."""
_ENTITIES: Final = {ord(sign): f"&#{ord(sign)};" for sign in punctuation}
"""A character reference is never syntax: neither Markdown's, nor a table's, nor HTML's."""
_ORDER: Final = (
    "failed",
    "error",
    "interrupted",
    "passed",
    "skipped",
    "xfailed",
    "xpassed",
    "quarantined",
    "retried",
    "rerun",
)
"""Outcomes in the order of the heading: what fails the run comes first."""
_COLUMNS: Final = (
    "Test",
    "Result",
    "Reason",
    "Device",
    "Minutes",
    "Trace or artifacts",
)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a summary is made of; ``lines`` are about devices and minutes."""

    results: Sequence[TestResult]
    lines: Sequence[str]
    shard: str = ""
    is_interrupted: bool = False


def summary(run: RunSummary, room: int, mask: Callable[[str], str]) -> str:
    """Return the summary in at most ``room`` bytes of UTF-8; empty if not even its heading fits.

    ``mask`` is applied to each text of a test before it is encoded: an encoded secret would not be found.
    """
    head = "\n\n".join([f"### {_heading(run)}", *_sentences(run)])
    devices = _devices(run.lines, mask)
    page = _Page(room)
    if not page.fits(f"{head}\n", devices):
        return ""

    page.add(f"{head}\n")
    # Whether all sessions are stopped must not be what is left out.
    page.reserve(devices)
    _add_results(page, run, mask)
    page.release(devices)

    return page.text


def _devices(lines: Sequence[str], mask: Callable[[str], str]) -> str:
    """Return the section about devices and minutes; empty without lines."""
    if not lines:
        return ""

    shown = [_encoded(mask(line), _MAX_LINE) for line in lines[:_MAX_LINES]]
    left_out = len(lines) - len(shown)
    if left_out:
        shown.append(f"{counted(left_out, 'more line')} in the log")

    items = "".join(f"- {line}\n" for line in shown)
    return f"\n#### Devices\n\n{items}"


def _add_results(page: "_Page", run: RunSummary, mask: Callable[[str], str]) -> None:
    """Add the tests that failed, were retried or are in quarantine, as far as there is room."""
    failed = [result for result in run.results if result.outcome in FAILED]
    # What a test found comes before what failed around it.
    failed.sort(key=lambda result: bool(result.verdict))
    page.add_all(
        f"\n{_row(_COLUMNS)}{_row(['---'] * len(_COLUMNS))}",
        (_row(_cells(result, mask)) for result in failed),
        len(failed),
        "failed test",
    )

    repeated = [result for result in run.results if result.repeated]
    page.add_all(
        "\n#### Retried\n\n",
        (f"- {_retried(result, mask)}\n" for result in repeated),
        len(repeated),
        "retried test",
    )

    quarantined = [result for result in run.results if result.outcome == "quarantined"]
    page.add_all(
        "\n#### Quarantined\n\n",
        (f"- {_quarantined(result, mask)}\n" for result in quarantined),
        len(quarantined),
        "quarantined test",
    )


class _Page:
    """Text of limited size."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def fits(self, *texts: str) -> bool:
        return sum(map(_size, texts)) <= self._room

    def add(self, text: str) -> None:
        self._room -= _size(text)
        self._parts.append(text)

    def reserve(self, text: str) -> None:
        """Keep room for what follows the lists."""
        self._room -= _size(text)

    def release(self, text: str) -> None:
        self._room += _size(text)
        self.add(text)

    def add_all(self, title: str, rows: Iterable[str], total: int, noun: str) -> None:
        """Add the rows that fit below a title, and how many do not."""
        if not total or not self.fits(title, " " * _LEFT_OUT_BYTES):
            return

        self.add(title)

        added = 0
        for row in rows:
            if not self.fits(row, " " * _LEFT_OUT_BYTES):
                break

            self.add(row)
            added += 1

        left_out = total - added
        if left_out:
            more = counted(left_out, f"more {noun}")
            self.add(f"\n{more} left out: no more room.\n")


def _heading(run: RunSummary) -> str:
    counts = Counter(result.outcome for result in run.results)
    words: list[str] = []
    for outcome in _ORDER:
        count = counts[outcome]
        if count:
            # The other words have no plural.
            is_noun = outcome == "error"
            words.append(counted(count, outcome) if is_noun else f"{count} {outcome}")

    if not words:
        words = ["no test ran"]

    shard = f" (shard {_encoded(run.shard, _MAX_TEXT)})" if run.shard else ""
    return f"Device tests{shard}: {', '.join(words)}"


def _sentences(run: RunSummary) -> Iterator[str]:
    if run.is_interrupted:
        yield "The run was interrupted."

    verdicts = {result.verdict for result in run.results if result.outcome in FAILED}
    if verdicts == {Verdict.INFRASTRUCTURE}:
        yield "Only infrastructure failed: running the job again may help."
    elif verdicts and "" not in verdicts:
        yield "No test itself failed: change what the errors name."


def _cells(result: TestResult, mask: Callable[[str], str]) -> Iterator[str]:
    yield _code(mask(result.test))
    yield f"{result.outcome}, {result.verdict}" if result.verdict else result.outcome
    # The cell before has the verdict.
    reason = mask(result.reason).removeprefix(f"{result.verdict}: ")
    lines = [reason, *map(mask, result.explanation)]
    yield "<br>".join(map(_code, lines))
    yield _device_cell(mask(result.device), mask(result.page))
    yield _encoded(result.minutes, _MAX_TEXT)
    yield _code(mask(result.files)) if result.files else ""


def _device_cell(device: str, page: str) -> str:
    """Return the device, linked to its session page; empty without either."""
    # Another scheme could run a script.
    if not page.startswith(("https://", "http://")):
        return _encoded(device, _MAX_TEXT)

    text = _encoded(device or "session page", _MAX_TEXT)
    return f'<a href="{_encoded(page, _MAX_LINE)}">{text}</a>'


def _retried(result: TestResult, mask: Callable[[str], str]) -> str:
    attempts = counted(len(result.repeated) + 1, "attempt")
    return (
        f"{_code(mask(result.test))}: {_code(mask(result.repeated[0]))} "
        f"({attempts}, the last one: {result.outcome})"
    )


def _quarantined(result: TestResult, mask: Callable[[str], str]) -> str:
    device = ""
    if result.device:
        device = f" ({_encoded(mask(result.device), _MAX_TEXT)})"

    return f"{_code(mask(result.test))}: {_code(mask(result.reason))}{device}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _code(text: str) -> str:
    """Return foreign text as code, where GitHub links no names and numbers either."""
    return f"<code>{_encoded(text, _MAX_TEXT)}</code>"


def _encoded(text: str, max_length: int) -> str:
    """Return foreign text in one line, cut if it is long, without any syntax."""
    line = " ".join(escaped(text).split())
    return shortened(line, max_length).translate(_ENTITIES)


def _size(text: str) -> int:
    return len(text.encode())
