"""Environment of a project: its files in order of precedence, the rules for their variables, and the result."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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

_TOKEN: Final = "DEVICE_TOKEN"  # noqa: S105  # its name
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

    def for_programs(self) -> dict[str, str]:
        """Return the environment for the project's own programs, such as its app config.

        It has neither pytest-device's own variables nor any other that holds the access token.
        """
        token = self.values.get(_TOKEN, "")
        has_token = len(token) >= MIN_LENGTH

        return {
            name: value
            for name, value in self.values.items()
            if not name.startswith(_OURS) and not (has_token and token in value)
        }


def load_env(
    root: str | Path,
    mode: str | None = "development",
    environ: Mapping[str, str] | None = None,
    *,
    vendor: VendorProfile | str = VENDOR,
) -> EnvResult:
    """Return the environment of a project in a mode, without changing ``os.environ``.

    Args:
        root: The project's directory.
        mode: The mode that selects the files, see `env_files`.
        environ: The environment variables, which win over those of files (default: those of this process).
        vendor: The vendor's profile, or only its word.

    Raises:
        ProjectError: A file can't be read, or sets a variable that it must not set.
        ConfigError: The mode is invalid, or references are circular or unclosed.
    """
    environ = os.environ if environ is None else environ
    profile = profile_of(vendor)
    if environ.get(profile.variable("NO_DOTENV"), "").lower() in _ON:
        return EnvResult((), (), (), dict(environ))

    names = env_files(mode)
    files: dict[str, list[Assignment]] = {}
    for name in names:
        text = read_existing(Path(root, name))
        if text is not None:
            files[name] = list(assignments(text))
    _check(files, profile, environ)

    # The lowest precedence first: later ones replace a value, not its place.
    parsed: dict[str, str] = {}
    for name in reversed(files):
        parsed.update(_ordered(files[name], profile))
    # Before any error: a traceback shows what was read.
    _learn(parsed, profile)
    values = expanded(parsed, environ)
    _learn(values, profile)

    loaded = tuple(name for name in parsed if name not in environ)
    merged = {**environ, **{name: values[name] for name in loaded}}

    return EnvResult(names, tuple(files), loaded, merged, tuple(_unusual(mode)))


def _learn(values: Mapping[str, str], vendor: VendorProfile) -> None:
    """Register the secrets among variables; public ones are in every copy of the app."""
    private = [
        (name, value)
        for name, value in values.items()
        if not name.startswith(vendor.public_prefix)
    ]
    SECRETS.learn(*named_secrets(private))


def env_files(mode: str | None) -> tuple[str, ...]:
    """Return the file names for a mode, highest precedence first; mode ``test`` skips ``.env.local``."""
    if not mode:
        return (".env.local", ".env")
    if "/" in mode or "\\" in mode or "\0" in mode:
        raise ConfigError(
            f"mode {mode!r} must be a part of a file name, for example development"
        )

    # Tests give the same results on each machine.
    if mode == "test":
        return (".env.test.local", ".env.test", ".env")

    return (f".env.{mode}.local", ".env.local", f".env.{mode}", ".env")


def _unusual(mode: str | None) -> Iterator[str]:
    """Yield a warning for a mode that the bundler does not know."""
    if not mode:
        yield "no mode is set: development code may run in production"
    elif mode not in MODES:
        yield f"mode {mode!r} is not one of {', '.join(MODES)}: development code may run in production"


def _ordered(
    file: Iterable[Assignment], vendor: VendorProfile
) -> list[tuple[str, str]]:
    """Return the variables of a file, the vendor's first, then by name; of several values, the last counts."""
    values = {assignment.name: assignment.value for assignment in file}
    names = sorted(values)
    names.sort(key=lambda name: not name.startswith(vendor.environment_prefix))

    return [(name, values[name]) for name in names]


@dataclass(frozen=True, slots=True)
class _Rules:
    """Which variables environment files must not set."""

    internal: frozenset[str]
    allowed: frozenset[str]
    unsafe: str
    """Name of the variable that allows refused ones."""

    def problem(self, file: str, assignment: Assignment) -> str | None:
        """Return the rule that an assignment violates, or None."""
        name = assignment.name
        if "\0" in name or "\0" in assignment.value:
            return "contains a zero byte, which no environment variable can: delete it"
        if name in self.internal or name.startswith(SYSTEM.loader_prefix or "\0"):
            return "must not be set in an environment file: set it in the shell"
        if name in REFUSED - self.allowed:
            return (
                "must not be set in an environment file: set it in the shell, "
                f"or allow it with {self.unsafe}={name}"
            )
        if name in LOCAL_ONLY - self.allowed and not file.endswith(".local"):
            return "is specific to one machine: move it to a file that ends in .local"

        return None


def _check(
    files: Mapping[str, list[Assignment]],
    vendor: VendorProfile,
    environ: Mapping[str, str],
) -> None:
    """Raise ProjectError with all variables that the files must not set."""
    unsafe = vendor.variable("UNSAFE_DOTENV_KEYS")
    loaded = f"__{vendor.environment_prefix}ENV_LOADED"
    allowed = [name.strip() for name in environ.get(unsafe, "").split(",")]
    rules = _Rules(
        internal=frozenset((vendor.variable("NO_DOTENV"), unsafe, loaded)),
        allowed=frozenset(allowed),
        unsafe=unsafe,
    )

    problems: list[str] = []
    for file, file_assignments in files.items():
        for assignment in file_assignments:
            problem = rules.problem(file, assignment)
            if problem:
                position = f"{file}:{assignment.line}: {assignment.name}"
                problems.append(f"{position}: {problem}")
    if problems:
        raise ProjectError(*problems, code="ENV_REFUSED")
