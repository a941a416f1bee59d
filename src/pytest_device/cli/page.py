"""Pages that commands serve on this machine until Ctrl-C."""

import webbrowser
from pathlib import Path

from pytest_device.errors import ConfigError


def show(
    page: Path,
    port: int,
    *,
    trace: Path | None = None,
    title: str = "",
    opens_browser: bool = True,
) -> None:
    """Serve a page, print its URL after a title and open it; return after Ctrl-C.

    Arguments:
        page: The directory of the page.
        port: The port; 0 for a free one.
        trace: A trace that the page opens, if it is the viewer.
        title: What the printed line begins with.
        opens_browser: Whether the default browser opens the page.

    Raises:
        ConfigError: The port cannot be used.
    """
    # Loaded by commands that show a page only: it brings an HTTP server.
    from pytest_device.trace.viewer import served

    try:
        with served(page, trace, port) as (url, server):
            print(f"{title}{url} (Ctrl-C ends it)", flush=True)
            if opens_browser:
                webbrowser.open(url)
            server.serve_forever(poll_interval=0.2)
    # Ctrl-C is how users end it.
    except KeyboardInterrupt:
        return
    # A port in use, or none that exists.
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"--port={port} cannot be used ({error}): choose another one"
        ) from None
