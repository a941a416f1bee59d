"""Masks secrets and escapes control characters in standard output and standard error."""

import os
import re
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, TextIO, cast

from pytest_device.escape import COLOR, escaped
from pytest_device.redact import Redactor

CLOSED_PIPE: Final = 141
"""The shells' exit status for a program ended by SIGPIPE."""


@contextmanager
def masked(*secrets: str) -> Generator[None]:
    """Mask these secrets, and texts that look like secrets, in all output of this process; escape the rest.

    Raises:
        SystemExit: With `CLOSED_PIPE`, if the reader of the output is gone, such as ``head``; with a message, if the
            output cannot be written, for example to a full disk.
    """
    redactor = Redactor(secrets)
    out = _Masked(_open_stream(sys.stdout), redactor)
    err = _Masked(_open_stream(sys.stderr), redactor)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        try:
            yield
        finally:
            # The interpreter flushes at its exit, too, but reports a closed pipe.
            out.flush()


def _open_stream(stream: TextIO | None) -> TextIO:
    """Return a stream, or one that discards everything in place of a closed one (``>&-``), which is None in Python."""
    if stream is not None:
        return stream

    # Until the end of the process: otherwise the next file that is opened would get the descriptor of the output.
    return Path(os.devnull).open("w", encoding="utf-8")


def print_annotations(lines: Iterable[str]) -> None:
    """Print annotations for the log of a GitHub job, which elsewhere would be escaped; the rest is left out.

    Each must be one line whose texts are encoded, so that no test can add a command of its own.
    """
    stream: Any = sys.stdout
    for line in lines:
        if _ANNOTATION.match(line):
            if isinstance(stream, _Masked):
                stream.write_command(line)
            else:
                stream.write(f"{line}\n")


_ANNOTATION: Final = re.compile(r"::(?:error|warning|notice)[ :]")


class _Masked:
    """A text stream that masks and escapes what is written to it."""

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor

    def write(self, text: str) -> int:
        # Doctor and argparse write colors to terminals.
        parts = COLOR.split(self._redactor.text(text))
        shown = "".join(
            part if COLOR.fullmatch(part) else escaped(part) for part in parts
        )
        with _ends_quietly(self._stream):
            self._stream.write(_encodable(shown, self._stream))

        return len(text)

    def write_command(self, line: str) -> None:
        """Write a line that begins with a command of a CI service."""
        # Behind another character, the command at the beginning is not escaped.
        text = escaped(f"_{self._redactor.text(line)}").removeprefix("_")
        with _ends_quietly(self._stream):
            self._stream.write(_encodable(f"{text}\n", self._stream))

    def flush(self) -> None:
        with _ends_quietly(self._stream):
            self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()


@contextmanager
def _ends_quietly(stream: TextIO) -> Generator[None]:
    """End the command if nobody reads a stream any longer, as SIGPIPE ends other programs: Python ignores it.

    SystemExit, since the commands report errors: that of another pipe, such as a program's, is an error.
    """
    try:
        yield
    except OSError as error:
        # What is still in the buffer must not fail again when the interpreter flushes it.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        if isinstance(error, BrokenPipeError):
            raise SystemExit(CLOSED_PIPE) from None

        raise SystemExit(
            f"pytest-device: cannot write the output: {error.strerror}"
        ) from None


def _encodable(text: str, stream: TextIO) -> str:
    """Return a text with the characters that a stream cannot encode as Python's escapes.

    The encoding of a pipe depends on the system: on Windows, few have all characters of a session's name.
    """
    encoding = getattr(stream, "encoding", None)
    if not encoding:
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)
