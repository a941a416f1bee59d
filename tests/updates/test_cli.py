"""``pytest-device updates check`` and the fixture of the service."""

import json
import os
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_device.cli import main
from pytest_device.cli.updates import _FIXES
from pytest_device.updates import Code, generate_code_signing
from pytest_device.updates.signing import CodeSigning
from tests.app.rows import project_files, put
from tests.updates.rows import export, reference_signing

URL = "https://u.example/manifest"
ID = "0f6f5a3e-9d2c-4c0b-8c9d-2b1f6d3c5a11"
CONFIG: dict[str, Any] = {
    "version": "1.2.3",
    "sdkVersion": "57.0.0",
    "runtimeVersion": {"policy": "appVersion"},
    "updates": {"url": URL},
}
MANIFEST = {"id": ID, "commitTime": 1767225600000, "assets": []}
Run = Callable[..., tuple[int, str, str]]


@cache
def new_signing() -> CodeSigning:
    """Return the signing of a project whose key was replaced."""
    return generate_code_signing("New", 1)


def in_build(config: object = CONFIG, manifest: object = MANIFEST) -> dict[str, str]:
    return {"app.config": json.dumps(config), "app.manifest": json.dumps(manifest)}


def zipped(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def apk(root: Path, **parts: object) -> Path:
    files = {f"assets/{name}": content for name, content in in_build(**parts).items()}
    return zipped(root / "app.apk", {"AndroidManifest.xml": "\3\0", **files})


@pytest.fixture
def run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "app", project_files(CONFIG))
    export(tmp_path / "dist", platforms=("ios", "android"))

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        status = main(
            [
                "updates",
                "check",
                "--app",
                "app",
                "--update",
                "dist",
                *map(str, arguments),
            ]
        )
        assert sys.__stdout__
        sys.__stdout__.flush()  # annotations are printed past what captures
        printed = capfd.readouterr()
        return status, printed.out, printed.err

    return run


def simulator_build(root: Path) -> Path:
    files = {
        f"Notes.app/Own.bundle/{name}": content for name, content in in_build().items()
    }
    put(root, {"Notes.app/Info.plist": "", **files})
    return root / "Notes.app"


def ipa(root: Path) -> Path:
    files = {
        f"Payload/Notes.app/Own.bundle/{name}": content
        for name, content in in_build().items()
    }
    return zipped(root / "notes.ipa", files)


def facts(root: Path, **changes: object) -> Path:
    known = {"platform": "ios", "runtimeVersion": "1.2.3", "updates": {"url": URL}, "running": {
        "id": ID, "createdAt": "2026-01-01T00:00:00Z"}}  # fmt: skip
    return put(root, {"build.json": {**known, **changes}}) / "build.json"


@pytest.mark.parametrize("make", [apk, simulator_build, ipa, facts])
def test_an_update_loads_on_a_build(
    make: Callable[[Path], Path], run: Run, tmp_path: Path
) -> None:
    status, out, _ = run("--build", make(tmp_path))

    assert status == 0, out
    assert ": loads: " not in out
    assert " yes" in out


def test_each_reason_is_an_error_with_its_fix(run: Run, tmp_path: Path) -> None:
    (asset,) = (tmp_path / "dist" / "assets").iterdir()
    asset.write_text("changed")
    build = apk(
        tmp_path,
        config={**CONFIG, "version": "1.2.4"},
        manifest={**MANIFEST, "commitTime": 4102444800000},
    )

    status, out, _ = run("--build", build)

    assert status == 1
    for name in ("runtime-version", "asset-hash", "not-newer"):
        assert f"[update-{name}]" in out
    assert "that of the build '1.2.4'" in out
    assert "3 errors, 0 warnings" in out


