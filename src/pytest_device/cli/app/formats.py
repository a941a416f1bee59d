"""Output formats for findings: text, JSON, SARIF and GitHub annotations."""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from pytest_device.cli.masked import print_annotations
from pytest_device.escape import escaped
from pytest_device.figures import counted

if TYPE_CHECKING:
    from pytest_device.app import Finding

_ANNOTATIONS: Final = {"error": "error", "warning": "warning", "note": "notice"}
"""GitHub's words for the severities."""


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
    rules: Mapping[str, str],
    **facts: object,
) -> int:
    """Print findings, and facts if the format supports them; return 1 if there are errors.

    ``rules`` describes the rule of each finding that the command can report, by ID.
    """
    listed = list(findings)
    FORMATS[format](listed, rules, facts)
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


def _text(
    findings: "Sequence[Finding]", _: Mapping[str, str], facts: Mapping[str, object]
) -> None:
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
    for severity in _ANNOTATIONS:
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


def _json(
    findings: "Sequence[Finding]", _: Mapping[str, str], facts: Mapping[str, object]
) -> None:
    listed: list[dict[str, object]] = []
    for finding in findings:
        fields = {name: getattr(finding, name) for name in finding.__slots__}
        listed.append({**fields, "path": shown_path(finding.path)})
    print(json.dumps({**facts, "findings": listed}, default=dict))


def _sarif(
    findings: "Sequence[Finding]", rules: Mapping[str, str], facts: Mapping[str, object]
) -> None:
    failed = _failed(findings)
    broken = dict.fromkeys(finding.id for finding in failed)
    described = [
        {"id": name, "shortDescription": {"text": rules[name]}} for name in broken
    ]
    driver = {"name": "pytest-device", "rules": described}
    run = {
        "tool": {"driver": driver},
        "results": [_result(finding) for finding in failed],
        "properties": dict(facts),
    }
    print(
        json.dumps(
            {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, default=dict
        )
    )


_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def _result(finding: "Finding") -> dict[str, object]:
    uri = quote(os.fsencode(shown_path(finding.path)))
    location: dict[str, object] = {"artifactLocation": {"uri": uri}}
    if finding.line:
        location["region"] = {
            "startLine": finding.line,
            "startColumn": finding.column,
        }

    return {
        "ruleId": finding.id,
        "level": finding.severity,
        "message": {"text": f"{finding.rule}. Fix: {finding.fix}"},
        "locations": [{"physicalLocation": location}],
    }


def _github(
    findings: "Sequence[Finding]", _: Mapping[str, str], _facts: Mapping[str, object]
) -> None:
    for finding in _failed(findings):
        properties = f"file={_property(shown_path(finding.path))}"
        if finding.line:
            properties += f",line={finding.line},col={finding.column}"
        message = (
            escaped(f"{finding.rule}. Fix: {finding.fix} [{finding.id}]")
            .replace("%", "%25")
            .replace("\n", "%0A")
        )
        command = _ANNOTATIONS[finding.severity]
        print_annotations([f"::{command} {properties}::{message}"])


def _property(text: str) -> str:
    return (
        escaped(text)
        .replace("%", "%25")
        .replace("\n", "%0A")
        .replace(":", "%3A")
        .replace(",", "%2C")
    )


FORMATS: Final[
    Mapping[
        str,
        "Callable[[Sequence[Finding], Mapping[str, str], Mapping[str, object]], None]",
    ]
] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}
