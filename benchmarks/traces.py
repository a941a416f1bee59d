"""Cost of traces: passed tests at the default and with ``--device-trace=off``, and with pictures of each action.

The same suite runs in turns with each mode, on Appium's fake device of a local service: its commands take a few
milliseconds, those of a real device 50 and more. So the output has the milliseconds that a command costs, and what
part of a command of 50 ms that is. Exits with 1 if the default costs more than 1 % of it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

BAR: Final = 0.01
COMMAND_MS: Final = 50.0
"""A fast command of a real device."""
TESTS: Final = 10
COMMANDS: Final = 40
MODES: Final = {
    "off": ["--device-trace=off"],
    "default": [],
    "pictures": ["--device-trace=on"],
}
APP: Final = Path(__file__).parent.parent / "examples/appium/app.xml"
SUITE: Final = f"""
import json, pytest, time
pytestmark = pytest.mark.device(platform="android", type="appium", device_identifier="fake")

@pytest.fixture
def device_appium_options():
    return {{"appium:app": {str(APP)!r}}}

@pytest.mark.parametrize("number", range({TESTS}))
def test_taps(module_device_driver, number):
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range({COMMANDS} // 2):
        module_device_driver.find_element("accessibility id", "forgotten").is_enabled()
    spent = [time.perf_counter() - began, time.process_time() - cpu]
    with open("times.jsonl", "a") as file:
        file.write(json.dumps(spent) + "\\n")
"""


def main() -> int:
    """Print the figures; return 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=5, help="runs of each mode (default: %(default)s)"
    )
    rounds: int = parser.parse_args().rounds
    wall: dict[str, list[float]] = {mode: [] for mode in MODES}
    cpu: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode, options in MODES.items():
            for of_wall, of_cpu in _measured(options):
                wall[mode].append(1000 * of_wall / COMMANDS)
                cpu[mode].append(1000 * of_cpu / COMMANDS)

    for mode in MODES:
        middle, busy = statistics.median(wall[mode]), statistics.median(cpu[mode])
        print(f"{mode:10} {middle:7.2f} ms a command, {busy:.2f} ms of CPU time")
    cost = statistics.median(cpu["default"]) - statistics.median(cpu["off"])
    share = cost / COMMAND_MS
    print(
        f"default: {cost:.2f} ms a command, {share:.1%} of one that takes {COMMAND_MS:g} ms (bar: {BAR:.0%})"
    )
    return int(share > BAR)


def _measured(options: list[str]) -> list[tuple[float, float]]:
    """Return the seconds of each test, and those of CPU time."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        (path / "test_it.py").write_text(SUITE)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        subprocess.run(
            [*command, "--device-local", *options],
            cwd=path,
            env={**os.environ, "PYTEST_ADDOPTS": ""},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        lines = (path / "times.jsonl").read_text().splitlines()
    # The first test waits for connections and imports.
    return [(wall, cpu) for wall, cpu in map(json.loads, lines[1:])]


if __name__ == "__main__":
    sys.exit(main())
