"""The summary of a GitHub job: Markdown, below the size that the service accepts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import punctuation
from typing import Final

from pytest_device.escape import escaped
from pytest_device.figures import counted
from pytest_device.report.phase import FAILED
from pytest_device.report.test_result import TestResult
from pytest_device.verdict import Verdict

MAX_BYTES: Final = 1_000_000
"""GitHub refuses the whole summary of a step if it exceeds 1 MiB."""
_MAX_TEXT: Final = 300
"""Characters of a name or an error."""
_MAX_LINE: Final = 1000
_MAX_LINES: Final = 50
"""Lines about devices: more of one kind are counted anyway."""
_LEFT_OUT_BYTES: Final = 200
"""Room for the line that says how much is left out."""
_ENTITIES: Final = {ord(sign): f"&#{ord(sign)};" for sign in punctuation}
"""A character reference is never syntax: neither Markdown's, nor a table's, nor HTML's."""
_ORDER: Final = (
    *("failed", "error", "passed", "skipped", "xfailed", "xpassed"),
    *("quarantined", "retried", "rerun"),
)
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

    ``mask`` is applied to each text of a test before it is encoded.
    """
    head = "\n\n".join([f"### {_heading(run)}", *_sentences(run)])
    shown = [_encoded(mask(line), _MAX_LINE) for line in run.lines[:_MAX_LINES]]
    if left := len(run.lines) - len(shown):
        shown.append(f"{counted(left, 'more line')} in the log")

    lines = "".join(f"- {line}\n" for line in shown)
    devices = f"\n#### Devices\n\n{lines}" if lines else ""
    page = _Page(room)
    if not page.fits(f"{head}\n", devices):
        return ""

    page.add(f"{head}\n")
    page.reserve(devices)
    _add_results(page, run, mask)
    page.release(devices)
    return page.text


def _add_results(page: "_Page", run: RunSummary, mask: Callable[[str], str]) -> None:
    """Add the tests that failed, were retried or are in quarantine, as far as there is room."""
    failed = [result for result in run.results if result.outcome in FAILED]
    failed.sort(
        key=lambda result: bool(result.verdict)
    )  # what a test found comes first
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

    excused = [result for result in run.results if result.outcome == "quarantined"]
    page.add_all(
        "\n#### Quarantined\n\n",
        (
            f"- {_code(mask(result.test))}: {_code(mask(result.reason))}{_device(result, mask)}\n"
            for result in excused
        ),
        len(excused),
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

        if left := total - added:
            self.add(f"\n{counted(left, f'more {noun}')} left out: no more room.\n")


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
        yield "Every failure is one of the infrastructure: running the job again may help."
    elif verdicts and "" not in verdicts:
        yield "No test itself failed: change what the errors name."


def _cells(result: TestResult, mask: Callable[[str], str]) -> Iterator[str]:
    yield _code(mask(result.test))
    yield f"{result.outcome}, {result.verdict}" if result.verdict else result.outcome
    reason = mask(result.reason).removeprefix(f"{result.verdict}: ")
    lines = [reason, *map(mask, result.explanation)]
    yield "<br>".join(map(_code, lines))
    yield _linked(
        mask(result.device) or "session page", mask(result.page), result.device
    )
    yield _encoded(result.minutes, _MAX_TEXT)
    yield _code(mask(result.files)) if result.files else ""


def _linked(text: str, page: str, device: str) -> str:
    if page.startswith(("https://", "http://")):
        return f'<a href="{_encoded(page, _MAX_LINE)}">{_encoded(text, _MAX_TEXT)}</a>'
    return _encoded(text, _MAX_TEXT) if device else ""


def _retried(result: TestResult, mask: Callable[[str], str]) -> str:
    attempts = counted(len(result.repeated) + 1, "attempt")
    return (
        f"{_code(mask(result.test))}: {_code(mask(result.repeated[0]))} "
        f"({attempts}, the last one: {result.outcome})"
    )


def _device(result: TestResult, mask: Callable[[str], str]) -> str:
    return f" ({_encoded(mask(result.device), _MAX_TEXT)})" if result.device else ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _code(text: str) -> str:
    """Return foreign text as code, where GitHub links no names and numbers either."""
    return f"<code>{_encoded(text, _MAX_TEXT)}</code>"


def _encoded(text: str, most: int) -> str:
    """Return foreign text in one line, cut if it is long, without any syntax."""
    line = " ".join(escaped(text).split())
    cut = line if len(line) <= most else f"{line[: most - 1]}…"
    return cut.translate(_ENTITIES)


def _size(text: str) -> int:
    return len(text.encode())
