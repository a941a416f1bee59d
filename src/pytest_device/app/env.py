"""Environment of a project: its files in order of precedence, the rules for their variables, and the result."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pytest_device.app.dotenv import Assignment, assignments, expanded
from pytest_device.app.files import read_existing
from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError, ProjectError
from pytest_device.platforms import SYSTEM
from pytest_device.redact import named_secrets
from pytest_device.secret_registry import MIN_LENGTH, SECRETS
from pytest_device.spec import VENDOR

MODES: Final = ("development", "test", "production")

REFUSED: Final = frozenset(("NODE_OPTIONS",))
"""Variables that environment files must not set, since a project could hijack the tools of anyone who opens it."""

LOCAL_ONLY: Final = frozenset(("ANDROID_HOME",))
"""Variables specific to one machine, which only ``.local`` files may set."""

_OF_PROGRAMS: Final = frozenset(
    (
        *(
            "PATH",
            "PATHEXT",
            "HOME",
            "USERPROFILE",
            "APPDATA",
            "LOCALAPPDATA",
            "COMSPEC",
            "SHELL",
        ),
        *("TMPDIR", "TMP", "TEMP", "BASH_ENV", "ENV", "IFS"),
        *(
            "LOCPATH",
            "GCONV_PATH",
            "NLSPATH",
            "HOSTALIASES",
            "RES_OPTIONS",
            "LOCALDOMAIN",
            "ICU_DATA",
        ),
    )
)
_OF_PROGRAMS_PREFIXES: Final = (
    *(
        "NODE_",
        "OPENSSL_",
        "SSL_CERT_",
        "SSLKEYLOG",
        "UV_",
        "V8_",
        "XDG_",
        "NPM_CONFIG_",
        "PIP_",
        "PYTHON",
    ),
    *("LD_", "DYLD_", "GLIBC_", "MALLOC_"),
)
"""Variables by which Node.js, OpenSSL, the system's loader or our cache of programs choose programs, libraries and
their configuration: native code could run through them before any of the project's own code."""
_SECRETS: Final = ("DEVICE_TOKEN", "DEVICE_IDENTITY_PASSWORD")
_OURS: Final = "DEVICE_"

_ON: Final = frozenset(("1", "true"))


@dataclass(frozen=True, slots=True)
class EnvResult:
    """Variables that the environment files of a project set.

    ``files`` lists the file names that apply, highest precedence first, including missing files. ``loaded`` lists the
    variables set by files: lowest precedence first, and within one file public variables first. ``values`` is the
    process environment with these variables added; it is excluded from ``repr``.
    """

    files: tuple[str, ...]
    loaded_files: tuple[str, ...]
    loaded: tuple[str, ...]
    values: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()

    def from_files(self) -> dict[str, str]:
        """Return the variables set by files."""
        return {name: self.values[name] for name in self.loaded}

    @property
    def withheld(self) -> tuple[str, ...]:
        """The variables set by files that no program of the project receives, because they configure programs."""
        return tuple(name for name in self.loaded if _configures_programs(name))

    def for_programs(self) -> dict[str, str]:
        """Return the environment for the project's own programs, such as its app config.

        It has neither pytest-device's own variables nor any other that holds the access token or the users' password, and none of
        ``withheld``.
        """
        values = [self.values.get(name, "") for name in _SECRETS]
        secrets = [value for value in values if len(value) >= MIN_LENGTH]
        withheld = frozenset(self.withheld)

        return {
            name: value
            for name, value in self.values.items()
            if name not in withheld
            and not name.startswith(_OURS)
            and not any(secret in value for secret in secrets)
        }


def _configures_programs(name: str) -> bool:
    name = name.upper()  # as Windows reads it
    is_mode = name == "NODE_ENV"  # which load_project sets
    return not is_mode and (
        name in _OF_PROGRAMS or name.startswith(_OF_PROGRAMS_PREFIXES)
    )


