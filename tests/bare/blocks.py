"""The code blocks and commands of the README."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text()


def files_of_readme() -> dict[str, str]:
    """Return the files that the README shows, by name."""
    return dict(
        re.findall(
            r"^`([\w./]+)`[^`\n]*:\n\n```\w+\n(.*?)^```$",
            README,
            flags=re.MULTILINE | re.DOTALL,
        )
    )


def commands_of_readme(beginning: str) -> list[str]:
    """Return the commands with this beginning, without prompt and comment."""
    return re.findall(
        rf"^\$ ({re.escape(beginning)}.*?)(?:  +#.*)?$", README, flags=re.MULTILINE
    )
