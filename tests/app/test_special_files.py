"""Projects, builds and exports with pipes, sockets, devices, directories, links and names that no file can have."""

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_device.app import load_project
from pytest_device.app.bundle import inspect_bundle
from pytest_device.cli import main
from pytest_device.errors import ProjectError
from pytest_device.updates.builds import read_build
from pytest_device.updates.export import read_export
from tests.app.rows import project_files, put
from tests.updates.rows import export

Make = Callable[[Path], object]


SPECIAL: dict[str, Make] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link to nowhere": lambda path: path.symlink_to("nowhere"),
}
special = pytest.mark.parametrize("make", SPECIAL.values(), ids=SPECIAL)


@pytest.fixture(autouse=True)
def _in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    plugins = [["vendor-notifications", {"icon": "icon.png", "sounds": ["a.wav"]}]]
    return put(
        tmp_path,
        project_files(
            {"plugins": plugins, "version": "1.0.0"}, **{"a.wav": "", "src/a.ts": ""}
        ),
    )


@special
@pytest.mark.parametrize("name", ["src/b.ts", "app.json", ".gitignore"])
def test_a_file_of_a_project_that_is_no_file_is_a_finding_or_an_error(
    name: str, make: Make, project: Path
) -> None:
    (project / name).unlink(missing_ok=True)
    os.chdir((project / name).parent)
    make(project / name)

    assert main(["app", "check", str(project)]) in (0, 1, 2)


@special
@pytest.mark.parametrize("option", ["--versions", "--directory"])
def test_a_table_that_is_no_file_is_an_error(
    option: str, make: Make, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(project / "table.json")

    assert main(["app", "check", option, "table.json"]) == 2
    assert "table.json" in capsys.readouterr().err


@special
def test_a_build_that_is_no_file_is_an_error(make: Make, project: Path) -> None:
    make(project / "app.apk")
    make(project / "build.json")

    for name in ("app.apk", "build.json"):
        if not (project / name).is_dir():
            with pytest.raises(ProjectError):
                read_build(project / name)
            with pytest.raises(ProjectError):
                inspect_bundle(project / name, load_project(project))


@special
def test_a_file_of_a_build_that_is_no_file_is_skipped(
    make: Make, project: Path
) -> None:
    (project / "Notes.app").mkdir()
    os.chdir(project / "Notes.app")
    make(project / "Notes.app" / "app.config")
    make(project / "Notes.app" / "Info.plist")
    (project / "Notes.app" / "main.js").write_text("1")

    assert read_build(project / "Notes.app").platform == "ios"
    assert inspect_bundle(project / "Notes.app", load_project(project)).files == 1


def in_tar(*members: tuple[str, bytes, str]) -> bytes:
    """Return a tar with members: their names, kinds and targets."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
        config = tarfile.TarInfo("Notes.app/app.config")
        config.size = 2
        archive.addfile(config, io.BytesIO(b"{}"))
    return packed.getvalue()


@pytest.mark.parametrize(
    "members",
    [
        [("Notes.app/a", tarfile.SYMTYPE, "nowhere")],
        [
            ("Notes.app/a", tarfile.FIFOTYPE, ""),
            ("Notes.app/b", tarfile.CHRTYPE, ""),
            ("Notes.app/c", b"5", ""),
        ],
    ],
    ids=["link to nowhere", "other kinds"],
)
def test_links_and_pipes_in_an_archive_have_no_content(
    members: list[tuple[str, bytes, str]], project: Path
) -> None:
    path = project / "app.tar.gz"
    path.write_bytes(in_tar(*members))

    # The archive and the only file in it.
    assert inspect_bundle(path, load_project(project)).files == 2


def broken_archives() -> Iterator[tuple[str, bytes]]:
    whole = in_tar()
    yield "cut.tar.gz", whole[: len(whole) // 2]
    yield "text.tar.gz", b"text"
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", compression) as archive:
            archive.writestr(
                "assets/app.config", json.dumps({"extra": list(range(999))})
            )
        content = bytearray(packed.getvalue())
        content[60:90] = b"\xff" * 30
        yield f"broken{compression}.zip", bytes(content)
        yield (
            f"unknown{compression}.zip",
            packed.getvalue().replace(bytes([compression, 0]), b"\x63\0"),
        )


BROKEN = dict(broken_archives())


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_archive_is_an_error(name: str, project: Path) -> None:
    (project / name).write_bytes(BROKEN[name])

    for read in (read_build, lambda path: inspect_bundle(path, load_project(project))):
        with pytest.raises(ProjectError, match="cannot be"):
            read(project / name)


def hash_of_bundle(directory: Path) -> str | None:
    try:
        return read_export(directory)["ios"].bundle.hash
    except ProjectError:
        return None


@special
@pytest.mark.parametrize("name", ["metadata.json", "bundle.js"])
def test_a_file_of_an_export_that_is_no_file_is_missing_or_an_error(
    name: str, make: Make, tmp_path: Path
) -> None:
    directory = export(tmp_path / "dist")
    files = {"ios": {"bundle": "bundle.js", "assets": []}}
    (directory / "metadata.json").unlink()
    if name != "metadata.json":
        (directory / "metadata.json").write_text(json.dumps({"fileMetadata": files}))
    os.chdir(directory)
    make(directory / name)

    assert hash_of_bundle(directory) is None


@pytest.mark.parametrize(
    "name", ["a\0b.js", "\0", "\udcff.js", "x" * 5000, "a/" * 3000, "../../secret", "."]
)
def test_a_path_of_an_export_that_no_file_can_have_is_missing_or_an_error(
    name: str, tmp_path: Path
) -> None:
    directory = export(tmp_path / "dist")
    (directory / "metadata.json").write_text(
        json.dumps({"fileMetadata": {"ios": {"bundle": name, "assets": []}}})
    )

    assert hash_of_bundle(directory) is None