def load_env(
    root: str | Path,
    mode: str | None = "development",
    environ: Mapping[str, str] | None = None,
    *,
    vendor: VendorProfile | str = VENDOR,
    refused: Iterable[str] = (),
) -> EnvResult:
    """Return the environment of a project in a mode, without changing ``os.environ``.

    Raises ConfigError for variables that files must not set (``refused`` adds more) and for circular references, and
    ProjectError for a file that can't be read.
    """
    environ = os.environ if environ is None else environ
    names = profile_of(vendor)
    if environ.get(names.variable("NO_DOTENV"), "").lower() in _ON:
        return EnvResult((), (), (), dict(environ))
    files = env_files(mode)
    texts = ((name, read_existing(Path(root, name))) for name in files)
    found = {name: list(assignments(text)) for name, text in texts if text is not None}
    _check(found, names, REFUSED | frozenset(refused), environ)
    parsed = {
        one: value
        for name in reversed(found)
        for one, value in _ordered(found[name], names)
    }
    _learn(parsed, names)  # before any error: a traceback shows what was read
    values = expanded(parsed, environ)
    loaded = tuple(name for name in parsed if name not in environ)
    merged = {**environ, **{name: values[name] for name in loaded}}
    _learn(values, names)
    result = EnvResult(files, tuple(found), loaded, merged, tuple(_unusual(mode)))

    if result.withheld:
        withheld = ", ".join(result.withheld)
        warning = f"the environment files set {withheld}, which no program receives: set it in the shell"
        result = replace(result, warnings=(*result.warnings, warning))

    return result


def _learn(values: Mapping[str, str], vendor: VendorProfile) -> None:
    """Register the secrets among variables; public ones are in every copy of the app."""
    private = (
        (name, value)
        for name, value in values.items()
        if not name.startswith(vendor.public_prefix)
    )
    SECRETS.learn(*named_secrets(private))


def env_files(mode: str | None) -> tuple[str, ...]:
    """Return the file names for a mode, highest precedence first; mode ``test`` skips ``.env.local``."""
    if not mode:
        return (".env.local", ".env")
    if "/" in mode or "\\" in mode or "\0" in mode:
        raise ConfigError(
            f"mode {mode!r} must be a part of a file name, for example development"
        )
    personal = () if mode == "test" else (".env.local",)
    return (f".env.{mode}.local", *personal, f".env.{mode}", ".env")


def _unusual(mode: str | None) -> Iterator[str]:
    if mode not in MODES:
        given = (
            f"mode {mode!r} is not one of {', '.join(MODES)}"
            if mode
            else "no mode is set"
        )
        yield f"{given}: development code may run in production"


def _ordered(
    found: Iterable[Assignment], vendor: VendorProfile
) -> Iterator[tuple[str, str]]:
    last = {one.name: one.value for one in found}
    return iter(
        sorted(
            last.items(),
            key=lambda item: (
                not item[0].startswith(vendor.environment_prefix),
                item[0],
            ),
        )
    )


def _check(
    found: Mapping[str, list[Assignment]],
    vendor: VendorProfile,
    refused: frozenset[str],
    environ: Mapping[str, str],
) -> None:
    unsafe = vendor.variable("UNSAFE_DOTENV_KEYS")
    allowed = {one.strip() for one in environ.get(unsafe, "").split(",")}
    internal = {
        vendor.variable("NO_DOTENV"),
        unsafe,
        f"__{vendor.environment_prefix}ENV_LOADED",
    }

    def problem(file: str, one: Assignment) -> str | None:
        if "\0" in f"{one.name}{one.value}":
            return "contains a zero byte, which no environment variable can: delete it"
        if one.name in internal or one.name.startswith(SYSTEM.loader_prefix or "\0"):
            return "must not be set in an environment file: set it in the shell"
        if one.name in refused - allowed:
            return f"must not be set in an environment file: set it in the shell, or allow it with {unsafe}={one.name}"
        if one.name in LOCAL_ONLY - allowed and not file.endswith(".local"):
            return "is specific to one machine: move it to a file that ends in .local"
        return None

    checked = (
        (f"{file}:{one.line}: {one.name}", problem(file, one))
        for file, given in found.items()
        for one in given
    )
    if problems := [f"{place}: {what}" for place, what in checked if what]:
        raise ProjectError(*problems, code="ENV_REFUSED")
