"""Names the files of a failed test in JUnit XML, as CI servers look for attachments: ``[[ATTACHMENT|path]]``."""

import os
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from pytest_device.plugin.output.carriers import attached

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def add_attachments(
    report: "pytest.TestReport", config: "pytest.Config", directory: "Path"
) -> None:
    """Add a ``system-out`` element with a line for each file, if this run writes JUnit XML.

    Paths are relative to where pytest was started, if the files are below it: GitLab resolves them in the project's
    directory, Jenkins in the workspace.
    """
    from _pytest.junitxml import xml_key

    xml = config.stash.get(xml_key, None)
    files = attached(directory)
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
