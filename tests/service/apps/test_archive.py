"""Unpacking: the contents of an archive, and nothing outside of the target."""

import gzip
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.archive import Limits, unpack
from pytest_device.service.apps.entries import form_of
from tests.service.apps import archives
from tests.service.apps.archives import (
    PAGE,
    WEB_BUILD,
    everything_in,
    named,
    tar_of,
    tarred,
    zipped,
)

LIMITS = Limits(total_bytes=1_000_000, files=20, depth=5, ratio=50, free_bytes=100_000)
NULLS = bytes(200_000)

HOSTILE: list[tuple[str, Callable[[Path], Path], str]] = [
    # name, what makes it in a directory, what is said
    (
        "up.zip",
        lambda path: zipped(path, {"../evil": b"x"}),
        "a path that leads out of it, '../evil'",
    ),
    (
        "up.tar",
        lambda path: tarred(path, {"a/../../evil": b"x"}),
        "a path that leads out of it, 'a/../../evil'",
    ),
    (
        "up-backwards.zip",
        lambda path: zipped(path, {"..\\evil": b"x"}),
        "leads out of it, '..\\\\evil'",
    ),
    (
        "absolute.zip",
        lambda path: zipped(path, {"/tmp/evil": b"x"}),
        "leads out of it, '/tmp/evil'",
    ),
    (
        "absolute.tar.gz",
        lambda path: tarred(path, {"/tmp/evil": b"x"}),
        "leads out of it, '/tmp/evil'",
    ),
    (
        "link.zip",
        lambda path: archives.zip_with_link(path, "/etc/passwd"),
        "a link 'link' to a target outside of it",
    ),
    (
        "link-up.zip",
        lambda path: archives.zip_with_link(path, "../link-up.zip"),
        "to a target outside of it",
    ),
    (
        "link.tar",
        lambda path: tar_of(path, (named("a", tarfile.SYMTYPE, target="/etc"), b"")),
        "to a target outside of it",
    ),
    (
        "dangling.tar",
        lambda path: tar_of(path, (named("a", tarfile.SYMTYPE, target="b"), b"")),
        "to a target outside of it",
    ),
    (
        "links-that-lead-each-other-out.tar",
        lambda path: tar_of(
            path,
            (named("s", tarfile.SYMTYPE, target="."), b""),
            (named("out", tarfile.SYMTYPE, target="s/s/s/../.."), b""),
        ),
        "a link 'out' to a target outside of it",
    ),
    (
        "through-a-link.tar",
        lambda path: tar_of(
            path,
            (named("dir", tarfile.SYMTYPE, target=".."), b""),
            (named("dir/evil", size=1), b"x"),
        ),
        "cannot be unpacked: File exists",
    ),
    (
        "hard-link.tar",
        lambda path: tar_of(
            path, (named("a", tarfile.LNKTYPE, target="/etc/passwd"), b"")
        ),
        "leads out of it, '/etc/passwd'",
    ),
    (
        "hard-link-to-nothing.tar",
        lambda path: tar_of(path, (named("a", tarfile.LNKTYPE, target="b"), b"")),
        "a hard link, 'a', to a missing file: 'b'",
    ),
    (
        "device.tar",
        lambda path: tar_of(path, (named("null", tarfile.CHRTYPE), b"")),
        "a device, a socket or a pipe",
    ),
    (
        "pipe.tar",
        lambda path: tar_of(path, (named("pipe", tarfile.FIFOTYPE), b"")),
        "a device, a socket or a pipe",
    ),
    ("device.zip", archives.zip_with_device, "a device, a socket or a pipe, 'null'"),
    (
        "bomb.zip",
        lambda path: zipped(path, {"zeros": NULLS}),
        "unpacks to more than 100000 bytes",
    ),
    (
        "bomb.tar.gz",
        lambda path: tarred(path, {"zeros": NULLS}),
        "unpacks to more than 100000 bytes",
    ),
    (
        "large.tar",
        lambda path: tarred(
            path, {"noise": os.urandom(600_000), "more": os.urandom(600_000)}
        ),
        "unpacks to more than 1000000 bytes",
    ),
    (
        "liar.zip",
        lambda path: archives.zip_that_lies(path, NULLS),
        "corrupt or incomplete: Bad CRC-32",
    ),
    (
        "many.zip",
        lambda path: zipped(path, {str(n): b"" for n in range(21)}),
        "more than 20 files",
    ),
    (
        "many.tar",
        lambda path: tarred(path, {str(n): b"" for n in range(21)}),
        "more than 20 files",
    ),
    (
        "directories.zip",
        lambda path: zipped(path, {f"{n}/a/b/c/d": b"" for n in range(5)}),
        "more than 20 files",
    ),
    (
        "deep.zip",
        lambda path: zipped(path, {"a/" * 6 + "b": b""}),
        "directories nested deeper than 5",
    ),
    (
        "twice.tar",
        lambda path: tar_of(path, (named("a"), b""), (named("a"), b"")),
        "has 'a' twice",
    ),
    (
        "cut.zip",
        lambda path: archives.shortened(zipped(path, WEB_BUILD), 30),
        "corrupt or incomplete: File is not a zip",
    ),
    (
        "cut.tar.gz",
        lambda path: archives.shortened(tarred(path, {"a": os.urandom(5000)}), 2000),
        "corrupt or incomplete",
    ),
    (
        "cut.tar",
        lambda path: archives.shortened(tarred(path, {"a": bytes(20_000)}), 15_000),
        "corrupt or incomplete",
    ),
    (
        "long-name.zip",
        lambda path: zipped(path, {"a" * 300: b""}),
        "cannot be unpacked: File name too long",
    ),
]


