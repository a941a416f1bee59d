"""Output formats for findings: text and JSON."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pytest_device.figures import counted

if TYPE_CHECKING:
    from pytest_device.app import Finding

_SEVERITIES: Final = ("error", "warning", "note")


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="text",
        help="how to print findings (default: text)",
    )


def report(
    findings: "Iterable[Finding]",
    format: str,  # noqa: A002  # the option
    **facts: object,
) -> int:
    """Print findings and facts; return 1 if there are errors."""
    listed = list(findings)
    FORMATS[format](listed, facts)
    has_errors = any(finding.severity == "error" for finding in _failed(listed))
    return int(has_errors)


def _failed(findings: "Sequence[Finding]") -> "list[Finding]":
    return [finding for finding in findings if finding.status == "failed"]


def _location(finding: "Finding") -> str:
    """Return path, line and column, as far as they are known."""
    location = shown_path(finding.path).replace("\n", "\\n")
    if finding.line:
        location += f":{finding.line}"
    if finding.column:
        location += f":{finding.column}"
    return location


def shown_path(path: Path) -> str:
    """Return a path relative to the current directory if it is inside it."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


def _text(findings: "Sequence[Finding]", facts: Mapping[str, object]) -> None:
    for name, value in facts.items():
        for line in _lines(value):
            print(f"{name.replace('_', ' ')}: {line}")

    failed = _failed(findings)
    for finding in failed:
        print(
            f"{_location(finding)}: {finding.severity}: {finding.rule} [{finding.id}]"
        )
        print(f"    fix: {finding.fix}")

    for finding in findings:
        if finding.status == "skipped":
            print(f"skipped: {finding.rule} [{finding.id}]: {finding.fix}")

    counts: list[str] = []
    for severity in _SEVERITIES:
        number = sum(finding.severity == severity for finding in failed)
        counts.append(counted(number, severity))
    passed = sum(finding.status == "passed" for finding in findings)
    if passed:
        counts.append(f"{counted(passed, 'rule')} passed")
    print(", ".join(counts))


def _lines(value: object) -> "Iterator[str]":
    """Yield the lines of a fact: one for each record in a list of them."""
    if not isinstance(value, list):
        yield _as_text(value)
        return

    for record in cast("list[Mapping[str, str]]", value):
        yield " ".join(record.values()).replace(" :", ":").rstrip()


def _as_text(value: object) -> str:
    """Return a fact in one line: a mapping as pairs, a tuple as a list, anything else as it is."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return ", ".join(f"{name} {item}" for name, item in items) or "none"
    if isinstance(value, tuple):
        return ", ".join(cast("tuple[str, ...]", value)) or "none"
    return str(value)


def _json(findings: "Sequence[Finding]", facts: Mapping[str, object]) -> None:
    listed: list[dict[str, object]] = []
    for finding in findings:
        fields = {name: getattr(finding, name) for name in finding.__slots__}
        listed.append({**fields, "path": shown_path(finding.path)})
    print(json.dumps({**facts, "findings": listed}, default=dict))


FORMATS: Final[
    Mapping[str, "Callable[[Sequence[Finding], Mapping[str, object]], None]"]
] = {"text": _text, "json": _json}
