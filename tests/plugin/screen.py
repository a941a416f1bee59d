"""A pseudo-terminal for a pytest run, and what a user sees on it."""

import codecs
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import Self

_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def lines_on_screen(text: str, columns: int) -> list[str]:
    """Return what a terminal shows of a text with returns, line ends and margins, without blanks at the ends."""
    lines: list[list[str]] = [[]]
    column = 0
    for sign in _COLORS.sub("", text):
        if sign == "\r":
            column = 0
        elif sign == "\n":
            lines.append([])  # a program's line end comes with a return
        else:
            # Only now: at the margin the cursor waits for a sign to put into the next line.
            if column == columns:
                lines.append([])
                column = 0
            lines[-1] += " " * (column + 1 - len(lines[-1]))
            lines[-1][column] = sign
            column += 1
    return ["".join(line).rstrip() for line in lines]


class TerminalRun:
    """A run of pytest on a terminal; ``raw`` is what it has written."""

    def __init__(self, *args: str, columns: int = 100, keyboard: bool = False) -> None:
        self.raw = ""
        self._columns = columns
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (50, columns))
        # Without readline's COLUMNS.
        command, environ = (
            [sys.executable, "-m", "pytest", *args],
            dict(os.environ),
        )
        keys = slave if keyboard else subprocess.DEVNULL
        self.process = subprocess.Popen(
            command, stdin=keys, stdout=slave, stderr=slave, env=environ
        )
        os.close(slave)

    def read_until(self, condition: Callable[[Self], bool]) -> Self:
        """Read until the condition holds, or to the end."""
        while not condition(self) and (more := self._more()):
            self.raw += self._decoder.decode(more)
        return self

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def finish(self) -> Self:
        """Read to the end."""
        self.read_until(lambda _: False)
        self.process.wait()
        os.close(self._master)
        return self

    def _more(self) -> bytes:
        try:
            return os.read(self._master, 65536)
        except OSError:  # on Linux this is how a terminal ends
            return b""

    def lines(self) -> list[str]:
        """Return what is on the screen."""
        return lines_on_screen(self.raw, self._columns)
