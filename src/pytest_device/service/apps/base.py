"""An app that is ready for installation."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class App:
    """An app on this machine, or a web app that is hosted elsewhere: either ``path`` or ``url`` is set.

    ``path`` is an .apk, an .app directory, or the directory of a web build with its ``index.html``.
    ``application_id`` is the package name or bundle identifier, None if only the device knows it.
    ``scheme`` is that of its deep links, None if it is unknown.
    """

    path: Path | None = None
    url: str | None = None
    application_id: str | None = None
    scheme: str | None = None
