"""Detection of native directories that a project maintains itself, rather than generates and ignores."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_device.app.files import read_existing

_MARKERS: Final[Mapping[str, tuple[str, ...]]] = {
    "ios": ("ios/Podfile", "ios/*.xcodeproj/project.pbxproj"),
    "android": ("android/build.gradle*", "android/app/build.gradle*"),
}

_GIT_SECONDS: Final = 20


def native_files(root: Path, *platforms: str) -> list[Path]:
    """Return the native project files that exist and aren't ignored by git."""
    files: list[Path] = []
    for platform in platforms:
        for pattern in _MARKERS[platform]:
            files += root.glob(pattern)

    return [
        path
        for path in files
        if not _is_ignored(root, path.relative_to(root).as_posix())
    ]


def _is_ignored(root: Path, name: str) -> bool:
    """Ask git, which knows all ignore files; outside a repository, read the project's ``.gitignore``."""
    try:
        completed = subprocess.run(  # noqa: S603
            ["git", "check-ignore", "-q", "--", name],  # noqa: S607  # the user's git
            cwd=root,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
            # Without the variables by which a hook's git points to another repository.
            env={"PATH": os.environ.get("PATH", "")},
        )
    except (OSError, subprocess.TimeoutExpired):
        return _matches(root, name)

    # 0: ignored, 1: not ignored; anything else: no repository.
    if completed.returncode not in (0, 1):
        return _matches(root, name)

    return completed.returncode == 0


def _matches(root: Path, name: str) -> bool:
    """Return whether ``.gitignore`` lists a file or its top-level directory."""
    lines = (read_existing(root / ".gitignore") or "").splitlines()
    directory = name.partition("/")[0]
    ignored = (directory, name, f"{directory}/*", f"{directory}/**")

    return any(line.strip().removeprefix("**").strip("/") in ignored for line in lines)
