"""Checks for the config plugin of the notifications library."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pytest_device.app.checks.finding import (
    Finding,
    in_config,
    missing_file,
    project_finding,
)
from pytest_device.app.document import Json, Object, at, object_at
from pytest_device.app.inlining import INSTALL
from pytest_device.app.project import Project
from pytest_device.app.sections import HEX, Key
from pytest_device.regular_files import open_regular

if TYPE_CHECKING:
    from PIL import Image

ICON_SIZE: Final = (96, 96)
_WHITE: Final = (255, 255, 255)
_OPAQUE: Final = 255
_MODE: Final = "remote-notification"
_OPTIONS: Final = (
    Key("icon", ("string",)),
    Key("color", ("string",), form=HEX),
    Key("defaultChannel", ("string",)),
    Key("sounds", ("array",)),
    Key("enableBackgroundRemoteNotifications", ("boolean",)),
)


def check_notifications(project: Project) -> Iterator[Finding]:
    """Yield findings for the plugin's assets, color, default channel and background mode."""
    index, options = _plugin(project)
    trail = ("plugins", index, 1)
    for key in _OPTIONS:
        value = options.get(key.name)
        problem = key.problem(value) if value is not None else None
        if problem:
            fix = f"change the value of {key.name}"
            if problem.endswith(HEX.rule):
                fix = "for example #ffffff"
            yield in_config(
                project, "notifications-value", (*trail, key.name), problem, fix
            )

    icon = options.get("icon")
    if isinstance(icon, str):
        yield from _icon(project, (*trail, "icon"), icon)
    yield from _sounds(project, (*trail, "sounds"), options.get("sounds"))
    if options.get("defaultChannel") is not None:
        yield project_finding(
            "notifications-channel",
            project,
            "skipped",
            "the app creates its channels while it runs",
        )

    is_enabled = options.get("enableBackgroundRemoteNotifications") is True
    if _uses_tasks(project) and not is_enabled and not _has_mode(project):
        fix = "set enableBackgroundRemoteNotifications of the plugin to true"
        yield in_config(project, "notifications-background", trail[:2], "is off", fix)


def _plugin(project: Project) -> tuple[int, Object]:
    """Return the index and options of the plugin, or 0 and no options if it is absent."""
    plugins = at(project.config, "plugins")
    if not isinstance(plugins, list):
        return 0, {}

    name = project.vendor.package("notifications")
    for index, plugin in enumerate(plugins):
        if plugin == name or at(plugin, 0) == name:
            return index, object_at(at(plugin, 1))

    return 0, {}


def _icon(
    project: Project, trail: tuple[str | int, ...], icon: str
) -> Iterator[Finding]:
    fix = "save a PNG of 96x96 pixels, white on transparent"
    missing = list(missing_file(project, trail, icon))
    if missing:
        yield from missing
        return

    try:
        from PIL import Image
    except ImportError:
        for rule in ("notifications-icon", "notifications-icon-size"):
            yield project_finding(rule, project, "skipped", INSTALL)
        return

    try:
        with (
            open_regular(project.root / icon) as file,
            Image.open(file, formats=("PNG",)) as image,
        ):
            if image.size == ICON_SIZE:
                for problem in _wrong_colors(image):
                    yield in_config(project, "notifications-icon", trail, problem, fix)
                return

            width, height = image.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        problem = "cannot be read as a PNG image"
        yield in_config(project, "notifications-icon", trail, problem, fix)
        return

    problem = f"has {width}x{height} pixels"
    yield in_config(project, "notifications-icon-size", trail, problem, fix)


def _wrong_colors(image: "Image.Image") -> Iterator[str]:
    """Yield what is wrong with the colors of an image, of which all that can be seen must be white."""
    pixels = image.convert("RGBA")
    counted = pixels.getcolors(pixels.width * pixels.height) or []
    colors = [cast("tuple[int, int, int, int]", color) for _, color in counted]

    if any(color[:3] != _WHITE for color in colors if color[3]):
        yield "is not all white"
    if all(alpha == _OPAQUE for *_, alpha in colors):
        yield "has no transparency"


def _sounds(
    project: Project, trail: tuple[str | int, ...], sounds: Json
) -> Iterator[Finding]:
    if not isinstance(sounds, list):
        return

    for index, sound in enumerate(sounds):
        item_trail = (*trail, index)
        if not isinstance(sound, str):
            yield in_config(
                project,
                "notifications-value",
                item_trail,
                "must be of type string",
                "name a local file",
            )
            continue

        yield from missing_file(project, item_trail, sound, os.path.isfile)
        if Path(sound).suffix.lower() != ".wav":
            yield in_config(
                project,
                "notifications-sound",
                item_trail,
                f"is {sound!r}",
                "convert it to .wav",
            )


def _uses_tasks(project: Project) -> bool:
    """Return whether the app has both libraries that it needs to handle data-only messages."""
    return all(
        project.package.mentions(project.vendor.package(name))
        for name in ("notifications", "task-manager")
    )


def _has_mode(project: Project) -> bool:
    modes = at(project.config, "ios", "infoPlist", "UIBackgroundModes")

    return isinstance(modes, list) and _MODE in modes
