"""Checks the configuration and the plugins of a pytest run in this directory: pytest reads it and runs nothing."""

import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from fnmatch import fnmatch
from io import StringIO
from pathlib import Path
from typing import Final

import pytest

import pytest_device.plugin
from pytest_device.cli.doctor.finding import Finding, fail, ok, warn
from pytest_device.errors import ConfigError
from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.project import additions_of, notes_of
from pytest_device.settings import Settings

_NAME: Final = "configuration"
_ARGUMENTS: Final = ("--assert=plain",)
"""Otherwise pytest warns or fails, because this package is already imported and cannot be rewritten."""
_PLUGIN_FIX: Final = "remove `-p no:device` and PYTEST_DISABLE_PLUGIN_AUTOLOAD, or add `-p pytest_device.plugin` to addopts"
_RIVAL: Final = "appium_scheduler"
_DIRECTORIES_MAX: Final = 2_000
"""Larger suites are not searched, and get no finding."""


def read_configuration() -> tuple[Sequence[Finding], Settings | None]:
    """Check pytest's configuration in this directory: ini file, addopts, environment, conftest files.

    Returns the findings, and the settings if they can be read.
    """
    reader = _Reader()
    output = StringIO()
    try:
        with redirect_stdout(output), redirect_stderr(output):
            ending = str(int(pytest.main(list(_ARGUMENTS), plugins=[reader])))
    except (SystemExit, pytest.exit.Exception) as error:  # from a conftest.py
        ending = f"{type(error).__name__} {error}"

    if reader.findings:
        return reader.findings, reader.settings

    lines = [line.strip() for line in output.getvalue().splitlines() if line.strip()]
    last_lines = "; ".join(lines[-3:]) or "no output"
    failure = fail(
        _NAME,
        f"pytest fails to start here ({ending}): {last_lines}",
        "run `pytest --collect-only` here and fix the reported errors",
    )
    return [failure], None


class _Reader:
    """A plugin that replaces the run."""

    findings: Sequence[Finding] = ()
    settings: Settings | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> pytest.ExitCode:
        self.findings = tuple(self._read(config))
        return pytest.ExitCode.OK

    def _read(self, config: pytest.Config) -> Iterator[Finding]:
        if not config.pluginmanager.is_registered(pytest_device.plugin):
            yield fail(
                _NAME, "pytest does not load the pytest-device plugin here", _PLUGIN_FIX
            )
            return

        if config.inipath:
            yield ok(_NAME, str(config.inipath))
        else:
            yield ok(_NAME, f"no ini file, rootdir is {config.rootpath}")

        try:
            self.settings = settings_of(config)
        except ConfigError as error:
            for problem in error.problems:
                yield fail(_NAME, problem, "correct or remove this value")
        else:
            yield from _values(config, self.settings)

        yield from _others(config)


def _values(config: pytest.Config, settings: Settings) -> Iterator[Finding]:
    """Yield what is not a default, what comes from the app's project, and what is missing."""
    for option, value in settings.chosen():
        yield ok(
            "setting", f"{option.ini} = {value}, from {settings.source(option.word)}"
        )

    for note in notes_of(config):
        yield ok("app", note)

    for name, value, source in additions_of(config):
        yield ok("app", f"{name}: {value}, from {source}")

    if settings.local:
        for problem in settings.service_problems():
            yield fail(_NAME, problem, "remove one of the two")
    elif settings.url is None:
        needed = (
            f"{Options.url.variable}, {Options.app_id.variable} and {TOKEN_VARIABLE}"
        )
        fix = f"set {needed}, or run on this machine: pytest {Options.local.flag}"
        yield fail(_NAME, "no device service is configured", fix)
    elif settings.app_id is None:
        fix = f"set {Options.app_id.variable} or {Options.app_id.ini} in the ini file"
        yield fail(_NAME, f"no app ID for {settings.url}", fix)


def _others(config: pytest.Config) -> Iterator[Finding]:
    """Yield plugins that conflict with this one, and plugins that only cost time."""
    if config.pluginmanager.has_plugin(_RIVAL):
        text = (
            "pytest-appium-scheduler also uses the marker 'device', in a different way"
        )
        yield fail("plugins", text, f"add `-p no:{_RIVAL}` to addopts, or uninstall it")
    else:
        yield ok("plugins", "no conflicting plugins")

    if config.pluginmanager.has_plugin("anyio") and not _may_use(config, "anyio"):
        text = "anyio's pytest plugin (installed by httpx) slows down startup, and no test file uses it"
        yield warn("start-up", text, "add `-p no:anyio` to addopts")


def _may_use(config: pytest.Config, word: str) -> bool:
    """Return whether the ini file, a conftest.py or a test file contains the word, or there are too many to search."""
    if config.inipath and _holds(config.inipath, word):
        return True

    patterns: list[str] = ["conftest.py", *config.getini("python_files")]
    skipped: list[str] = config.getini("norecursedirs")

    directories = _directories_of(config, skipped)
    for number, (directory, names) in enumerate(directories, 1):
        if number > _DIRECTORIES_MAX:
            return True

        for name in names:
            is_collected = any(fnmatch(name, pattern) for pattern in patterns)
            if is_collected and _holds(directory / name, word):
                return True

    return False


def _directories_of(
    config: pytest.Config, skipped: list[str]
) -> Iterator[tuple[Path, list[str]]]:
    """Yield each directory that pytest would collect from, with the names of its files."""
    roots = dict.fromkeys(argument.partition("::")[0] for argument in config.args)
    for root in roots:
        yield from _walked(config.invocation_params.dir / root, skipped)


def _walked(root: Path, skipped: list[str]) -> Iterator[tuple[Path, list[str]]]:
    if root.is_file():
        yield root.parent, [root.name, "conftest.py"]

    for directory, subdirectories, names in os.walk(root):
        if "pyvenv.cfg" in names:  # a virtual environment
            subdirectories.clear()
            continue

        # os.walk continues with what remains in its list.
        subdirectories[:] = [
            name
            for name in subdirectories
            if not any(fnmatch(name, pattern) for pattern in skipped)
        ]
        yield Path(directory), names


def _holds(path: Path, word: str) -> bool:
    try:
        return word in path.read_text("utf-8", errors="replace")
    except OSError:
        return False
