"""Opens the live preview of a device in the user's browser."""

import shutil
import tempfile
import threading
import webbrowser
from functools import partial
from html import escape
from pathlib import Path

import pytest


def open_preview(config: pytest.Config, url: str) -> None:
    """Open a URL through a private redirect page: other users can read the browser's command line."""
    directory = Path(tempfile.mkdtemp(prefix="pytest-device-"))
    config.add_cleanup(partial(shutil.rmtree, directory, ignore_errors=True))
    page = directory / "preview.html"
    page.write_text(
        f'<meta http-equiv="refresh" content="0; url={escape(url)}">', "utf-8"
    )
    # Some browsers only return when they are closed.
    threading.Thread(
        target=webbrowser.open,
        args=[page.as_uri()],
        name="pytest-device-preview",
        daemon=True,
    ).start()
