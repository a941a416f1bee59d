"""What a build contains, and must not contain."""

import base64
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from pytest_device.app import debug_id, load_project
from pytest_device.app.bundle import Bundle, inspect_bundle
from pytest_device.errors import ProjectError
from tests.app.rows import project_files, put

pytestmark = pytest.mark.every_python

SECRET: Final = 'hunter2"${x}ü'
ENV: Final = """\
API_SECRET='hunter2"${x}ü'
PIN=1234
VENDOR_PUBLIC_API=https://api.example
VENDOR_PUBLIC_OTHER=not-in-there
VENDOR_PUBLIC_FLAG=1
"""


def _inspect(
    root: Path,
    content: bytes | None = None,
    name: str = "bundle.js",
    *,
    allowed: tuple[str, ...] = (),
) -> Bundle:
    project = load_project(
        put(root / "app", project_files({}, **{".env": ENV.replace("$", "\\$")}))
    )
    if content is not None:
        (root / "dist").mkdir()
        (root / "dist" / name).write_bytes(content)
    return inspect_bundle(root / "dist", project, allowed=allowed)


@pytest.mark.parametrize(
    "spelt",
    [
        lambda secret: secret.encode(),
        lambda secret: json.dumps(secret).encode(),
        *(
            lambda secret, n=n: base64.b64encode(b"abc"[:n] + secret.encode() + b"zz")
            for n in range(3)
        ),
    ],
)
def test_a_secret_is_found_in_each_encoding(
    spelt: Callable[[str], bytes], tmp_path: Path
) -> None:
    bundle = _inspect(tmp_path, b"x" * 1000 + spelt(SECRET) + b"y" * 1000)
    [finding] = bundle.findings
    assert (finding.id, finding.severity, finding.path) == (
        "bundle-secret",
        "error",
        tmp_path / "dist" / "bundle.js",
    )
    assert "API_SECRET" in finding.rule
    assert "hunter2" not in repr(bundle) + repr(finding)


def test_a_secret_across_two_chunks_is_found(tmp_path: Path) -> None:
    assert _inspect(tmp_path, b"x" * (4 * 1024 * 1024 - 5) + SECRET.encode()).findings


def _zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("assets/index.bundle", content)
    return packed.getvalue()


def _tarred(content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("a/index.bundle")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.apk", _zipped),
        ("a.ipa", _zipped),
        ("a.tar.gz", _tarred),
        ("a.zip", lambda text: _zipped(_zipped(text))),
    ],
)
def test_nested_archives_are_searched(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    [finding] = _inspect(
        tmp_path, pack(b"var a = '" + SECRET.encode() + b"'"), name
    ).findings
    assert "index.bundle" in finding.path.as_posix()
    archive = tmp_path / "dist" / name
    [alone] = inspect_bundle(archive, load_project(tmp_path / "app")).findings
    assert alone.path == finding.path


def test_public_values_addresses_and_short_secrets_are_reported(tmp_path: Path) -> None:
    bundle = _inspect(tmp_path, b"fetch('https://api.example'); 1234")
    assert (bundle.public, bundle.addresses) == (
        ("VENDOR_PUBLIC_API",),
        ("https://api.example",),
    )
    assert (bundle.findings, bundle.unchecked, bundle.files) == (
        (),
        ("PIN", "VENDOR_PUBLIC_FLAG"),
        1,
    )


def test_a_secret_can_be_allowed(tmp_path: Path) -> None:
    assert not _inspect(tmp_path, SECRET.encode(), allowed=("API_SECRET",)).findings


def test_secrets_of_each_mode_are_searched_for_even_if_the_process_has_others(
    tmp_path: Path,
) -> None:
    files = {
        ".env": "A=from-env-file",
        ".env.production": "B=of-production",
        ".env.test.local": "C=of-tests-only",
    }
    project = load_project(
        put(tmp_path / "app", project_files({}, **files)),
        environ={"A": "of-the-process\udcff"},
    )
    put(tmp_path, {"dist/a.js": "from-env-file of-production of-tests-only"})
    (tmp_path / "dist/b.js").write_bytes(b"of-the-process\xff")
    found = [
        (one.path.name, one.rule.split(":")[0])
        for one in inspect_bundle(tmp_path / "dist", project).findings
    ]
    leaks = [("a.js", "A"), ("b.js", "A"), ("a.js", "B"), ("a.js", "C")]
    assert found == [(file, f"contains the value of {name}") for file, name in leaks]


def test_the_value_of_a_public_variable_is_not_a_secret(tmp_path: Path) -> None:
    files = {".env": "API=https://api.example\nVENDOR_PUBLIC_API=$API"}
    project = load_project(
        put(tmp_path / "app", project_files({}, **files)), environ={}
    )
    bundle = inspect_bundle(
        put(tmp_path / "dist", {"a.js": "'https://api.example'"}), project
    )
    assert (bundle.findings, bundle.addresses) == ((), ("https://api.example",))


def test_a_bundle_and_its_map_have_the_same_debug_id(tmp_path: Path) -> None:
    mine, other = debug_id("a"), debug_id("b")
    put(
        tmp_path / "dist",
        {"a.js": f"x\n//# debugId={mine}", "a.js.map": {"debugId": mine}},
    )
    bundle = _inspect(tmp_path)
    assert (bundle.findings, bundle.debug_ids) == ((), {"a.js": mine, "a.js.map": mine})
    for content, problem in (
        ({"debugId": other}, "the map has a different debug ID"),
        ({}, "the map has no debug ID"),
    ):
        put(tmp_path / "dist", {"a.js.map": content})
        [finding] = _inspect(tmp_path).findings
        assert (finding.id, finding.rule.partition(":")[0]) == (
            "bundle-debug-id",
            problem,
        )
    put(
        tmp_path / "dist",
        {"a.js": "bytecode has no comment", "a.js.map": {"debugId": mine}},
    )
    assert _inspect(tmp_path).findings == ()


def test_an_unsearchable_build_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="dist: does not exist"):
        _inspect(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        ProjectError, match="pipe: cannot be searched: it is not a regular file"
    ):
        inspect_bundle(tmp_path / "pipe", load_project(tmp_path / "app"))
    with pytest.raises(ProjectError, match=r"a\.tgz: cannot be searched"):
        _inspect(tmp_path, b"no archive", "a.tgz")
