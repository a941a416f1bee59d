"""Runs with ``--looponfail`` of pytest-xdist, which repeats them whenever a file changes."""

import signal
import subprocess
import sys

import pytest

from pytest_device.testing import FaultyService


def test_looponfail_is_refused_for_tests_with_devices(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_driven(device_session):
            assert False
        """
    )
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "pytest", "-f"],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout
        lines: list[str] = []
        for line in run.stdout:
            lines.append(line)
            if "### Watching:" in line:
                run.send_signal(signal.SIGINT)

    assert "--looponfail repeats tests whenever a file changes" in "".join(lines)
    assert service.sessions() == []
