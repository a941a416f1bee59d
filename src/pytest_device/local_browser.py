"""Signs users in on the pages of identity providers, in this machine's Chromium, a child process of the run."""

import json
import logging
from contextlib import suppress
from importlib.util import find_spec
from subprocess import TimeoutExpired
from typing import IO, Final, cast

from pytest_device.errors import ConfigError, UnexpectedReplyError, hides_frames
from pytest_device.platforms import SYSTEM
from pytest_device.programs import start_module

__tracebackhide__ = hides_frames

PAGE_SECONDS: Final = 60.0
"""Maximum time on the pages of a sign-in, in seconds, after the browser has started."""

_END_SECONDS: Final = 20.0
"""Maximum time for the browser to end, in seconds."""
_MODULE: Final = "pytest_device.service.sign_in"
_logger: Final = logging.getLogger("pytest_device")


def complete_sign_in(url: str, redirect_uri: str, user: str, password: str) -> str:
    """Sign a user in on the page at a URL, in a browser without a profile, and return the URL of the redirect.

    The first sign-in on a machine without a browser installs one. Raises ConfigError if the page or the account needs
    another setting or no browser can be used; UnexpectedReplyError if the provider or the browser fails.
    """
    if find_spec("psutil") is None:
        raise ConfigError(
            "the sign-in on a provider's page needs psutil: pip install 'pytest-device[local]'"
        )

    task = {
        "url": url,
        "redirect_uri": redirect_uri,
        "user": user,
        "password": password,
        "seconds": PAGE_SECONDS,
    }
    process = start_module(_MODULE)

    stdin, stdout = cast("tuple[IO[str], IO[str]]", (process.stdin, process.stdout))
    try:
        # It has already exited: its output has the reason.
        with suppress(BrokenPipeError):
            stdin.write(json.dumps(task) + "\n")
            stdin.flush()
        return _redirect(stdout)
    finally:
        with suppress(BrokenPipeError):
            stdin.close()  # ends the browser

        try:
            SYSTEM.wait_for_exit(process, _END_SECONDS)
        except TimeoutExpired:
            process.kill()
            process.wait()

        stdout.close()


def _redirect(stdout: IO[str]) -> str:
    for line in stdout:
        match json.loads(line):
            case {"event": "redirect", "url": str(url)}:
                return url
            case {"event": "progress", "text": str(text)}:
                _logger.info("%s", text)
            case {"event": "refused", "text": str(text)}:
                raise ConfigError(text)
            case {"event": "failed", "text": str(text)}:
                raise UnexpectedReplyError(text)
            case other:
                raise UnexpectedReplyError(
                    f"unexpected output of the browser's process: {other!r}"
                )

    raise UnexpectedReplyError("the browser's process exited before the sign-in ended")
