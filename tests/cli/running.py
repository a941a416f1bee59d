"""Ways to run ``pytest-device``."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from pytest_device.cli import main
from tests import forking

CODE = forking.COMMAND[-1]
COMMAND = [sys.executable, *forking.COMMAND]
WITHOUT_EXTRA_MODULES = (
    "import sys; sys.modules |= dict.fromkeys(('starlette', 'uvicorn', 'psutil'))"
)
WITHOUT_EXTRA = f"{WITHOUT_EXTRA_MODULES}; {CODE}"


def run(
    *arguments: str,
    code: str = CODE,
    cwd: Path | None = None,
    before: Sequence[str] = (),
    **environ: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process, through the command ``before``."""
    return subprocess.run(
        [*before, sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=cwd,
        env={**os.environ, **environ},
    )


def call(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which is faster."""
    out, err = StringIO(), StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        for name, value in environ.items():
            patch.setenv(name, value)
        try:
            status = main(arguments)
        except SystemExit as exit_:
            status = int(str(exit_.code))
    return subprocess.CompletedProcess(
        arguments, status, out.getvalue(), err.getvalue()
    )
