"""Which Pythons tox finds: all that pyenv has installed, where tox by itself sees the active ones only."""

import os
from pathlib import Path

from tox.config.cli.parser import ToxParser
from tox.plugin import impl


@impl
def tox_add_option(parser: ToxParser) -> None:  # noqa: ARG001  # the first hook of a run; tox names its argument
    """Name every installed version as active, unless ``PYENV_VERSION`` says which are."""
    if root := os.environ.get("PYENV_ROOT"):
        installed = sorted(path.name for path in Path(root, "versions").glob("3.*"))
        os.environ.setdefault("PYENV_VERSION", ":".join(installed))
