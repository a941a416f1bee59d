"""Reading files of a project or a build, which may be pipes or links to nowhere."""

from pathlib import Path
from typing import Final

from pytest_device.errors import ProjectError
from pytest_device.regular_files import open_regular

MAX_BYTES: Final = 8 * 1024 * 1024
"""Maximum file size, in bytes; larger than any hand-written file, and parsing needs a multiple of it in memory."""


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Read a UTF-8 file, dropping its byte order mark. Raises ProjectError, or FileNotFoundError."""
    try:
        with open_regular(path) as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        if not path.is_symlink():
            raise
        # There is a file of this name, which callers would else take for absent.
        raise ProjectError("is a broken symbolic link", path=path) from None
    except IsADirectoryError:
        raise ProjectError("is a directory, must be a file", path=path) from None
    except OSError as error:
        raise ProjectError(
            f"cannot be read: {error.strerror or error}", path=path
        ) from None

    if len(content) > limit:
        raise ProjectError(f"is larger than {limit // 1024 // 1024} MB", path=path)

    return _decoded(content, path)


def read_existing(path: Path) -> str | None:
    """Read a UTF-8 file; return None if there is none. Raises ProjectError."""
    try:
        return read_text(path)
    except FileNotFoundError:
        return None


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ProjectError(
            "is not UTF-8: save it in this encoding",
            path=path,
            line=line,
            column=column,
        ) from None
