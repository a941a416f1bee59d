"""No command prints the access token, whatever goes wrong."""

from pathlib import Path

import pytest

from tests.cli.running import call, run

TOKEN = "a-token-that-nobody-may-see"
CONFTEST = "import os\nraise RuntimeError(os.environ['DEVICE_TOKEN'])"
INI = f"[pytest]\ndevice_build_id = {TOKEN}"


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "environ", "status"),
    [
        (("stop", TOKEN), {}, 2),
        (("stop", "--timeout-seconds", TOKEN), {}, 2),
        (("stop", "--url", f"https://somebody:{TOKEN}@devices.example"), {}, 2),
        (
            ("stop", "--url", f"https://{TOKEN}.invalid/ "),
            {"DEVICE_STATE_DIR": f"/dev/null/{TOKEN}"},
            2,
        ),
        (("sessions", "--state-dir", f"/tmp/{TOKEN}"), {}, 2),
        (("sessions", "--json", "--state-dir", f"/dev/null/{TOKEN}"), {}, 2),
        (("serve", "--host", TOKEN), {}, 2),
        (("serve", "--port", TOKEN), {}, 2),
        (("serve", "--app-id", TOKEN), {}, 2),
        (("serve", "--state-dir", f"/dev/null/{TOKEN}", "--port", "0"), {}, 2),
        ((TOKEN,), {}, 2),
        (("sessions", f"--{TOKEN}"), {}, 2),
        (("doctor",), {"DEVICE_URL": f"https://{TOKEN}"}, 1),
        pytest.param(
            ("doctor",), {"DEVICE_PLATFORM": TOKEN}, 1, marks=pytest.mark.nightly
        ),
        (("doctor", "--json"), {"DEVICE_LOCAL": "1", "DEVICE_IDENTIFIER": TOKEN}, 0),
        pytest.param(
            ("doctor",),
            {
                "DEVICE_URL": "http://127.0.0.1:9",
                "DEVICE_STATE_DIR": f"/dev/null/{TOKEN}",
            },
            1,
            marks=pytest.mark.nightly,
        ),
        (("doctor", "--json"), {"PYTEST_ADDOPTS": f"--{TOKEN}"}, 1),
    ],
)
def test_it_is_masked(
    arguments: tuple[str, ...],
    environ: dict[str, str],
    status: int,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    own = {"DEVICE_TOKEN": TOKEN, "XDG_STATE_HOME": str(tmp_path), "NO_PROXY": "*"}
    result = call(*arguments, **{**own, **environ})

    # What goes past sys.stdout and sys.stderr, also from other processes.
    around = "".join(capfd.readouterr())
    assert result.returncode == status, result.stderr
    assert TOKEN not in result.stdout + result.stderr + around
    assert "***" in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("conftest.py", CONFTEST),
        pytest.param("pytest.ini", INI, marks=pytest.mark.nightly),
    ],
)
def test_it_is_masked_in_the_output_of_a_suites_files(
    file: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text)

    result = run(
        "doctor", cwd=tmp_path, DEVICE_TOKEN=TOKEN, XDG_STATE_HOME=str(tmp_path)
    )

    assert result.returncode == 1
    assert TOKEN not in result.stdout + result.stderr
    assert "***" in result.stdout


def test_it_is_masked_in_the_traceback_of_an_unexpected_error(tmp_path: Path) -> None:
    (tmp_path / "boom.py").write_text(
        f"def pytest_addoption():\n    {CONFTEST.replace(chr(10), '; ')}"
    )

    result = run("doctor", cwd=tmp_path, DEVICE_TOKEN=TOKEN, PYTEST_ADDOPTS="-p boom")

    assert result.returncode == 1
    assert "RuntimeError: ***" in result.stderr
    assert TOKEN not in result.stdout + result.stderr
