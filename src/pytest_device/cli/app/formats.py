"""Output formats for findings: text, JSON, SARIF and GitHub annotations."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from pytest_device.escape import escaped

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
    known = list(findings)
    FORMATS[format](known, rules, facts)
    return int(any(one.status == "failed" and one.severity == "error" for one in known))


def _failed(findings: "Sequence[Finding]") -> "list[Finding]":
    return [one for one in findings if one.status == "failed"]


def _place(finding: "Finding") -> str:
    path = shown_path(finding.path).replace("\n", "\\n")
    return ":".join(map(str, filter(None, (path, finding.line, finding.column))))


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

    for one in _failed(findings):
        print(
            f"{_place(one)}: {one.severity}: {one.rule} [{one.id}]\n    fix: {one.fix}"
        )

    for one in findings:
        if one.status == "skipped":
            print(f"skipped: {one.rule} [{one.id}]: {one.fix}")

    passed = sum(one.status == "passed" for one in findings)
    counts = [
        (severity, sum(one.severity == severity for one in _failed(findings)))
        for severity in _ANNOTATIONS
    ]
    kept = [("rule passed", passed)] if passed else []
    print(", ".join(_counted(noun, count) for noun, count in (*counts, *kept)))


def _counted(noun: str, count: int) -> str:
    first, _, rest = noun.partition(" ")
    return f"{count} {first}{'' if count == 1 else 's'} {rest}".rstrip()


def _lines(value: object) -> "Iterator[str]":
    """Yield the lines of a fact: one for each record in a list of them."""
    if not isinstance(value, list):
        yield _listed(value)
        return
    for record in cast("list[Mapping[str, str]]", value):
        yield " ".join(record.values()).replace(" :", ":").rstrip()


def _listed(value: object) -> str:
    if isinstance(value, Mapping):
        return (
            ", ".join(
                f"{name} {one}"
                for name, one in cast("Mapping[str, object]", value).items()
            )
            or "none"
        )

    return (
        ", ".join(cast("tuple[str, ...]", value)) or "none"
        if isinstance(value, tuple)
        else str(value)
    )


def _json(
    findings: "Sequence[Finding]", _: Mapping[str, str], facts: Mapping[str, object]
) -> None:
    listed = [
        {
            name: shown_path(one.path) if name == "path" else getattr(one, name)
            for name in one.__slots__
        }
        for one in findings
    ]
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
        "results": [_result(one) for one in failed],
        "properties": dict(facts),
    }
    print(
        json.dumps(
            {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, default=dict
        )
    )


_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def _result(finding: "Finding") -> dict[str, object]:
    region = (
        {"startLine": finding.line, "startColumn": finding.column}
        if finding.line
        else None
    )
    place = {
        "artifactLocation": {"uri": quote(os.fsencode(shown_path(finding.path)))}
    } | ({"region": region} if region else {})

    return {
        "ruleId": finding.id,
        "level": finding.severity,
        "message": {"text": f"{finding.rule}. Fix: {finding.fix}"},
        "locations": [{"physicalLocation": place}],
    }


def _github(
    findings: "Sequence[Finding]", _: Mapping[str, str], _facts: Mapping[str, object]
) -> None:
    for one in _failed(findings):
        place = f"file={_property(shown_path(one.path))}" + (
            f",line={one.line},col={one.column}" if one.line else ""
        )
        message = (
            escaped(f"{one.rule}. Fix: {one.fix} [{one.id}]")
            .replace("%", "%25")
            .replace("\n", "%0A")
        )
        # Bypass output escaping, which would break workflow commands.
        sys.__stdout__.write(
            f"::{_ANNOTATIONS[one.severity]} {place}::{message}\n"
        ) if sys.__stdout__ else None


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
