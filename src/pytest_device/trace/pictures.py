"""Screenshots as they are kept: the PNG of the controller, or a smaller JPEG if Pillow is installed."""

import io
from typing import Final, NamedTuple

MAX_SIDE: Final = 800
"""Maximum pixels of the longer side of a JPEG."""
_QUALITY: Final = 70
"""Of a JPEG of that size, which has about a tenth of the bytes of the PNG."""
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER_BYTES: Final = 24
MAX_BYTES: Final = 16 * 1024 * 1024
"""Larger pictures are left out."""
_MIN_BYTES: Final = 16 * 1024
"""A PNG below this size is kept: a JPEG of the few colors of a flat screen is no smaller."""


class Prepared(NamedTuple):
    """A picture to keep."""

    content: bytes
    content_type: str
    width: int
    height: int


def prepared(content: bytes) -> Prepared | None:
    """Return a screenshot as it is kept; None if it is no PNG, or too large."""
    is_complete = _PNG_HEADER_BYTES <= len(content) <= MAX_BYTES
    if not content.startswith(_PNG) or not is_complete:
        return None

    # Width and height are the first two numbers of the first chunk (PNG, 11.2.1).
    width = int.from_bytes(content[16:20])
    height = int.from_bytes(content[20:24])
    png = Prepared(content, "image/png", width, height)
    if len(content) < _MIN_BYTES:
        return png

    return _as_jpeg(png) or png


def _as_jpeg(png: Prepared) -> Prepared | None:
    """Return a picture as a JPEG of at most 800 pixels; None without Pillow, or if it cannot read the picture."""
    try:
        from PIL import Image
    except ImportError:
        return None

    try:
        with Image.open(io.BytesIO(png.content)) as image:
            picture = image.convert("RGB")
            picture.thumbnail((MAX_SIDE, MAX_SIDE))
            written = io.BytesIO()
            picture.save(written, "JPEG", quality=_QUALITY)

            return Prepared(written.getvalue(), "image/jpeg", *picture.size)
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
