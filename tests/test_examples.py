"""Example suites are skipped if their requirements are not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
WITHOUT_BDD = "import sys; sys.modules['pytest_bdd'] = None; import pytest; sys.exit(pytest.main())"


@pytest.mark.nightly
def test_scenarios_are_skipped_without_pytest_bdd() -> None:
    command = [
        sys.executable,
        "-c",
        WITHOUT_BDD,
        "-p",
        "pytest_device.plugin",
        "-p",
        "no:cacheprovider",
    ]

    result = subprocess.run(
        [*command, "--collect-only", "bdd", "preview"],
        cwd=EXAMPLES,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert "could not import 'pytest_bdd'" in result.stdout
