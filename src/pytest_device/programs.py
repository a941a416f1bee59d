"""What programs need that this package starts: environment variables, and a directory to install them in."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_device.platforms import SYSTEM

_NAMES: Final = frozenset(
    (
        # The user and the terminal.
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TMP",
        "TEMP",
        "TERM",
        "DISPLAY",
        # Python and shared libraries.
        "VIRTUAL_ENV",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "DYLD_FALLBACK_LIBRARY_PATH",
        # Windows, where few programs start without them.
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "COMSPEC",
        "PATHEXT",
        "WINDIR",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "PROGRAMFILES(X86)",
        "NUMBER_OF_PROCESSORS",
        "PROCESSOR_ARCHITECTURE",
        # The network.
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "NETRC",
        # Version managers of Node.js.
        "NVM_DIR",
        "NVM_BIN",
        "FNM_DIR",
        "VOLTA_HOME",
        # Tools of real devices.
        "JAVA_HOME",
        "APPIUM_HOME",
        "DEVELOPER_DIR",
    )
)
_PREFIXES: Final = ("LC_", "XDG_", "PYTHON", "PYENV_", "COVERAGE_", "ANDROID_")
_INSTALLER_PREFIXES: Final = ("PIP_", "NPM_CONFIG_", "SE_")
"""Settings of pip, npm and Selenium Manager: URLs of registries often have credentials, and npm's may be a token."""


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for finding and starting programs: paths, language, network.

    No variable for tokens is among them. The URL of a proxy may have credentials.
    """
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _NAMES or name.upper().startswith(_PREFIXES)
    }


def for_installers(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for pip, npm and Selenium Manager, and for the local service, which starts them."""
    settings = {
        name: value
        for name, value in environ.items()
        if name.upper().startswith(_INSTALLER_PREFIXES)
    }

    return {**passed_on(environ), **settings}


def cache_directory(environ: Mapping[str, str], home: Path) -> Path:
    """Return the directory of the programs that this package installs for a user."""
    return SYSTEM.places.cache(environ, home)


def start_module(module: str) -> "subprocess.Popen[str]":
    """Start a module of this package as a child process, which lives as long as its standard input is open.

    It ends itself then, even if this process is killed. What it is told goes through its standard input, because others
    can read the arguments of a process.
    """
    return subprocess.Popen(  # noqa: S603  # a module of this package
        [
            sys.executable,
            "-P",  # never import from the working directory
            "-m",
            module,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=for_installers(os.environ),
        # Leave Ctrl-C in the terminal to this run, which stops it in its own time.
        start_new_session=True,
        creationflags=SYSTEM.creation_flags,
    )
