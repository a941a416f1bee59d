"""Files and directories that the user may not read: an error or a finding with the place, never a gap."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from pytest_device import ConfigError
from pytest_device.app import Project, Routes, check, load_project
from pytest_device.app.bundle import inspect_bundle
from tests.app.rows import project_files, put

NOBODY: Final = 65534
FILES: Final = {"app/index.tsx": "", "src/a.ts": "", ".env": "A=1", "dist/sub/a.js": ""}


@contextmanager
def unprivileged() -> Iterator[None]:
    """Drop the superuser's privileges: no permission restricts it."""
    user = os.geteuid()
    os.seteuid(NOBODY if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def root() -> Iterator[Path]:
    """Provide a project outside tmp_path, whose parents are its user's alone."""
    directory = Path(tempfile.mkdtemp(prefix="pytest-device-"))
    directory.chmod(0o755)
    yield put(directory, project_files({}, **FILES))
    shutil.rmtree(directory)


def _scan(project: Project) -> object:
    return Routes.scan(project.root / "app")


def _bundle(project: Project) -> object:
    return inspect_bundle(project.root / "dist", project)


def _load(project: Project) -> object:
    return load_project(project.root)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("app.json", _load), ("package.json", _load), (".env", _load), ("app", _scan),
        ("dist", _bundle), ("dist/sub", _bundle), ("dist/sub/a.js", _bundle),
    ],
)  # fmt: skip
def test_a_file_without_read_permission_is_an_error_with_its_path(
    name: str, read: Callable[[Project], object], root: Path
) -> None:
    project = load_project(root)
    read(project)
    (root / name).chmod(0)
    with (
        unprivileged(),
        pytest.raises(
            ConfigError, match=rf"{root / name}: cannot be .*Permission denied"
        ),
    ):
        read(project)
    (root / name).chmod(0o755)


@pytest.mark.parametrize("name", ["src", "src/a.ts"])
def test_a_source_without_read_permission_is_a_finding(name: str, root: Path) -> None:
    project = load_project(root)
    check(project)
    (root / name).chmod(0)
    with unprivileged():
        found = [one for one in check(project) if one.id == "source-unreadable"]
    (root / name).chmod(0o755)
    assert [(one.path, one.status, one.rule.partition(":")[0]) for one in found] == [
        (root / name, "failed", "cannot be read")
    ]
