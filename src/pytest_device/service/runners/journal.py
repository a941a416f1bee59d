"""What the log of an Appium server tells: its last lines, that it listens, and when it was last used."""

import re
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from pytest_device.redact import Redactor

_TAIL_LINES: Final = 20
_LINE_LENGTH: Final = 300
_UNFINISHED_BYTES: Final = 65536
"""Of a line without an end so far; the rest of a longer one is read as lines of their own."""

_LISTENS: Final = "REST http interface listener started on"
_PORT_TAKEN: Final = "EADDRINUSE"

# "[HTTP] --> POST /session/ID/element {body}" when a command comes, "[HTTP] <-- ..." when it is answered; the
# number of the Appium session may stand before it. The same arrows for commands over the BiDi socket.
_COMMAND: Final = re.compile(r"^(?:\[\w+\])*(?:\[HTTP\] (-->|<--) [A-Z]+ /session\b|\[[^\]]+\] (-->|<--) BIDI message)")
# The body of a request is what a test types, passwords too.
_BODY: Final = re.compile(r"(\[HTTP\] --> [A-Z]+ \S+).*")


class Journal:
    """Reads the log as it comes, and keeps no more of it than it must."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lines: deque[str] = deque(maxlen=_TAIL_LINES)
        self._unfinished = b""
        self._running_commands = 0
        self._last_command: float | None = None
        self.listens = False
        self.port_taken = False

    @property
    def last_command(self) -> float | None:
        """When the server was last used (Unix seconds): now, while it carries out a command."""
        return self._clock() if self._running_commands else self._last_command

    @property
    def tail(self) -> str:
        """The last lines, indented, without secrets and without the bodies of requests."""
        return "\n".join(f"    {line}" for line in self._lines)

    def feed(self, output: bytes) -> None:
        """Read what the server has printed since the last time."""
        *lines, self._unfinished = (self._unfinished + output).split(b"\n")
        if len(self._unfinished) > _UNFINISHED_BYTES:
            lines, self._unfinished = [*lines, self._unfinished], b""
        for line in lines:
            self._read(line.decode(errors="replace").rstrip())

    def _read(self, line: str) -> None:
        self.listens |= _LISTENS in line
        self.port_taken |= _PORT_TAKEN in line
        if command := _COMMAND.match(line):
            self._count(command[1] or command[2])
        self._lines.append(Redactor().text(_BODY.sub(r"\1", line))[:_LINE_LENGTH])

    def _count(self, arrow: str) -> None:
        self._last_command = self._clock()
        self._running_commands = max(0, self._running_commands + (1 if arrow == "-->" else -1))
