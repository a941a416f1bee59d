"""The last lines of a program's output."""

import re
from collections import deque
from functools import partial
from typing import Final

from pytest_device.redact import Redactor

TAIL_LINES: Final = 200
"""Lines to keep for the session page, also after the session: a service keeps those of many."""
LAST_LINES: Final = 20
"""Lines at the end of an error message."""
_LINE_LENGTH: Final = 300
_UNFINISHED_BYTES: Final = 65536
"""Maximum bytes of an unfinished line; the rest of a longer one becomes separate lines."""

# The body of a request has the text that a test types, including passwords.
_BODY: Final = re.compile(r"(\[HTTP\] --> [A-Z]+ \S+|Applying the initial values).*")


class OutputTail:
    """Keeps the last lines of a program's output, except those that match ``dropped``."""

    def __init__(self, dropped: str | None = None) -> None:
        self._dropped = re.compile(dropped) if dropped else None
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)
        self._unfinished = b""
        self._redactor = Redactor()

    def hide(self, secret: str) -> None:
        """Mask a secret in ``text`` from now on, also in earlier lines."""
        self._redactor.add(secret)

    @property
    def text(self) -> str:
        """The last lines, without secrets."""
        return self._redactor.text("\n".join(self._lines))

    @property
    def tail(self) -> str:
        """The last few lines, indented, for the end of a message."""
        return "\n".join(f"    {line}" for line in self.text.splitlines()[-LAST_LINES:])

    def feed(self, output: bytes) -> None:
        """Add new output of the program."""
        *lines, self._unfinished = (self._unfinished + output).split(b"\n")
        if len(self._unfinished) > _UNFINISHED_BYTES:
            lines.append(self._unfinished)
            self._unfinished = b""

        for line in lines:
            self.read(line.decode(errors="replace").rstrip())

    def close(self) -> None:
        """Add a last line without a line end."""
        if self._unfinished:
            self.feed(b"\n")

    def read(self, line: str) -> None:
        if not (self._dropped and self._dropped.search(line)):
            self._lines.append(self._redactor.text(line)[:_LINE_LENGTH])


class AppiumOutputTail(OutputTail):
    """The log of an Appium server, without typed text."""

    def read(self, line: str) -> None:
        super().read(_BODY.sub(r"\1", line))


TokenOutputTail: Final = partial(OutputTail, dropped=r"://\w+@|--token")
"""The output of a program that prints its token before it can be masked."""
