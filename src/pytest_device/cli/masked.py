"""Masks secrets and escapes control characters in standard output and standard error."""

import re
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Final, TextIO, cast

from pytest_device.escape import escaped
from pytest_device.redact import Redactor


@contextmanager
def masked(*secrets: str) -> Generator[None]:
    """Mask these secrets, and texts that look like secrets, in all output of this process; escape the rest."""
    redactor = Redactor(secrets)
    out, err = (
        cast("TextIO", _Masked(stream, redactor)) for stream in (sys.stdout, sys.stderr)
    )
    with redirect_stdout(out), redirect_stderr(err):
        yield


_COLOR: Final = re.compile(r"(\x1b\[[0-9;]*m)")
"""Color codes, which doctor and argparse write to terminals."""


class _Masked:
    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream, self._redactor = stream, redactor

    def write(self, text: str) -> int:
        parts = _COLOR.split(self._redactor.text(text))
        self._stream.write(
            "".join(part if _COLOR.fullmatch(part) else escaped(part) for part in parts)
        )
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()
