"""The icon of notifications is read from its file, in bounded time and memory."""

import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest

from pytest_device.app import check, load_project
from pytest_device.app.checks.finding import Finding
from pytest_device.app.png import SIGNATURE
from tests.app.rows import project_files, put

PALETTE = ((b"PLTE", bytes(3) + b"\xff" * 3), (b"tRNS", b"\x00"))
CLEAR, WHITE, RED = b"\xff\x00\x00\x00", b"\xff\xff\xff\xff", b"\xff\x00\x00\xff"


def png(
    *chunks: tuple[bytes, bytes],
    size: tuple[int, int] = (96, 96),
    depth: int = 8,
    color: int = 6,
    adam: int = 0,
) -> bytes:
    header = struct.pack(">IIBBBBB", *size, depth, color, 0, 0, adam)
    parts = [(b"IHDR", header), *chunks, (b"IEND", b"")]
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body))
        + kind
        + body
        + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


def pixels(
    line: bytes, *, filter_kind: int = 0, lines: int = 96
) -> tuple[bytes, bytes]:
    return b"IDAT", zlib.compress((bytes([filter_kind]) + line) * lines)


def half(first: bytes, second: bytes) -> bytes:
    return first * 48 + second * 48


def findings(root: Path, icon: bytes, **options: Any) -> list[Finding]:
    plugins = [["vendor-notifications", {"icon": "icon.png", **options}]]
    put(root, project_files({"plugins": plugins})).joinpath("icon.png").write_bytes(
        icon
    )
    return [
        one
        for one in check(load_project(root))
        if one.id.startswith(("notifications-", "config-missing"))
    ]


def problems(root: Path, icon: bytes) -> list[str]:
    found = [one for one in findings(root, icon) if one.status == "failed"]
    assert {one.id for one in found} <= {"notifications-icon"}
    return [one.rule.partition(":")[0].partition("icon ")[2] for one in found]


@pytest.mark.parametrize(
    "icon",
    [
        pytest.param(png(pixels(half(CLEAR, WHITE))), id="rgba"),
        pytest.param(png(pixels(half(b"\x00\x00", b"\xff\xff")), color=4), id="gray-alpha"),
        pytest.param(png(pixels(half(CLEAR * 2, WHITE * 2)), depth=16), id="16-bit"),
        pytest.param(png(*PALETTE, pixels(b"\x0f" * 12), depth=1, color=3), id="palette"),
        pytest.param(png((b"tRNS", bytes(2)), pixels(b"\x0f" * 48), depth=4, color=0), id="gray"),
        pytest.param(png((b"tRNS", bytes(6)), pixels(half(bytes(3), b"\xff" * 3)), color=2), id="rgb"),
    ],
)  # fmt: skip
def test_a_white_icon_with_transparency_is_valid(tmp_path: Path, icon: bytes) -> None:
    assert problems(tmp_path, icon) == []


@pytest.mark.parametrize(
    ("icon", "expected"),
    [
        (png(pixels(WHITE * 96)), ["has no transparency"]),
        (png(pixels(half(CLEAR, RED))), ["is not all white"]),
        (
            png(pixels(b"\xff\x00\x00" * 96), color=2),
            ["is not all white", "has no transparency"],
        ),
        (png(pixels(WHITE * 96, lines=95)), ["is a broken PNG image"]),
        (png(pixels(WHITE * 96, filter_kind=9)), ["is a broken PNG image"]),
        (png((b"IDAT", b"no zlib")), ["is a broken PNG image"]),
        (png(), ["is a broken PNG image"]),
        (png(pixels(b"\x00" * 96), color=3), ["is a broken PNG image"]),
        (png(pixels(WHITE * 96), color=5), ["is a broken PNG image"]),
        (png(pixels(WHITE * 96))[:20], ["is not a PNG image"]),
        (b"GIF89a" + bytes(100), ["is not a PNG image"]),
        (b"", ["is not a PNG image"]),
        (png((b"IDAT", bytes(2_000_000))), ["is larger than 1 MB"]),
    ],
)
def test_an_invalid_icon_is_reported_with_the_reason(
    tmp_path: Path, icon: bytes, expected: list[str]
) -> None:
    assert problems(tmp_path, icon) == expected


