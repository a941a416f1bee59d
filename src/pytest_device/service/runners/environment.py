"""What the programs of the local service see of the user's environment."""

from collections.abc import Mapping
from typing import Final

_TOOLS: Final = frozenset(
    (
        *("PATH", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME"),
        *("ANDROID_HOME", "ANDROID_SDK_ROOT", "ANDROID_USER_HOME", "ANDROID_ADB_SERVER_PORT", "JAVA_HOME"),
        *("APPIUM_HOME", "DEVELOPER_DIR"),
    )
)
# Appium itself fetches the app of a session when it is given by its URL.
_NETWORK: Final = frozenset(("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"))
_OWN: Final = ("DEVICE_", "PYTEST_")
_HERE: Final = "127.0.0.1,localhost,::1"
"""Where the programs of a session find each other: no proxy stands between them."""


def for_sessions(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the programs of a session need: where tools are, the language, the network. No tokens."""
    passed_on = _TOOLS | _NETWORK
    direct = ",".join([*{environ[name]: None for name in ("NO_PROXY", "no_proxy") if environ.get(name)}, _HERE])
    chosen = {name: value for name, value in environ.items() if name.upper() in passed_on}
    return {**chosen, "NO_PROXY": direct, "no_proxy": direct}


def for_installers(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what npm and pip see: all but this package's own settings, for theirs can have any name."""
    return {name: value for name, value in environ.items() if not name.startswith(_OWN)}
