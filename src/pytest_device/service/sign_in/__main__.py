"""Signs a user in on a page of an identity provider, in this machine's Chromium, as a child process of a run.

The first line of standard input is the task as JSON: ``url``, ``redirect_uri``, ``user``, ``password`` and ``seconds``.
Each line of standard output is an event as JSON: ``progress`` with ``text``; then ``redirect`` with ``url``, ``refused``
with the reason in ``text`` if the page or the account needs another setting, or ``failed`` with the reason if the
provider or the browser failed. The browser ends with this process, however that ends.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.programs import cache_directory, passed_on
from pytest_device.service.devices import browsers
from pytest_device.service.devices.browser import browsing
from pytest_device.service.parent import first_line, report, watch
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import Toolbox
from pytest_device.service.sign_in.page import PageError, RefusedError, signed_in
from pytest_device.spec import SessionType

_SCREEN: Final = (1280, 900)
"""Size of the window: on a desktop's, no page hides its form behind a menu."""


@dataclass(frozen=True, slots=True)
class Task:
    """A sign-in.

    Attributes:
        url: The URL of the sign-in page.
        redirect_uri: A redirect to it ends the task.
        user: The user name.
        password: The password.
        seconds: The maximum time until the redirect.
    """

    url: str = field(repr=False)
    redirect_uri: str
    user: str
    password: str = field(repr=False)
    seconds: float


def main() -> int:
    """Do the task of standard input; return the exit status."""
    parent = os.getppid()
    task = Task(**json.loads(first_line()))
    # The guard of the browser waits for the end of this process, and has its files.
    watch(parent, lambda: os.kill(os.getpid(), signal.SIGTERM))

    guard = Guard(environ=os.environ, log=_progress)
    try:
        report(event="redirect", url=asyncio.run(_redirect(task, guard)))
    except (RefusedError, ConfigError) as error:
        report(event="refused", text=str(error))
    except (PageError, ControllerError, OSError) as error:
        report(event="failed", text=str(error))
    finally:
        guard.close()
    return 0


async def _redirect(task: Task, guard: Guard) -> str:
    """Return the URL of the redirect. Raises the errors of `signed_in`, ConfigError and ControllerError."""
    program = await chromium(guard)
    directory = Path(tempfile.mkdtemp(prefix="pytest-device-sign-in-"))
    guard.watch(directory)
    try:
        async with browsing(
            program,
            size=_SCREEN,
            directory=directory,
            environ=passed_on(os.environ),
            guard=guard,
            log=_progress,
        ) as browser:
            return await signed_in(
                browser.connection,
                url=task.url,
                redirect_uri=task.redirect_uri,
                user=task.user,
                password=task.password,
                limit_seconds=task.seconds,
            )
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def chromium(guard: Guard) -> Path:
    """Return this machine's browser, or the pinned one of the cache, which is installed if it is missing."""
    environ = passed_on(os.environ)
    cache = cache_directory(os.environ, Path.home())
    browser = await browsers.find(
        environ,
        SessionType.WEB_PREVIEW_ONLY,  # needs no chromedriver
        cache_dir=cache,
        built_for=browsers.hardware(),
    )
    if browser.program is None:
        raise ConfigError(
            f"no browser for the sign-in: {browser.missing}: {browser.fix}"
        )

    if browser.to_install:
        toolbox = Toolbox(guard, os.environ, cache)
        browser = await browsers.install(
            browser,
            toolbox,
            SessionType.WEB_PREVIEW_ONLY,
            _progress,
            built_for=browsers.hardware(),
        )
    return browser.tool


def _progress(line: str) -> None:
    report(event="progress", text=line)


if __name__ == "__main__":
    sys.exit(main())
