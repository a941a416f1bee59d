"""Runs with a local service that the run starts, with agent-device and argent driving a real browser."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.fakes.http_server import serving_files

PAGE = """<!doctype html><meta name="viewport" content="width=device-width"><title>Notes</title>
<input aria-label="name" id="name"> <button aria-label="go" onclick="keep()">Go</button> <h2 id="last"></h2>
<script>
const show = () => { document.getElementById("last").textContent = "Last: " + (localStorage.last || "nobody") }
const keep = () => { localStorage.last = document.getElementById("name").value; show() }
show()
</script>
"""
pytestmark = pytest.mark.usefixtures("installed_programs")


@pytest.fixture(autouse=True)
def page(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[str]:
    """Serve an app at ``PAGE``."""
    directory = tmp_path_factory.mktemp("app")
    (directory / "index.html").write_text(PAGE)
    with serving_files(directory) as url:
        monkeypatch.setenv("PAGE", f"{url}/")
        yield str(pytester.path)


# In the gate, `tests/bare` has its example, `test_failure` its evidence, and `controllers/test_agent_device` its loss.
@pytest.mark.nightly
def test_agent_device_drives_the_page_and_leaves_nothing_to_the_next_test(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import os, psutil, pytest
        from pytest_device import AgentDeviceError
        pytestmark = pytest.mark.device(platform="android")
        seen = set()

        def told_of(process):
            try:
                return " ".join([*process.cmdline(), *process.environ().values()])
            except (psutil.Error, OSError):
                return ""

        def test_opens_what_is_not_there(device_agent_device, device_session):
            seen.add(device_session.id)
            with pytest.raises(AgentDeviceError, match="not installed here"):
                device_agent_device.open("org.example.nowhere")

        @pytest.mark.parametrize("n", [1, 2])
        def test_keeps(device_agent_device, device_session, n):
            seen.add(device_session.id)
            assert len(seen) == 1
            device_agent_device.open(os.environ["PAGE"])
            device_agent_device.wait(text="Last: nobody")
            device_agent_device.fill("label=name", "Ada")
            device_agent_device.press("label=go")
            device_agent_device.wait(text="Last: Ada")
            assert device_agent_device.screenshot().startswith(b"\\x89PNG")

        def test_fails(device_agent_device):
            device_agent_device.open(os.environ["PAGE"])
            device_agent_device.get("label=nosuch")

        def test_loses_its_daemon(device_agent_device, device_session):
            device_agent_device.open(os.environ["PAGE"])
            words = "agent-device", str(device_session.id)
            daemons = [one for one in psutil.process_iter() if all(word in told_of(one) for word in words)]
            assert daemons
            for one in daemons:
                one.kill()
            device_agent_device.snapshot()
        """
    )

    result = pytester.runpytest_subprocess(
        "--device-local", "--device-artifacts-dir=left"
    )

    result.assert_outcomes(passed=3, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["E*AgentDeviceError: agent-device get: Selector did not match: label=nosuch*"]
    )
    result.stdout.fnmatch_lines(["infrastructure: the *"])
    # In the message, or in the log below it.
    assert "agent-device exited unexpectedly" in result.stdout.str()
    (place,) = (pytester.path / "left").glob("*test_fails*")
    assert (place / "screenshot.png").read_bytes().startswith(b"\x89PNG")
    assert "button 'go'" in (place / "screen.txt").read_text()


def test_argent_drives_the_page_and_leaves_nothing_to_the_next_test(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import os, pytest, time
        pytestmark = pytest.mark.device(platform="ios", type="argent")

        def assert_shows(argent, text):  # argent answers before the page has loaded
            until = time.monotonic() + 20
            while text not in (screen := argent.describe()):
                assert time.monotonic() < until, screen

        @pytest.mark.parametrize("n", [1, 2])
        def test_keeps(device_argent, n):
            device_argent.call("open-url", url=os.environ["PAGE"])
            assert_shows(device_argent, "Last: nobody")
            device_argent.call("chromium-storage", store="local", action="set", key="last", value="Ada")
            device_argent.call("open-url", url=os.environ["PAGE"])
            assert_shows(device_argent, "Last: Ada")

        def test_fails(device_argent):
            device_argent.call("gesture-tap", x=0.5)
        """
    )

    result = pytester.runpytest_subprocess(
        "--device-local", "--device-artifacts-dir=left"
    )

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E*ArgentError: argent gesture-tap: `y` is required*"])
    (place,) = (pytester.path / "left").glob("*test_fails*")
    assert (place / "screenshot.png").read_bytes().startswith(b"\x89PNG")
    assert "gesture-tap x=" in (place / "screen.txt").read_text()


# In the gate, `tests/bare` runs the example of agent-device, and `types` checks the suite.
@pytest.mark.nightly
def test_the_suite_of_init_for_agent_device_passes(pytester: pytest.Pytester) -> None:
    program = Path(sys.prefix, "bin", "pytest-device")
    pytester.run(program, "init", "--type", "agent-device", ".")

    result = pytester.runpytest("--device-local")

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped (confirmed)*"])