def test_a_missing_fact_is_unknown(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("--build", facts(tmp_path, running=None))

    assert status == 2
    assert (
        "warning: build.json: missing information: the update that the build runs"
        in out.replace(f"{tmp_path}/", "")
    )
    status, out, _ = run(
        "--build", facts(tmp_path, running=None, platform="android", runtimeVersion="9")
    )
    assert status == 1


def test_the_formats_are_those_of_the_other_checks(run: Run, tmp_path: Path) -> None:
    build = facts(tmp_path, runtimeVersion="9")
    status, out, _ = run("--build", build, "--format", "json")
    found = json.loads(out)

    assert status == 1
    assert found["loads"] == {str(build): "no"}
    assert [one["id"] for one in found["findings"]] == ["update-runtime-version"]


def test_several_builds_are_checked_at_once(run: Run, tmp_path: Path) -> None:
    status, out, _ = run(
        "--build",
        apk(tmp_path),
        "--build",
        facts(tmp_path, platform="ios", runtimeVersion="9"),
    )

    assert status == 1
    assert "1 error," in out


SIGNED = {
    **CONFIG,
    "updates": {**CONFIG["updates"], "codeSigningCertificate": "./cert.pem"},
}


def facts_with(root: Path, certificate: str) -> Path:
    put(root, {"builds/old.pem": certificate})
    return facts(root, certificate="builds/old.pem")


def test_the_signing_key_must_match_the_certificate_in_the_build(
    run: Run, tmp_path: Path
) -> None:
    old, new = reference_signing(), new_signing()
    put(tmp_path / "app", {**project_files(SIGNED), "cert.pem": new.certificate})
    put(tmp_path, {"old.pem": old.private_key, "new.pem": new.private_key})
    build = facts_with(tmp_path, old.certificate)

    assert run("--build", build, "--private-key", "old.pem")[0] == 0
    status, out, err = run("--build", build, "--private-key", "new.pem")
    assert status == 1
    assert "[update-signature-invalid]" in out
    assert (
        "the build's certificate: the certificate does not match the private key" in err
    )


def test_the_projects_certificate_does_not_stand_for_the_builds(
    run: Run, tmp_path: Path
) -> None:
    key, certificate = reference_signing()
    put(tmp_path / "app", {**project_files(SIGNED), "cert.pem": certificate})
    put(tmp_path, {"key.pem": key})

    status, out, _ = run("--build", apk(tmp_path), "--private-key", "key.pem")

    assert status == 2
    assert "missing information: the signature of the update" in out


def test_a_key_that_cannot_be_used_is_reported(run: Run, tmp_path: Path) -> None:
    certificate = reference_signing().certificate
    put(tmp_path, {"broken.pem": "x"})
    os.mkfifo(tmp_path / "pipe.pem")
    build = facts_with(tmp_path, certificate)

    assert run("--build", build)[0] == 2
    status, out, err = run("--build", build, "--private-key", "broken.pem")
    assert status == 1
    assert "[update-signature-invalid]" in out
    assert "must be an unencrypted RSA key" in err
    for name in ("none.pem", "pipe.pem", "app"):
        status, _, err = run("--build", build, "--private-key", name)
        assert status == 2
        assert f"{name} cannot be read" in err


def with_asset(root: Path, content: str | None) -> Path:
    """Change or delete the asset of the export, and return a build."""
    (asset,) = (root / "dist" / "assets").iterdir()
    if content is None:
        asset.unlink()
    else:
        asset.write_text(content)
    return facts(root)


REASONS: dict[str, Callable[[Path], Path]] = {
    "disabled": lambda root: facts(root, updates={"url": URL, "enabled": False}),
    "url-missing": lambda root: facts(root, updates={}, scope=URL),
    "url-invalid": lambda root: facts(root, updates={"url": "x"}, scope=URL),
    "platform": lambda root: facts(root, platform="web"),
    "runtime-version": lambda root: facts(root, runtimeVersion="9"),
    "scope": lambda root: facts(root, scope="https://other.example"),
    "signature-invalid": lambda root: facts_with(root, reference_signing().certificate),
    "asset-missing": lambda root: with_asset(root, None),
    "asset-hash": lambda root: with_asset(root, "changed"),
    "not-newer": lambda root: facts(
        root, running={"id": ID, "createdAt": "2100-01-01T00:00:00Z"}
    ),
    "unknown": lambda root: facts(root, running=None),
}


def test_updates_that_are_off_are_explained_in_words(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("--build", REASONS["disabled"](tmp_path))

    assert "updates are off in the build: updates.enabled is false" in out


@pytest.mark.parametrize("name", REASONS)
def test_each_reason_is_printed(name: str, run: Run, tmp_path: Path) -> None:
    put(tmp_path, {"new.pem": new_signing().private_key})

    status, out, err = run(
        "--build", REASONS[name](tmp_path), "--private-key", "new.pem"
    )

    assert status == (2 if name == "unknown" else 1), err
    assert f"update-{name}" in out


def test_each_reason_of_a_check_has_a_fix() -> None:
    of_the_model = {Code.FAILED_BEFORE, Code.ROLLED_BACK}

    assert set(_FIXES) == set(Code) - of_the_model
    # No option says so.
    assert {name.replace("-", "_") for name in REASONS} == set(_FIXES) - {
        Code.SIGNATURE_MISSING
    }


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        ({"policy": "fingerprint"}, None),
        ({"policy": "nativeVersion"}, "1.2.3(7)"),
        ("5", "5"),
        (None, None),
    ],
)
def test_a_builds_runtime_version_comes_from_its_own_config(
    wanted: object, version: str | None, run: Run, tmp_path: Path
) -> None:
    config = {**CONFIG, "runtimeVersion": wanted, "android": {"versionCode": 7}}

    status, out, _ = run("--build", apk(tmp_path, config=config))

    assert status == (2 if version is None else 1)
    assert (
        f"that of the build {version!r}"
        if version
        else "the runtime version of the build"
    ) in out


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda root: root / "gone.apk", "does not exist"),
        (
            lambda root: put(root, {"x.apk": "no archive"}) / "x.apk",
            "x.apk: cannot be read: it is no zip archive, or is damaged",
        ),
        (
            lambda root: facts(root, runtimVersion="1"),
            "has unknown keys: runtimVersion",
        ),
        (lambda root: facts(root, platform=1), "platform must be a string"),
        (
            lambda root: facts(root, certificate="gone.pem"),
            "certificate 'gone.pem' cannot be read: No such file",
        ),
        (
            lambda root: facts(root, running="x"),
            "running must be an object with id and createdAt",
        ),
        (
            lambda root: facts(root, running={"id": 5}),
            "running.id must be a string",
        ),
        (
            lambda root: facts(root, updates={"enabled": "false"}),
            "build.json: updates.enabled must be of type boolean",
        ),
        (
            lambda root: facts(root, running={"createdAt": "today"}),
            "has an invalid creation time",
        ),
        (
            lambda root: zipped(root / "x.zip", {"a/app.config": "{"}),
            "contains an app.config that is not valid JSON",
        ),
        (
            lambda root: facts(root, updates={"url": 1}),
            "updates.url must be of type string",
        ),
    ],
)
def test_an_unreadable_build_is_a_usage_error(
    make: Callable[[Path], Path], problem: str, run: Run, tmp_path: Path
) -> None:
    status, _, err = run("--build", make(tmp_path))

    assert status == 2
    assert problem in err


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({}, "has no fileMetadata for ios or android"),
        ({"fileMetadata": {"ios": {}}}, "must be an array"),
        ({"fileMetadata": {"ios": {"assets": []}}}, "names a file without a path"),
        (
            {"fileMetadata": {"ios": {"bundle": "../app/app.json", "assets": []}}},
            "outside of the export",
        ),
        (
            {"fileMetadata": {"ios": {"bundle": "/etc/passwd", "assets": []}}},
            "outside of the export",
        ),
        (
            r'{"fileMetadata": {"ios": {"bundle": "\ud800", "assets": []}}}',
            "names a file that cannot exist",
        ),
    ],
)
def test_an_unreadable_export_is_a_usage_error(
    metadata: object, problem: str, run: Run, tmp_path: Path
) -> None:
    put(tmp_path / "dist", {"metadata.json": metadata})

    status, _, err = run("--build", apk(tmp_path))

    assert status == 2
    assert problem in err


def test_a_missing_file_of_an_export_is_a_reason(run: Run, tmp_path: Path) -> None:
    (asset,) = (tmp_path / "dist" / "assets").iterdir()
    asset.unlink()

    status, out, _ = run("--build", apk(tmp_path))

    assert status == 1
    assert out.count("[update-asset-missing]") == 1


def test_each_test_gets_its_own_update_service(pytester: pytest.Pytester) -> None:
    export(pytester.path / "v1")
    pytester.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def device_service_settings():
            return {"device_update_service": {"vendor": "acme"}}
    """)
    pytester.makepyfile("""
        import httpx

        def test_published(device_update_service):
            update = device_update_service.publish("v1", "1", "")["ios"]
            headers = {"acme-protocol-version": "1", "acme-platform": "ios", "acme-runtime-version": "1"}
            assert update.id in httpx.get(device_update_service.url, headers=headers).text

        def test_nothing_is_left(device_update_service):
            assert device_update_service.requests == ()
    """)

    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
