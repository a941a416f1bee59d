"""The examples of the controllers' reference run on a device of the local service, with the app of the examples."""

from pathlib import Path

import pytest

BUILDS = Path(__file__).parents[2] / "examples" / "builds"
NOTES = "5b0f6f0e-7c52-4f0b-9a53-2d1f8f0f6a11"
SUITE = """
import doctest
import pytest
import pytest_device

FINDER = doctest.DocTestFinder(exclude_empty=True)
EXAMPLES = [
    pytest.param(example, id=example.name)
    for kind in {kinds}
    for base in kind.__mro__
    for example in FINDER.find(base, base.__name__, globs={{}})
    # It starts here, and is refused only when it ends: the next command could not be told from it.
    if example.examples and example.name != "AgentDevice.start_recording"
]
pytestmark = pytest.mark.device(
    platform="android", type="{session_type}", device_identifier="chromium", build_id="{build}"
)

@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example, {fixture}, tmp_path):
    {begin}
    example.globs.update(device={fixture}, tmp_path=tmp_path, pytest_device=pytest_device)
    doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(example, clear_globs=False)

    # What a browser can't do is refused, which the reference doesn't show.
    for line in example.examples:
        if line.options.get(doctest.SKIP):
            with pytest.raises((pytest_device.AgentDeviceError, pytest_device.ArgentError)):
                exec(line.source, example.globs)
"""
pytestmark = pytest.mark.usefixtures("installed_programs")


def suite(session_type: str, fixture: str, kinds: str, begin: str) -> str:
    return SUITE.format(
        session_type=session_type,
        fixture=fixture,
        kinds=kinds,
        begin=begin,
        build=NOTES,
    )


def test_the_examples_of_each_controller_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_agent_device=suite(
            "agent-device",
            "device_agent_device",
            "[pytest_device.AgentDevice]",
            "device_agent_device.open('org.example.notes')",
        ),
        test_argent=suite(
            "argent",
            "device_argent",
            "[pytest_device.Argent, pytest_device.Tool]",
            "device_argent.call('await-screen-idle')",
        ),
    )

    result = pytester.runpytest(
        "-v", "--device-local", f"--device-builds-dir={BUILDS}", "--device-trace=off"
    )

    assert set(result.parseoutcomes()) == {"passed"}, result.stdout.str()
    passed = [line for line in result.outlines if " PASSED" in line]
    for module in ("test_agent_device.py", "test_argent.py"):
        assert sum(line.startswith(f"{module}::") for line in passed) > 5
