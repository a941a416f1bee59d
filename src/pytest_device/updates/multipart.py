"""Encoding and decoding of ``multipart/mixed`` replies, byte for byte, since signatures cover bytes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from pytest_device.errors import hides_frames
from pytest_device.updates.protocol import Reply
from pytest_device.updates.values import UpdateError

__tracebackhide__ = hides_frames

MULTIPART: Final = "multipart/mixed"
_MAX_PARTS: Final = 16
"""Maximum number of parts in a reply, of which one is read: the manifest or the directive."""
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


def encode_multipart(part: Part) -> tuple[str, bytes]:
    """Encode a part as a multipart reply, and return its content type and body."""
    headers = {"content-disposition": f'form-data; name="{part.name}"', **part.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    before = f"--{_BOUNDARY}\r\n{head}\r\n".encode()
    after = f"\r\n--{_BOUNDARY}--\r\n".encode()

    return f"{MULTIPART}; boundary={_BOUNDARY}", before + part.body + after


def refuse(problem: str) -> NoReturn:
    """Raise the error of a message that violates the protocol."""
    raise UpdateError(problem, code="malformed")


def decode_multipart(reply: Reply) -> list[Part]:
    """Decode the parts of a reply; a reply that isn't multipart is a single manifest."""
    header = reply.headers.get("content-type", "")
    content_type, _, _ = header.partition(";")
    if content_type.strip().lower() != MULTIPART:
        return [Part("manifest", reply.headers, reply.body)]

    boundary = _parameter(header, "boundary")
    if not boundary:
        refuse("the reply has no boundary between its parts")

    # The line break before a boundary belongs to it (RFC 2046 section 5.1.1); the first boundary may have none.
    delimiter = b"\r\n--" + boundary.encode()
    _preamble, *pieces = (b"\r\n" + reply.body).split(delimiter, _MAX_PARTS + 1)

    for index, piece in enumerate(pieces):
        if piece.startswith(b"--"):
            return [_part(part) for part in pieces[:index]]

    refuse(f"the reply is truncated or has more than {_MAX_PARTS} parts")


def _part(piece: bytes) -> Part:
    head, separator, body = piece.partition(b"\r\n\r\n")
    if not separator:
        refuse("a part of the reply has unterminated headers")
    if len(head) > _MAX_HEAD_BYTES:
        refuse(f"the headers of a part are larger than {_MAX_HEAD_BYTES // 1024} kB")

    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        refuse("the headers of a part are not UTF-8")

    headers: dict[str, str] = {}
    # A line that begins with a blank continues the one before (RFC 5322 section 2.2.3).
    for line in re.sub(r"\r\n(?=[ \t])", "", text).split("\r\n"):
        if line.strip():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()

    disposition = headers.get("content-disposition", "")

    return Part(_parameter(disposition, "name"), headers, body)


def _parameter(header: str, name: str) -> str:
    """Return a parameter of a header, or an empty string."""
    _, semicolon, parameters = header.partition(";")

    for match in _PARAMETER.finditer(semicolon + parameters):
        value = match[2]
        if match[1].lower() != name or value is None:
            continue
        if value.startswith('"'):
            return re.sub(r"\\(.)", r"\1", value[1:-1])

        return value.strip()

    return ""
