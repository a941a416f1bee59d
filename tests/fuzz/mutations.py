"""Mutations of a response in transit: corrupt, swapped, enlarged, relabeled, truncated."""

import copy
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, cast
from uuid import UUID

import httpx

from pytest_device.sessions.replies import MAX_REPLY_BYTES

Chunk = bytes | httpx.HTTPError
"""The next part to arrive: bytes, or the end of the connection."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])
    chunks: tuple[Chunk, ...] | None = None
    """How the body arrives; whole when None."""

    def arriving(self) -> Iterator[Chunk]:
        yield from (self.body,) if self.chunks is None else self.chunks


Mutation = Callable[[Reply, Random], Reply]

HOSTILE_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    116,
    2**63,
    10**400,
    -0.0,
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "x" * 5000,
    "\x1b[2J\x1b[31m",
    "two\nlines",
    "\ud800",
    "\u202e",
    "null",
    "IN_PROGRESS",
    "https://[::1",
    "http://\u0000",
    "https://user:word@host.example/",
    "file:///etc/passwd",
    "9" * 5000,
    "0000-00-00T00:00:00.000Z",
    "9999-12-31T23:59:59.999-23:59",
    "0001-01-01T00:00:00.000+23:59",
    "1e400",
    [],
    {},
    [[]],
    {"": ""},
    [None] * 50,
    {"id": "x"},
    {"data": {"id": 1}},
)
STATUSES: Final = (
    100,
    102,
    200,
    201,
    202,
    204,
    206,
    226,
    299,
    301,
    304,
    307,
    399,
    400,
    401,
    403,
    404,
    405,
    409,
    410,
)
MORE_STATUSES: Final = (
    418,
    421,
    422,
    425,
    429,
    451,
    499,
    500,
    501,
    502,
    503,
    504,
    511,
    520,
    599,
    600,
    700,
    999,
)


def mutated(reply: Reply, random: Random) -> Reply:
    """Return the response after one to three mutations."""
    for mutation in random.choices(MUTATIONS, k=random.choice((1, 1, 1, 2, 3))):
        reply = mutation(reply, random)
    return reply


def flipped(reply: Reply, random: Random) -> Reply:
    body = bytearray(reply.body)
    for _ in range(min(random.choice((1, 2, 8, 64)), len(body))):
        body[random.randrange(len(body))] = random.randrange(256)
    return replace(reply, body=bytes(body))


def truncated(reply: Reply, random: Random) -> Reply:
    return replace(reply, body=reply.body[: random.randrange(len(reply.body) + 1)])


def swapped(reply: Reply, random: Random) -> Reply:
    """Replace or remove a value somewhere in the JSON."""
    value = json_of(reply)
    holder, key = random.choice(list(places(value)) or [([value], 0)])
    if random.random() < 0.2:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(random.choice(HOSTILE_VALUES))
    return replace(reply, body=dumped(value))


def nested(reply: Reply, random: Random) -> Reply:
    """Insert deep nesting into the JSON as text, since it may exceed a parser's limit."""
    depth = random.choice((10, 100, 300, 900, 5_000, 100_000))
    start, end = random.choice((("[", "]"), ('{"a":', "}")))
    return in_place_of_a_value(reply, random, start * depth + "1" + end * depth)


def huge_number(reply: Reply, random: Random) -> Reply:
    numbers = (
        "9" * 400,
        "9" * 5000,
        "-1e999",
        "1e-999",
        "NaN",
        "-Infinity",
        "0." + "3" * 2000,
        "00",
        "1_000",
        "٣",
    )
    return in_place_of_a_value(reply, random, random.choice(numbers))


def other_id(reply: Reply, random: Random) -> Reply:
    """Put another id, or another form of the id, into the session."""
    value = json_of(reply)
    session = value.get("data") if isinstance(value, dict) else None
    if not isinstance(session, dict) or "id" not in session:
        return reply
    other = str(UUID(int=random.getrandbits(128)))
    own = str(session["id"])
    forms = (
        other,
        other.upper(),
        own.upper(),
        own.replace("-", ""),
        f"{{{own}}}",
        f"urn:uuid:{own}",
        own[:-1],
        "..",
    )
    session["id"] = random.choice(forms)
    return replace(reply, body=dumped(value))


def duplicated(reply: Reply, random: Random) -> Reply:
    """Name a member twice, with another value before or after the first."""
    keys = [key for _holder, key in places(json_of(reply)) if isinstance(key, str)]
    if not keys:
        return reply
    key = json.dumps(random.choice(keys)).encode()
    again = key + b": " + dumped(random.choice(HOSTILE_VALUES))
    before, found, after = reply.body.partition(key)
    if not found:
        return reply
    if random.random() < 0.5:
        return replace(reply, body=before + again + b", " + found + after)
    return replace(reply, body=reply.body.replace(b"}", b", " + again + b"}", 1))


