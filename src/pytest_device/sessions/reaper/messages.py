"""JSON, one value a line, over sockets and pipes."""

import json
from typing import Any


class Lines:
    """What has arrived of a stream, until its lines are whole."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the values that these bytes complete."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in whole]


def line(**values: Any) -> bytes:
    """Return one line."""
    return json.dumps(values).encode() + b"\n"
