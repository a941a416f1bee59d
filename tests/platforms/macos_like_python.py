"""Builds a Python that finds on this machine what it would find on macOS: an imitation, which shares its kernel.

Its standard library is this one's with a module more, which each start of the interpreter imports.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tests.conftest import SLOW_TO_LOAD
from tests.platforms.foreign_python import ForeignPython

_RECIPE: Final = Path(__file__).parent / "recipes/macos_like.py"
_PACKAGES: Final = ("site-packages", "dist-packages")
"""Where a Python looks for packages: outside of environments, Debian's in the second."""
_OWN: Final = frozenset(("encodings", *_PACKAGES, "__pycache__", "test"))
_OF_THE_RUN_AROUND: Final = ("DEVICE_", "PYTEST_", "TOX_")
_SCPROXY: Final = """
def _get_proxy_settings(): return {}
def _get_proxies(): return {}
"""
"""The system's own proxies, of which urllib asks on macOS."""


def build(directory: Path) -> ForeignPython:
    """Build it in a directory, with the packages of this Python."""
    standard = Path(sysconfig.get_path("stdlib"))
    library = directory / "lib" / standard.name
    library.mkdir(parents=True)
    for entry in standard.iterdir():
        if entry.name not in _OWN:
            (library / entry.name).symlink_to(entry)

    shutil.copytree(standard / "encodings", library / "encodings")
    with (library / "encodings/__init__.py").open("a") as encodings:
        encodings.write("\nimport macos_like\n")
    shutil.copy(_RECIPE, library)
    (library / "_scproxy.py").write_text(_SCPROXY)

    # Most builds keep their variables in a module with the system's name.
    for variables in standard.glob("_sysconfigdata_*_linux_*.py"):
        named = variables.name.replace("_linux_", "_darwin_")
        (library / named).symlink_to(variables)

    directories = [path for path in sys.path if path.endswith("site-packages")]
    lines = [f"import site; site.addsitedir({path!r})" for path in directories]
    for name in _PACKAGES:
        (library / name).mkdir()
        (library / name / "this_python.pth").write_text("\n".join(lines))

    program = directory / "bin/python"
    program.parent.mkdir()
    # Not a link: the interpreter looks for its library near the file that a link leads to.
    shutil.copy(os.path.realpath(sys.executable), program)
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_OF_THE_RUN_AROUND)
    }
    environ["PYTEST_ADDOPTS"] = " ".join(f"-p no:{name}" for name in SLOW_TO_LOAD)
    return ForeignPython(command=(str(program),), environ=environ)