def recoded(reply: Reply, random: Random) -> Reply:
    text = reply.body.decode("utf-8", errors="replace").replace("job", "jöb")
    encoding = random.choice(
        ("utf-16", "utf-16-le", "utf-32-be", "latin-1", "utf-8-sig", "cp037", "utf-7")
    )
    return replace(reply, body=text.encode(encoding, errors="replace"))


def relabelled(reply: Reply, random: Random) -> Reply:
    return replace(reply, status=random.choice((*STATUSES, *MORE_STATUSES)))


def with_headers(reply: Reply, random: Random) -> Reply:
    headers = (
        {
            "Content-Type": random.choice(
                (
                    "text/html",
                    "application/json; charset=utf-16",
                    "",
                    "\xff",
                    "x" * 9000,
                )
            )
        },
        {
            "Content-Encoding": random.choice(
                ("identity", "IDENTITY", "gzip", "br", "deflate, gzip", "nonsense")
            )
        },
        {"Content-Length": random.choice(("0", "-1", "5", "1e9", "9" * 50, "x"))},
        {
            "Location": random.choice(
                ("/", "https://elsewhere.example/", "\xff", "//", "http://[::1")
            )
        },
        {"Set-Cookie": "a=b; Domain=.example; Expires=Thu, 99 Jan 99999 00:00:00 GMT"},
        {
            "Retry-After": "999999999999",
            "Transfer-Encoding": "chunked, gzip",
            "Connection": "close",
        },
        {f"X-{number}": "y" * 100 for number in range(200)},
    )
    return replace(reply, headers=reply.headers | random.choice(headers))


def packed(reply: Reply, random: Random) -> Reply:
    body = gzip.compress(reply.body)
    return replace(
        reply,
        body=body[: random.choice((10, len(body)))],
        headers={"Content-Encoding": "gzip"},
    )


def wrapped(reply: Reply, random: Random) -> Reply:
    before, after = random.choice(
        (
            (b"[", b"]"),
            (b"", b"\n"),
            (b"\xef\xbb\xbf", b""),
            (b")]}',\n", b""),
            (b"\0", b"\0"),
            (b'{"data":', b"}"),
            (b"<html><script>", b""),
            (b"<!--", b"-->"),
            (b'<a title="' + b"<" * 3000, b""),
            (b'"', b'"'),
            (b'{"errors":', b"}"),
            (b'{"data":[', b"]}"),
            (b'{"error":{"message":', b"}}"),
            (b"1 ", b" 2"),
        )
    )
    return replace(reply, body=before + reply.body + after)


def repeated(reply: Reply, random: Random) -> Reply:
    return replace(reply, body=reply.body * random.choice((0, 2, 30)))


def swollen(reply: Reply, random: Random) -> Reply:
    size = random.choice(
        (
            MAX_REPLY_BYTES // 50,
            MAX_REPLY_BYTES // 50,
            MAX_REPLY_BYTES - 2000,
            2 * MAX_REPLY_BYTES,
        )
    )
    padding = random.choice((b" ", b"\n", b"\0", b"x", b"<", b'"id" : ', b"[],"))
    return replace(reply, body=reply.body + padding * (size // len(padding)))


def broken_off(reply: Reply, random: Random) -> Reply:
    errors = (
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("incomplete"),
        httpx.ReadTimeout("late"),
    )
    return replace(
        reply,
        chunks=(
            reply.body[: random.randrange(len(reply.body) + 1)],
            random.choice(errors),
        ),
    )


def scattered(reply: Reply, random: Random) -> Reply:
    size = random.choice((1, 7, 100))
    return replace(
        reply,
        chunks=tuple(
            reply.body[start : start + size]
            for start in range(0, len(reply.body), size)
        ),
    )


MUTATIONS: Final[tuple[Mutation, ...]] = (
    flipped,
    flipped,
    truncated,
    swapped,
    swapped,
    swapped,
    nested,
    huge_number,
    other_id,
    duplicated,
    duplicated,
    recoded,
    relabelled,
    relabelled,
    with_headers,
    packed,
    wrapped,
    repeated,
    swollen,
    broken_off,
    scattered,
)


def json_of(reply: Reply) -> Any:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


def places(value: object) -> Iterator[tuple[Any, str | int]]:
    """Yield each container inside some JSON with each of its keys."""
    left = [value] if isinstance(value, dict | list) else []
    while left:
        holder = left.pop()
        keys: Any = holder if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
        left += [
            inner
            for inner in (cast("Any", holder)[key] for key in keys)
            if isinstance(inner, dict | list)
        ]


def in_place_of_a_value(reply: Reply, random: Random, text: str) -> Reply:
    value = json_of(reply)
    found = list(places(value)) if isinstance(value, dict | list) else []
    if not found:
        return replace(reply, body=text.encode())
    holder, key = random.choice(found)
    holder[key] = "in-place-of-this"
    return replace(
        reply, body=dumped(value).replace(b'"in-place-of-this"', text.encode())
    )