@pytest.mark.parametrize("size", [(48, 48), (96, 97), (100_000, 100_000)])
def test_an_icon_of_another_size_is_only_a_warning(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    [found] = [
        one
        for one in findings(tmp_path, png(pixels(b""), size=size))
        if one.status == "failed"
    ]
    assert (found.id, found.severity) == ("notifications-icon-size", "warning")
    assert f"icon has {size[0]}x{size[1]} pixels" in found.rule


def test_each_filter_and_interlacing_is_undone(tmp_path: Path) -> None:
    # Above a white line, each filter can write a white line with differences alone.
    same = bytes(96 * 4)
    lines = [
        b"\x00" + WHITE * 96,
        b"\x02" + same,
        b"\x01" + WHITE + same[4:],
        b"\x04" + same,
    ]
    average = b"\x03" + b"\x80" * 4 + same[4:]
    content = b"".join([*lines, average, *[b"\x02" + same] * 90, b"\x00" + CLEAR * 96])
    assert problems(tmp_path / "filters", png((b"IDAT", zlib.compress(content)))) == []

    sizes = [(12, 12), (12, 12), (24, 12), (24, 24), (48, 24), (48, 48), (96, 48)]
    passes = b"".join(
        (b"\x00" + half(CLEAR, WHITE)[-width * 4 :]) * height for width, height in sizes
    )
    assert (
        problems(tmp_path / "adam", png((b"IDAT", zlib.compress(passes)), adam=1)) == []
    )


def test_a_decompression_bomb_takes_no_memory(tmp_path: Path) -> None:
    bomb = png((b"IDAT", zlib.compress(bytes(40_000_000), 1)))
    tracemalloc.start()
    try:
        problems(tmp_path, bomb)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_directory_is_not_an_icon(tmp_path: Path) -> None:
    (tmp_path / "icon.png").mkdir()
    config = {"plugins": [["vendor-notifications", {"icon": "icon.png"}]]}
    found = check(load_project(put(tmp_path, project_files(config))))
    assert any(
        "cannot be read" in one.rule for one in found if one.id == "notifications-icon"
    )


def test_missing_files_are_named(tmp_path: Path) -> None:
    long = "n" * 5000
    config = {
        "icon": long,
        "plugins": [
            [
                "vendor-notifications",
                {"icon": "no\0.png", "sounds": ["no.wav", 7, long]},
            ]
        ],
    }
    found = check(load_project(put(tmp_path, project_files(config))))
    missing = [
        one.rule
        for one in found
        if one.id == "config-missing-file" and one.status == "failed"
    ]
    assert [one.split("'")[1] for one in missing] == [
        long,
        "no\\x00.png",
        "no.wav",
        long,
    ]
    assert any(
        "plugins.0.1.sounds.1 must be of type string" in one.rule for one in found
    )


def test_the_default_channel_is_skipped(tmp_path: Path) -> None:
    icon = png(pixels(half(CLEAR, WHITE)))
    statuses = {
        one.id: one.status for one in findings(tmp_path, icon, defaultChannel="news")
    }
    assert statuses["notifications-channel"] == "skipped"


def test_the_background_mode_can_be_set_in_the_property_list(tmp_path: Path) -> None:
    config = {
        "ios": {"infoPlist": {"UIBackgroundModes": ["remote-notification"]}},
        "plugins": ["vendor-notifications"],
    }
    package = {
        "dependencies": {"vendor-notifications": "1", "vendor-task-manager": "1"}
    }
    project = load_project(
        put(tmp_path, project_files(config, **{"package.json": package}))
    )
    assert [
        one.status for one in check(project) if one.id == "notifications-background"
    ] == ["passed"]
