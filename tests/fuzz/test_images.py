"""Any image is read or refused, in bounded time."""

import struct
import zlib
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_device.app.png import SIGNATURE, PngError, read_png

PIXELS = st.binary(max_size=40).map(
    lambda some: zlib.compress((some + b"\x01") * (96 * 97 * 8 // (len(some) + 1) + 1))
)
CHUNKS = st.lists(
    st.one_of(
        st.tuples(st.just(b"IDAT"), PIXELS),
        st.tuples(
            st.sampled_from((b"PLTE", b"tRNS", b"IDAT", b"IEND", b"tEXt")),
            st.binary(max_size=800),
        ),
    ),
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from((0, 2, 3, 4, 5, 6)),
    st.sampled_from((1, 2, 4, 8, 16, 3)),
    st.integers(0, 1),
    CHUNKS,
    st.integers(0, 60),
)
def test_any_image_is_read_or_refused(
    tmp_path: Path,
    color: int,
    depth: int,
    interlaced: int,
    chunks: list[tuple[bytes, bytes]],
    cut: int,
) -> None:
    header = struct.pack(">IIBBBBB", 96, 96, depth, color, 0, 0, interlaced)
    parts = [(b"IHDR", header), *chunks]
    content = SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + bytes(4) for kind, body in parts
    )
    (tmp_path / "icon.png").write_bytes(content[: len(content) - cut])
    try:
        found, colors = read_png(tmp_path / "icon.png", (96, 96))
    except PngError:
        return
    assert (found.width, found.height) == (96, 96)
    assert colors
