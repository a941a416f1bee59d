"""The assets of notifications: the icon is read from its file."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pytest_device.app import check, load_project
from pytest_device.app.checks.finding import Finding
from tests.app.rows import project_files, put


def png(
    mode: str, *colors: Any, size: tuple[int, int] = (96, 96), **options: Any
) -> bytes:
    """Return an image with stripes of colors."""
    image = Image.new(mode, size)
    for index, color in enumerate(colors):
        image.paste(color, (index * size[0] // len(colors), 0, *size))
    if mode == "P":
        image.putpalette(bytes(3) + b"\xff" * 3)
    written = io.BytesIO()
    image.save(written, "PNG", **options)

    return written.getvalue()


CLEAR, WHITE, RED = (255, 0, 0, 0), (255, 255, 255, 255), (255, 0, 0, 255)


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
    ("icon", "expected"),
    [
        (png("RGBA", CLEAR, WHITE), []),
        (png("LA", (0, 0), (255, 255)), []),
        (png("P", 0, 1, transparency=0), []),
        (png("RGB", (0, 0, 0), (255, 255, 255), transparency=(0, 0, 0)), []),
        (png("RGBA", WHITE), ["has no transparency"]),
        (png("RGBA", CLEAR, RED), ["is not all white"]),
        (png("RGB", (255, 0, 0)), ["is not all white", "has no transparency"]),
        (png("RGBA", CLEAR, WHITE)[:60], ["cannot be read as a PNG image"]),
        (b"GIF89a" + bytes(100), ["cannot be read as a PNG image"]),
        (b"", ["cannot be read as a PNG image"]),
    ],
)
def test_an_icon_is_white_on_transparent(
    tmp_path: Path, icon: bytes, expected: list[str]
) -> None:
    assert problems(tmp_path, icon) == expected


def test_an_icon_of_another_size_is_only_a_warning(tmp_path: Path) -> None:
    icon = png("RGB", (255, 0, 0), size=(96, 97))
    [found] = [one for one in findings(tmp_path, icon) if one.status == "failed"]

    assert (found.id, found.severity) == ("notifications-icon-size", "warning")
    assert "icon has 96x97 pixels" in found.rule


def test_without_pillow_the_icon_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    icon = png("RGB", (255, 0, 0))
    monkeypatch.setitem(sys.modules, "PIL", None)

    skipped = {
        one.id: one.fix for one in findings(tmp_path, icon) if one.status == "skipped"
    }

    install = "pip install 'pytest-device[app]'"
    assert skipped == dict.fromkeys(
        ("notifications-icon", "notifications-icon-size"), install
    )


def test_a_directory_is_not_an_icon(tmp_path: Path) -> None:
    (tmp_path / "icon.png").mkdir()
    config = {"plugins": [["vendor-notifications", {"icon": "icon.png"}]]}
    found = check(load_project(put(tmp_path, project_files(config))))
    assert any(
        "cannot be read as a PNG image" in one.rule
        for one in found
        if one.id == "notifications-icon"
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
    icon = png("RGBA", CLEAR, WHITE)
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
