"""Completes JUnit XML: the files of failed tests, and errors that are not the tests' own.

CI servers look for attachments as ``[[ATTACHMENT|path]]``.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from pytest_device.plugin.output.artifacts import files_in
from pytest_device.plugin.output.carriers import attached

if TYPE_CHECKING:
    import pytest


def add_attachments(
    report: "pytest.TestReport", config: "pytest.Config", directory: Path
) -> None:
    """Add a ``system-out`` element with a line for each file, if this run writes JUnit XML.

    Paths are relative to where pytest was started, if the files are below it: GitLab resolves them in the project's
    directory, Jenkins in the workspace.
    """
    from _pytest.junitxml import xml_key

    xml = config.stash.get(xml_key, None)
    files = attached(files_in(directory))
    if xml is None or not files:
        return

    start = config.invocation_params.dir
    paths = [
        os.path.relpath(path, start) if path.is_relative_to(start) else str(path)
        for path in files
    ]
    element = ET.Element("system-out")
    element.text = "\n".join(f"[[ATTACHMENT|{path}]]" for path in paths)
    xml.node_reporter(report).append(element)


def count_as_errors(path: Path, verdict_property: str) -> None:
    """Turn each ``<failure>`` with a verdict into an ``<error>``, in a file that pytest has written.

    pytest decides by the phase of a test: a device that fails during the call is a failure of the test. The file stays as
    it is if it cannot be read or written.
    """
    with suppress(OSError, ET.ParseError):
        tree = ET.parse(path)  # noqa: S314  # pytest has just written it
        for suite in tree.iter("testsuite"):
            failures = [
                failure
                for case in suite.iter("testcase")
                for failure in case.findall("failure")
                if _verdict_of(case, failure, verdict_property)
            ]
            for failure in failures:
                failure.tag = "error"

            _add(suite, "failures", -len(failures))
            _add(suite, "errors", len(failures))

        partial = path.with_name(f"{path.name}.partial")
        tree.write(partial, encoding="utf-8", xml_declaration=True)
        partial.replace(path)


def _verdict_of(case: ET.Element, failure: ET.Element, verdict_property: str) -> str:
    """Return the verdict of a failure, empty for one of the test itself."""
    verdicts = [
        str(property_element.get("value"))
        for property_element in case.iterfind("properties/property")
        if property_element.get("name") == verdict_property
    ]

    # The property may be about another phase.
    message = str(failure.get("message"))

    return next((word for word in verdicts if message.startswith(f"{word}: ")), "")


def _add(suite: ET.Element, name: str, number: int) -> None:
    suite.set(name, str(int(suite.get(name, "0")) + number))
