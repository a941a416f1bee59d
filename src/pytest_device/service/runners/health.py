"""Checks whether a session's program answers over HTTP."""

import asyncio
import http.client
import json
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

_HOST: Final = "127.0.0.1"
_ANSWER_SECONDS: Final = 5.0


async def answers(port: int, path: str, is_good: Callable[[Any], bool], *, token: str = "") -> bool:
    """Return whether a port of this machine answers a GET request with good JSON."""
    return await asyncio.to_thread(_answers, port, path, is_good, token)


def _answers(port: int, path: str, is_good: Callable[[Any], bool], token: str) -> bool:
    connection = http.client.HTTPConnection(_HOST, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        reply = connection.getresponse()
        return reply.status == HTTPStatus.OK and is_good(json.load(reply))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return False  # not yet
    finally:
        connection.close()


def noted(path: Path, port: str) -> tuple[int, str]:
    """Return the port and the token that a program has written to a JSON file, 0 and "" until it has."""
    try:
        notes = json.loads(path.read_text())
        return int(notes[port]), str(notes["token"])
    except (OSError, ValueError, KeyError):
        return 0, ""
