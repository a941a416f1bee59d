"""Encoding and decoding of ``multipart/mixed`` replies, byte for byte, since signatures cover bytes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from pytest_device.errors import hides_frames
from pytest_device.updates.protocol import Reply
from pytest_device.updates.values import UpdateError

__tracebackhide__ = hides_frames

PARTS: Final = "multipart/mixed"
_MAX_PARTS: Final = 16
_MAX_HEAD_BYTES: Final = 64 * 1024
"""Maximum size of the headers of a part, as large as HTTP libraries accept those of a reply."""
_PARAMETER: Final = re.compile(
    r""";[ \t]*+([!#$%&'*+.^_`|~\w-]*+)[ \t]*+(?:=[ \t]*+("(?:[^"\\]++|\\.)*+"|[^;"]*+))?+[^;]*+""",
    re.ASCII,
)
"""A parameter of a header (RFC 9110 section 5.6.6); each group gives nothing back, so that the time is linear."""
_BOUNDARY: Final = "part-of-the-update"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a reply; header names are lowercase."""

    name: str
    headers: Mapping[str, str]
    body: bytes


def whole_of(part: Part) -> tuple[str, bytes]:
    """Encode a part as a multipart reply, and return its content type and body."""
    lines = {"content-disposition": f'form-data; name="{part.name}"', **part.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    body = (
        f"--{_BOUNDARY}\r\n{head}\r\n".encode()
        + part.body
        + f"\r\n--{_BOUNDARY}--\r\n".encode()
    )
    return f"{PARTS}; boundary={_BOUNDARY}", body


def refuse(problem: str) -> NoReturn:
    raise UpdateError(problem, code="malformed")


def parts_of(reply: Reply) -> list[Part]:
    """Decode the parts of a reply; a reply that isn't multipart is a single manifest."""
    kind = reply.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != PARTS:
        return [Part("manifest", reply.headers, reply.body)]
    if not (boundary := _parameter(kind, "boundary")):
        refuse("the reply has no boundary between its parts")
    _, *pieces = (b"\r\n" + reply.body).split(
        b"\r\n--" + boundary.encode(), _MAX_PARTS + 1
    )
    ends = [index for index, piece in enumerate(pieces) if piece.startswith(b"--")]
    if not ends:
        refuse(f"the reply is truncated or has more than {_MAX_PARTS} parts")
    return [_part(piece) for piece in pieces[: ends[0]]]


def _part(piece: bytes) -> Part:
    head, end, body = piece.partition(b"\r\n\r\n")
    if not end:
        refuse("a part of the reply has unterminated headers")
    if len(head) > _MAX_HEAD_BYTES:
        refuse(f"the headers of a part are larger than {_MAX_HEAD_BYTES // 1024} kB")
    try:
        # RFC 5322 section 2.2.3.
        unfolded = re.sub(r"\r\n(?=[ \t])", "", head.decode("utf-8"))
        lines = [line.partition(":") for line in unfolded.split("\r\n") if line.strip()]
    except UnicodeDecodeError:
        refuse("the headers of a part are not UTF-8")
    headers = {name.strip().lower(): value.strip() for name, _, value in lines}
    return Part(
        _parameter(headers.get("content-disposition", ""), "name"), headers, body
    )


def _parameter(header: str, name: str) -> str:
    """Return a parameter of a header, or an empty string."""
    _, semicolon, parameters = header.partition(";")
    for found in _PARAMETER.finditer(semicolon + parameters):
        value = found[2]
        if found[1].lower() != name or value is None:
            continue
        return (
            re.sub(r"\\(.)", r"\1", value[1:-1])
            if value.startswith('"')
            else value.strip()
        )
    return ""
