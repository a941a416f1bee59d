"""Standard output and standard error without secrets."""

import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO, cast

from pytest_device.redact import Redactor


@contextmanager
def masked(*secrets: str) -> Generator[None]:
    """Mask these secrets, and whatever looks like one, in everything this process prints in the block."""
    redactor = Redactor(secrets)
    out, err = (cast("TextIO", _Masked(stream, redactor)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


class _Masked:
    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream, self._redactor = stream, redactor

    def write(self, text: str) -> int:
        self._stream.write(self._redactor.text(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()
