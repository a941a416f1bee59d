"""The suite of examples/real_app on a device that can't reach the 127.0.0.1 of the tests."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from tests.other_network import OtherNetwork, other_network

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no namespaces")

ROOT: Final = Path(__file__).parents[2]
SUITE: Final = ROOT / "examples" / "real_app"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Generator[OtherNetwork]:
    with other_network(tmp_path_factory.mktemp("net")) as network:
        yield network


def run_suite(
    directory: Path, environ: dict[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DEVICE_")
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", SUITE, *options],
        cwd=directory,
        env={**inherited, **environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


# In the gate, `test_tunnel` reaches each service through a tunnel, and `tests/bare` runs the suite.
@pytest.mark.nightly
def test_a_device_elsewhere_reaches_the_services_through_a_tunnel(
    network: OtherNetwork, tmp_path: Path
) -> None:
    result = run_suite(tmp_path, network.environ, f"--device-tunnel={network.tunnel}")

    assert " 30 passed" in result.stdout, result.stdout + result.stderr
    assert result.returncode == 0


@pytest.mark.nightly
def test_the_device_reaches_no_service_without_the_tunnel(
    network: OtherNetwork, tmp_path: Path
) -> None:
    result = run_suite(tmp_path, network.environ, "-k", "android and signs_in")

    assert "waited 10." in result.stdout, result.stdout + result.stderr
    assert "1 failed" in result.stdout


def test_a_service_elsewhere_needs_a_tunnel_before_a_device_is_created(
    tmp_path: Path,
) -> None:
    environ = {
        "DEVICE_URL": "https://devices.invalid",
        "DEVICE_TOKEN": "token",
        "DEVICE_APP_ID": "3b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11",
    }

    result = run_suite(tmp_path, environ)

    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    # The suite sets arguments of the provider: whether they have a public URL is not known until it starts.
    for service in ("update_service", "push_endpoint"):
        assert f"device_{service} is on this machine" in result.stderr
