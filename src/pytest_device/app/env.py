"""The environment of a project: its files in order of precedence, what they may set, and what comes of it."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_device.app.dotenv import Assignment, assignments, expanded
from pytest_device.app.files import read_text
from pytest_device.app.vendor import Vendor
from pytest_device.errors import ConfigError, ProjectError

MODES: Final = ("development", "test", "production")

REFUSED: Final = frozenset(
    (
        # They run or load foreign code in Node.js and other interpreters,
        *("NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "NODE_COMPILE_CACHE"),
        *("NODE_REPL_EXTERNAL_MODULE", "NPM_CONFIG_NODE_OPTIONS", "BUN_RUNTIME_TRANSPILER_CACHE_PATH"),
        *("PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT", "PYTHONUSERBASE", "PYTHONEXECUTABLE"),
        *("PYTHONSAFEPATH", "PERL5OPT", "PERL5LIB", "PERLLIB", "RUBYOPT", "RUBYLIB", "RUBYSHELL", "RUBYPATH"),
        *("BUNDLE_GEMFILE", "BUNDLE_PATH", "GEM_HOME", "GEM_PATH"),
        *("_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "SSLKEYLOGFILE"),
        # in the loader and in shells,
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH"),
        *("DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_FALLBACK_FRAMEWORK_PATH"),
        *("BASH_ENV", "ENV", "ZDOTDIR", "IFS", "CDPATH", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS"),
        *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EXEC_PATH", "SSH_ASKPASS", "GPG_TTY"),
        *("EDITOR", "VISUAL", "PAGER", "MANPAGER", "DIRENV_DIR", "DIRENV_FILE", "DIRENV_WATCHES", "DIRENV_DIFF"),
        # or they say who the user is and where programs and packages come from.
        *("HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "USER", "SHELL", "PATH", "PATHEXT", "LANG", "TERMINFO"),
        *("TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD", "SYSTEMROOT", "SystemRoot"),
        *("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME"),
        *("XDG_CONFIG_HOME", "XDG_BIN_HOME", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_PREFIX", "NPM_CONFIG_USERCONFIG"),
        *("NPM_CONFIG_GLOBALCONFIG", "NPM_CONFIG_CACHE", "YARN_REGISTRY", "YARN_CACHE_FOLDER", "YARN_GLOBAL_FOLDER"),
        *("PNPM_HOME", "BUN_INSTALL", "BUN_INSTALL_BIN", "COCOAPODS_HOME", "CMAKE_HOME"),
    )
)
"""Variables that no environment file may set: a project would take over the tools of whoever opens it."""

LOCAL_ONLY: Final = frozenset(
    (
        *("ANDROID_HOME", "ANDROID_SDK_ROOT", "ANDROID_NDK_HOME", "ANDROID_NDK_ROOT", "ANDROID_AVD_HOME"),
        *("ANDROID_EMULATOR_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "KOTLIN_HOME", "NDK_HOME", "NDK_ROOT"),
        *("JAVA_HOME", "JDK_HOME", "JRE_HOME", "DEVELOPER_DIR", "XCODE_DEVELOPER_DIR_PATH"),
        *("COCOAPODS_DISABLE_STATS", "FASTLANE_USER", "FASTLANE_PASSWORD", "FASTLANE_SESSION"),
        *("FASTLANE_APPLE_APPLICATION_SPECIFIC_PASSWORD", "BROWSER", "BROWSER_ARGS", "SSL_CRT_FILE", "SSL_KEY_FILE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy", "REACT_NATIVE_PACKAGER_HOSTNAME"),
    )
)
"""Variables of one developer's machine: only files that end in ``.local`` may set them."""

_LOADERS: Final = {"linux": "LD_", "darwin": "DYLD_"}
_ON: Final = frozenset(("1", "true"))


