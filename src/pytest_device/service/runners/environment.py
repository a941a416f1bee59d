"""The environment variables that the programs of the local service receive."""

from collections.abc import Mapping
from typing import Final

_TOOLS: Final = frozenset(
    (
        *("PATH", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME"),
        *(
            "ANDROID_HOME",
            "ANDROID_SDK_ROOT",
            "ANDROID_USER_HOME",
            "ANDROID_AVD_HOME",
            "ANDROID_ADB_SERVER_PORT",
            "JAVA_HOME",
        ),
        *("APPIUM_HOME", "DEVELOPER_DIR"),
    )
)
# Appium itself downloads a session's app if that is a URL.
_NETWORK: Final = frozenset(("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"))
_HERE: Final = "127.0.0.1,localhost,::1"
"""Hosts that a session's programs reach without a proxy."""


def for_sessions(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a session's programs need: paths of tools, language, network. No tokens."""
    passed_on = _TOOLS | _NETWORK
    direct = ",".join([*{environ[name]: None for name in ("NO_PROXY", "no_proxy") if environ.get(name)}, _HERE])
    chosen = {name: value for name, value in environ.items() if name.upper() in passed_on}
    return {**chosen, "NO_PROXY": direct, "no_proxy": direct}
