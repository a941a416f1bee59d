"""Reads what a PNG image is made of, in bounded memory: its pixels only if it has an expected size."""

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from pytest_device.regular_files import open_regular

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
MAX_BYTES: Final = 1024 * 1024
"""Size limit for images whose pixels are checked, in bytes."""
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Number of values of a pixel, by type of color: gray, red-green-blue, palette, gray and alpha, red-green-blue-alpha."""
_PALETTE: Final = 3
_HEADER_BYTES: Final = 25
"""Size of the first chunk: its length, kind, content and checksum."""
_PASSES: Final = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""Of an interlaced image: the first column and row, and the steps."""


class PngError(ValueError):
    """No PNG image, or a broken one."""


@dataclass(frozen=True, slots=True)
class Header:
    """The size of an image in pixels, and how its pixels are stored."""

    width: int
    height: int
    depth: int
    color: int
    interlaced: bool

    @property
    def channels(self) -> int:
        return _CHANNELS[self.color]

    def line_bytes(self, width: int) -> int:
        return (width * self.channels * self.depth + 7) // 8

    @property
    def passes(self) -> list[tuple[int, int]]:
        """The widths and heights of the images that this one is made of."""
        if not self.interlaced:
            return [(self.width, self.height)]

        sizes: list[tuple[int, int]] = []
        for x, y, x_step, y_step in _PASSES:
            width = math.ceil((self.width - x) / x_step)
            height = math.ceil((self.height - y) / y_step)
            if width > 0 and height > 0:
                sizes.append((width, height))

        return sizes


@dataclass(frozen=True, slots=True)
class Colors:
    """The colors of an image: whether all that can be seen is white, and whether anything can be seen through."""

    is_white: bool
    is_transparent: bool


def read_png(path: Path, size: tuple[int, int]) -> tuple[Header, Colors | None]:
    """Return the header of an image, and its colors if it has the size. Raises PngError, OSError."""
    with open_regular(path) as file:
        header = _header(file)
        if (header.width, header.height) != size:
            return header, None
        content = file.read(MAX_BYTES + 1)

    if len(content) > MAX_BYTES:
        raise PngError(f"is larger than {MAX_BYTES // 1024 // 1024} MB")

    return header, _colors(header, dict(_chunks(content)))


def _header(file: IO[bytes]) -> Header:
    size = len(SIGNATURE) + _HEADER_BYTES
    start = file.read(size)
    is_png = start.startswith(SIGNATURE) and start[12:16] == b"IHDR"
    if not is_png or len(start) < size:
        raise PngError("is not a PNG image")

    width, height, depth, color, _, _, interlaced = struct.unpack_from(
        ">IIBBBBB", start, 16
    )
    if color not in _CHANNELS or depth not in (1, 2, 4, 8, 16):
        raise PngError("is a broken PNG image")

    return Header(width, height, depth, color, bool(interlaced))


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each kind of chunk with its content, that of all chunks with pixels together."""
    pixels: list[bytes] = []
    at = 0
    while at + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        part = content[at + 8 : at + 8 + length]
        if kind == b"IDAT":
            pixels.append(part)
        else:
            yield kind, part
        at += length + 12
    yield b"IDAT", b"".join(pixels)


def _colors(header: Header, chunks: dict[bytes, bytes]) -> Colors:
    is_white = True
    is_transparent = False
    for red, green, blue, alpha in _pixels(header, chunks):
        if alpha < 1:
            is_transparent = True
        # What cannot be seen has no color.
        if alpha > 0 and not red == green == blue == 1:
            is_white = False

    return Colors(is_white, is_transparent)


def _pixels(
    header: Header, chunks: dict[bytes, bytes]
) -> Iterator[tuple[float, float, float, float]]:
    """Yield red, green, blue and alpha of each pixel, from 0 to 1."""
    max_value = (1 << header.depth) - 1
    transparency = chunks.get(b"tRNS", b"")
    palette = chunks.get(b"PLTE", b"")
    count = len(transparency) // 2
    has_alpha = header.channels in (2, 4)
    transparent_color = struct.unpack(f">{count}H", transparency[: count * 2])

    for values in _values(header, chunks.get(b"IDAT", b"")):
        if header.color == _PALETTE:
            yield _entry(palette, transparency, values[0])
            continue

        if header.channels >= 3:  # noqa: PLR2004  # red, green, blue
            red, green, blue = values[:3]
        else:
            red = green = blue = values[0]
        is_visible = values != transparent_color
        alpha = values[-1] / max_value if has_alpha else float(is_visible)
        yield red / max_value, green / max_value, blue / max_value, alpha


def _entry(
    palette: bytes, alphas: bytes, index: int
) -> tuple[float, float, float, float]:
    entry = palette[index * 3 : index * 3 + 3]
    if len(entry) < 3:  # noqa: PLR2004  # red, green, blue
        raise PngError("is a broken PNG image: a color is missing")

    alpha = alphas[index] / 255 if index < len(alphas) else 1.0

    return entry[0] / 255, entry[1] / 255, entry[2] / 255, alpha


def _values(header: Header, packed: bytes) -> Iterator[tuple[int, ...]]:
    expected = sum(
        (header.line_bytes(width) + 1) * height for width, height in header.passes
    )
    try:
        content = zlib.decompressobj().decompress(packed, expected)
    except zlib.error:
        raise PngError("is a broken PNG image") from None
    if len(content) < expected:
        raise PngError("is a broken PNG image: pixels are missing")

    channels = header.channels
    pixel_bytes = max(1, channels * header.depth // 8)
    position = 0
    for width, height in header.passes:
        line = bytes(header.line_bytes(width))
        for _ in range(height):
            # Before each line is the number of its filter.
            end = position + 1 + len(line)
            line = _unfiltered(content[position:end], line, pixel_bytes)
            position = end

            samples = _samples(line, header.depth)
            for start in range(0, width * channels, channels):
                yield tuple(samples[start : start + channels])


def _samples(line: bytes, depth: int) -> list[int]:
    if depth == 16:  # noqa: PLR2004  # two bytes
        return list(struct.unpack(f">{len(line) // 2}H", line))

    mask = (1 << depth) - 1
    shifts = range(8 - depth, -1, -depth)

    return [byte >> shift & mask for byte in line for shift in shifts]


def _unfiltered(filtered: bytes, above: bytes, step: int) -> bytes:
    """Return a line as it was before one of the five filters, from the line above it."""
    kind = filtered[0]
    line = bytearray(filtered[1:])
    for index, value in enumerate(line):
        left = line[index - step] if index >= step else 0
        corner = above[index - step] if index >= step else 0
        up = above[index]
        guess = {
            0: 0,
            1: left,
            2: up,
            3: (left + up) // 2,
            4: _paeth(left, up, corner),
        }.get(kind)
        if guess is None:
            raise PngError("is a broken PNG image: a filter is unknown")
        line[index] = (value + guess) & 255

    return bytes(line)


def _paeth(left: int, up: int, corner: int) -> int:
    """Return the neighbor that is closest to a linear guess, in the order of the specification if several are."""
    guess = left + up - corner

    return min((left, up, corner), key=lambda neighbor: abs(guess - neighbor))
