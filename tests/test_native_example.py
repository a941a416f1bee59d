"""The example with a native app: skipped without a device, an error where one is named, and an app with what it looks for."""

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pytest_device.service.programs.toolchain import Node
from tests.docs_pages import ROOT
from tests.fakes.programs import FakeProgram

EXAMPLE = ROOT / "examples/native"
NO_DEVICE = "List of devices attached\n"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(
            EXAMPLE,
            tmp_path / "native",
            ignore=shutil.ignore_patterns("node_modules", "device-*", ".pytest_cache"),
        )
    )


@pytest.mark.usefixtures("pytester", "node_on_path")  # its runs are forks
@pytest.mark.parametrize(
    ("options", "status", "line"),
    [
        ((), 0, r"^=+ 2 skipped in "),
        (
            ("--device-local-real",),
            4,
            "^ERROR: .* adb devices -l lists no ready device",
        ),
        (("--device-avd=ci",), 4, "^ERROR: .* emulator is neither on PATH nor in "),
    ],
)
def test_it_is_skipped_without_a_device_and_fails_if_one_is_wanted(
    options: tuple[str, ...], status: int, line: str, example: Path, tmp_path: Path
) -> None:
    adb = FakeProgram.made(tmp_path / "bin/adb")
    adb.answers({"devices*": NO_DEVICE})
    path = os.pathsep.join([str(adb.path.parent), os.environ["PATH"]])

    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=example,
        env={**os.environ, "PATH": path, "ANDROID_HOME": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )

    assert run.returncode == status, run.stdout
    assert re.search(line, run.stdout, re.MULTILINE)
    assert " passed" not in run.stdout


def test_its_app_has_what_its_tests_look_for(example: Path, node: Node) -> None:
    install = [*node.npm, "ci", "--ignore-scripts"]
    subprocess.run(install, cwd=example, check=True, timeout=240)

    apk = example / "node_modules/android-apidemos/apks/ApiDemos-debug.apk"
    with zipfile.ZipFile(apk) as app:
        manifest, resources = (
            app.read(name) for name in ("AndroidManifest.xml", "resources.arsc")
        )
    tree = ast.parse((example / "test_api_demos.py").read_text())
    texts = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {"io.appium.android.apis:id", "/check1", "/edit"} <= texts
    assert {"Views", "Controls", "1. Light Theme"} <= texts
    # In the compiled manifest, text is UTF-16: the list of screens is made of these labels.
    for text in ("io.appium.android.apis", "Views/Controls/1. Light Theme"):
        assert text.encode("utf-16-le") in manifest
    for name in (b"check1", b"edit"):
        assert name in resources