@dataclass(frozen=True, slots=True)
class EnvResult:
    """What the environment files of a project set.

    ``files`` are the names of the files that count, the highest precedence first, absent ones included; ``loaded`` are
    the names of the variables that came from files, in the order of the files from the lowest precedence, within one
    the public ones first; ``values`` is the process environment with them. The values never reach a ``repr``.
    """

    files: tuple[str, ...]
    loaded_files: tuple[str, ...]
    loaded: tuple[str, ...]
    values: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()

    def from_files(self) -> dict[str, str]:
        """Return the variables that came from files."""
        return {name: self.values[name] for name in self.loaded}


def load_env(
    root: str | Path,
    mode: str | None = "development",
    environ: Mapping[str, str] | None = None,
    *,
    vendor: str = "vendor",
    refused: Iterable[str] = (),
) -> EnvResult:
    """Return the environment of a project in a mode, without changing the process's own.

    Raises ConfigError for variables that no file may set (``refused`` extends the table), for references in a circle
    and for unreadable text. A file that is absent, a directory or unreadable is skipped.
    """
    environ = os.environ if environ is None else environ
    names = Vendor(vendor)
    if environ.get(names.variable("NO_DOTENV"), "").lower() in _ON:
        return EnvResult((), (), (), dict(environ))
    files = env_files(mode)
    texts = _texts(Path(root), files)
    found = {name: list(assignments(text)) for name, text in texts.items()}
    _check_names(found, _Rules(names, REFUSED | frozenset(refused), environ))
    parsed = {one: value for name in reversed(found) for one, value in _ordered(found[name], names)}
    values = expanded(parsed, environ)
    loaded = tuple(name for name in parsed if name not in environ)
    merged = {**environ, **{name: values[name] for name in loaded}}
    return EnvResult(files, tuple(found), loaded, merged, tuple(_unusual(mode)))


def env_files(mode: str | None) -> tuple[str, ...]:
    """Return the names of the files of a mode, the highest precedence first; that of tests has no ``.env.local``."""
    if not mode:
        return (".env.local", ".env")
    if "/" in mode or "\\" in mode or "\0" in mode:
        raise ConfigError(f"mode {mode!r} must be a part of a file name, for example development")
    personal = () if mode == "test" else (".env.local",)
    return (f".env.{mode}.local", *personal, f".env.{mode}", ".env")


def _unusual(mode: str | None) -> Iterator[str]:
    if mode not in MODES:
        given = f"mode {mode!r} is not one of {', '.join(MODES)}" if mode else "no mode is set"
        yield f"{given}: development code may run in production"


def _texts(root: Path, files: Iterable[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name in files:
        path = root / name
        if path.is_file() and os.access(path, os.R_OK):
            texts[name] = read_text(path)
    return texts


def _ordered(found: Iterable[Assignment], vendor: Vendor) -> Iterator[tuple[str, str]]:
    last = {one.name: one.value for one in found}
    return iter(sorted(last.items(), key=lambda item: (not item[0].startswith(vendor.prefix), item[0])))


@dataclass(frozen=True, slots=True)
class _Rules:
    vendor: Vendor
    refused: frozenset[str]
    environ: Mapping[str, str]

    def problem(self, file: str, name: str) -> str | None:
        internal = map(self.vendor.variable, ("NO_DOTENV", "UNSAFE_DOTENV_KEYS"))
        unsafe = self.vendor.variable("UNSAFE_DOTENV_KEYS")
        allowed = name in self.environ.get(unsafe, "").split(",")
        if name in (*internal, f"__{self.vendor.prefix}ENV_LOADED") or name.startswith(
            _LOADERS.get(sys.platform, "\0")
        ):
            return "no environment file may set it: set it in the shell"
        if name in self.refused and not allowed:
            return f"no environment file may set it: set it in the shell, or allow it with {unsafe}={name}"
        if name in LOCAL_ONLY and not allowed and not file.endswith(".local"):
            return "it belongs to one machine: move it to a file that ends in .local"
        return None


def _check_names(found: Mapping[str, list[Assignment]], rules: _Rules) -> None:
    problems = [
        f"{file}:{one.line}: {one.name}: {problem}"
        for file, all_of_it in found.items()
        for one in all_of_it
        if (problem := rules.problem(file, one.name))
    ]
    if problems:
        raise ProjectError(*problems, code="ENV_REFUSED")
