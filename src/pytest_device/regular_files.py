"""Regular files, and nothing else: a name may be that of a pipe, which blocks its reader, or of a link to anywhere."""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file; raise OSError for anything else, since reading a pipe without a writer would block.

    A name that no file can have, with a zero byte or a lone surrogate, is an OSError, too.
    """
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise OSError(errno.EINVAL, "its name cannot be encoded") from None
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name contains a zero byte")

    file = open(path, "rb", opener=_open_without_waiting)  # noqa: SIM115  # returned
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("it is not a regular file")

    return file


def open_inside(path: str | Path, directory: Path) -> BufferedReader:
    """Open a regular file of a directory; raise OSError for one elsewhere, one that a link leads to, or anything else."""
    root = os.path.realpath(directory)
    file = Path(root, path)
    try:
        is_own = file.is_relative_to(root) and os.path.realpath(file) == str(file)
    except ValueError:  # a name that no file can have
        is_own = False

    if not is_own:
        raise OSError(errno.EPERM, f"it is a link, or not in {directory}")

    return open_regular(file)


def is_own_file(path: Path) -> bool:
    """Return whether a name in a directory is that of a regular file, and no link to one."""
    return path.is_file() and not path.is_symlink()


def _open_without_waiting(name: str, flags: int) -> int:
    # Windows lacks the flag, but no file there is a pipe: pipes have names of their own.
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