def unpacked(
    archive: Path, limits: Limits = LIMITS, ended: Callable[[], bool] = lambda: False
) -> Path:
    directory = archive.parent / "unpacked" / "here"
    directory.mkdir(parents=True)
    unpack(archive, directory, limits=limits, ended=ended)
    return directory


@pytest.mark.parametrize("name", ["build.zip", "build.tar", "build.tar.gz"])
def test_the_contents_of_an_archive_are_unpacked(tmp_path: Path, name: str) -> None:
    archive = (zipped if name.endswith("zip") else tarred)(tmp_path / name, WEB_BUILD)

    assert everything_in(unpacked(archive)) == WEB_BUILD


def test_an_archive_is_recognized_by_its_content(tmp_path: Path) -> None:
    assert form_of(zipped(tmp_path / "a.tar", WEB_BUILD)) == "zip"
    assert form_of(tarred(tmp_path / "b.zip", WEB_BUILD)) == "tar"
    assert form_of(tarred(tmp_path / "c.gz", WEB_BUILD)) == "tar"

    (tmp_path / "d.zip").write_bytes(PAGE)
    assert form_of(tmp_path / "d.zip") is None


@pytest.mark.parametrize(
    ("name", "made", "said"), HOSTILE, ids=[name for name, *_ in HOSTILE]
)
def test_a_hostile_archive_is_refused_and_reaches_nothing_outside(
    tmp_path: Path, name: str, made: Callable[[Path], Path], said: str
) -> None:
    archive = made(tmp_path / name)

    with pytest.raises(ControllerError) as refused:
        unpacked(archive)

    assert said in str(refused.value)
    assert {path.name for path in tmp_path.iterdir()} == {name, "unpacked"}
    assert [path.name for path in (tmp_path / "unpacked").iterdir()] == ["here"]


def test_links_within_an_archive_are_kept(tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / "app.tar",
        (named("Versions/Current", tarfile.SYMTYPE, target="A"), b""),
        (named("Versions/A/lib", size=3), b"lib"),
        (named("copy", tarfile.LNKTYPE, target="Versions/A/lib"), b""),
    )

    directory = unpacked(archive)

    assert (directory / "Versions/Current").readlink() == Path("A")
    assert (
        (directory / "Versions/Current/lib").read_bytes()
        == (directory / "copy").read_bytes()
        == b"lib"
    )


def test_files_are_private_and_keep_only_their_executable_bit(tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / "app.tar",
        (named("run", mode=0o6755), b""),
        (named("read", mode=0o7666), b""),
    )

    directory = unpacked(archive)

    assert stat.S_IMODE((directory / "run").stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "read").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "name", ["ünï 🏠.txt", "new\nline", "dot.", "-rf", "a:b", "%2e%2e", "'\"$(id)"]
)
def test_odd_names_are_kept_unchanged(tmp_path: Path, name: str) -> None:
    assert everything_in(unpacked(zipped(tmp_path / "a.zip", {name: b"x"}))) == {
        name: b"x"
    }


def test_an_undecodable_name_is_shown_in_plain_characters(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "a.tar", (named("\udce9vil\n", tarfile.FIFOTYPE), b""))

    with pytest.raises(ControllerError, match=r"'\\udce9vil\\n'"):
        unpacked(archive)


def test_a_compression_method_with_unbounded_output_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("index.html", PAGE)

    with pytest.raises(
        ControllerError, match="an unsupported compression method, number 14"
    ):
        unpacked(tmp_path / "a.zip")


def test_endless_metadata_is_not_read(tmp_path: Path) -> None:
    long_name = named("long", tarfile.GNUTYPE_LONGNAME, size=300_000)

    with pytest.raises(ControllerError, match="bytes of metadata"):
        unpacked(tar_of(tmp_path / "a.tar", (long_name, bytes(300_000))))


def test_a_negative_size_does_not_cause_a_loop(tmp_path: Path) -> None:
    header = bytearray(named("a").tobuf())
    header[124:136] = (256**12 - 512).to_bytes(12, "big")
    header[148:156] = b"%06o\0 " % (
        sum(header[:148]) + 8 * ord(" ") + sum(header[156:512])
    )
    (tmp_path / "a.tar").write_bytes(
        named("first").tobuf() + bytes(header) + bytes(1024)
    )

    with pytest.raises(ControllerError, match="refers back"):
        unpacked(tmp_path / "a.tar")


@pytest.mark.parametrize(
    "content",
    [
        b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * 1_000,
        gzip.compress(b"", mtime=0) * 100_000,
    ],
    ids=["a name without end", "members without content"],
)
def test_unpacking_stops_where_gzip_reads_on_without_a_result(
    tmp_path: Path, content: bytes
) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(content)
    looks = iter([False] * 8)

    with pytest.raises(ControllerError, match="no longer needed"):
        unpacked(archive, LIMITS, ended=lambda: next(looks, True))


@pytest.mark.parametrize("make", [zipped, tarred])
def test_unpacking_stops_if_it_is_cancelled(
    tmp_path: Path, make: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    archive = make(tmp_path / "large", {"a": os.urandom(1_000_000)})
    looks = iter([False] * 8)

    with pytest.raises(ControllerError, match="no longer needed"):
        unpacked(
            archive,
            replace(LIMITS, total_bytes=2_000_000),
            ended=lambda: next(looks, True),
        )

    assert 0 < (tmp_path / "unpacked/here/a").stat().st_size < 1_000_000


def test_an_encrypted_archive_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(ControllerError, match=r"^is encrypted$"):
        unpacked(archives.encrypted(tmp_path / "a.zip"))
