"""Time of an Appium suite on the local device, over that of the same suite by hand with a bare Appium.

Whole pytest processes, one after the other in each round: by hand (Appium's server, its driver for Chromium,
chromedriver and the browser started by the suite, without this plugin), with one driver for all tests
(``session_device_driver``), and with a driver per test (``device_driver``). All use the same programs and the same page,
and run the same tests. Each round yields the ratios of wall times, and of the CPU time of the suite and all programs that
it waited for; the output has their medians, and by hand against itself for comparison. On a busy machine, read the CPU
times. Exits with 1 if a bar is missed. An argument sets the number of rounds.

A round before the first one is not counted. It leaves compiled modules and a warm disk cache to all suites alike: without
them, which PYTHONDONTWRITEBYTECODE would enforce, a run measures Python's compiler.
"""

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pytest_device.programs import cache_directory
from pytest_device.service.devices import browsers
from pytest_device.service.devices.browsers import BUILT_FOR
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import APPIUM, Toolbox, inspect
from pytest_device.spec import SessionType

ROUNDS: Final = 5
TESTS: Final = 30
RUN_SECONDS: Final = 300
BARS: Final = {"one driver": 0.9, "a driver per test": 1.9}
DRIVER: Final = "appium-chromium-driver@3.1.1"
BY_HAND: Final = "by hand"
AGAIN: Final = "by hand again"

PAGE: Final = """<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>Notes</title><h1 aria-label="title">Notes</h1><input aria-label="text">
<button aria-label="add" onclick="count.textContent = field.value">Add</button><p aria-label="count" id="count"></p>
<script>const field = document.querySelector('input'), count = document.querySelector('p')</script>
"""

TEST: Final = """
    import pytest

    @pytest.mark.parametrize("number", range({tests}))
    def test_adds(it, number):
        field = it.find_element({by}, {text})
        field.clear()
        field.send_keys(f"note{{number}}")
        it.find_element({by}, {add}).click()
        assert it.find_element({by}, {count}).text == f"note{{number}}"
"""

CONFTEST_BY_HAND: Final = """
    import os, socket, subprocess, threading, time, urllib.request
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    import pytest

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    @pytest.fixture(scope="session")
    def page():
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=os.environ["APP"])) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_address[1]}/"
            server.shutdown()

    @pytest.fixture(scope="session")
    def appium():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        command = [os.environ["NODE"], os.environ["APPIUM"], "server", "--address", "127.0.0.1", "--port", port,
                   "--log-level", "info", "--shutdown-timeout", "0"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                urllib.request.urlopen(url + "/status", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.05)
        yield url
        server.terminate()
        server.wait()

    @pytest.fixture(scope="session")
    def it(appium, page):
        from appium.options.common import AppiumOptions
        from appium.webdriver import Remote
        arguments = ["headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=412,915"]
        options = AppiumOptions().load_capabilities({
            "platformName": "linux", "appium:automationName": "Chromium", "browserName": "chrome",
            "appium:executable": os.environ["CHROMEDRIVER"], "appium:autodownloadEnabled": False,
            "appium:disableBuildCheck": True,
            "goog:chromeOptions": {"binary": os.environ["CHROMIUM"], "args": arguments},
        })
        driver = Remote(appium, options=options)
        driver.get(page)
        yield driver
        driver.quit()
"""

CONFTEST: Final = """
    import os, pytest

    @pytest.fixture(scope="session")
    def device_appium_options():
        return {{"appium:app": os.environ["APP"], "appium:appPackage": "org.example.notes"}}

    @pytest.fixture{scope}
    def it({driver}):
        return {driver}
"""

MARKER: Final = '\npytestmark = pytest.mark.device(platform="android", type="appium", share="run")\n'


def main() -> int:
    """Measure all suites and print their ratios; return the exit status."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        environ = asyncio.run(programs(directory))
        suites = written(directory)
        warm_up, *times = [
            {name: measured(suite, environ) for name, suite in suites.items()}
            for _ in range(1 + rounds)
        ]
        del warm_up

    print(f"{TESTS} tests, {rounds} rounds")
    failed = False
    for name in suites:
        wall, ratio = medians([(run[name].wall, run[BY_HAND].wall) for run in times])
        cpu, cpu_ratio = medians([(run[name].cpu, run[BY_HAND].cpu) for run in times])
        bar = BARS.get(name)
        failed |= bar is not None and ratio > bar
        limit = f" (bar {bar})" if bar else ""
        print(
            f"{name}: {wall:.2f} s, {ratio:.2f} of by hand{limit}; "
            f"{cpu:.2f} s of CPU, {cpu_ratio:.2f} of by hand"
        )
    return int(failed)


def medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the median of the first figures, and of their ratios to the second ones."""
    return (
        statistics.median(figure for figure, _ in pairs),
        statistics.median(figure / base for figure, base in pairs),
    )


async def programs(directory: Path) -> Mapping[str, str]:
    """Install what is missing; return the environment of the suites."""
    cache = cache_directory(os.environ, Path.home())
    guard = Guard(environ=os.environ, log=print)
    try:
        toolbox = Toolbox(guard, os.environ, cache)
        appium = await toolbox.get(APPIUM, print)
        await browsers.Pinned(cache).install(toolbox, SessionType.APPIUM, print)
        found = await browsers.find(
            os.environ, SessionType.APPIUM, cache_dir=cache, built_for=BUILT_FOR
        )
    finally:
        guard.close()

    home = directory / "appium"
    node = await inspect(appium.node, os.environ, APPIUM.node)
    install_driver(home, node.npm)
    (home / "node_modules/appium").symlink_to(appium.package("appium"))
    app = directory / "app"
    app.mkdir()
    (app / "index.html").write_text(PAGE)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    return {
        **kept,
        "APP": str(app),
        "APPIUM": str(appium.script),
        "APPIUM_HOME": str(home),
        "CHROMEDRIVER": str(found.chromedriver),
        "CHROMIUM": str(found.program),
        "NODE": str(appium.node),
    }


def install_driver(home: Path, npm: Sequence[str | Path]) -> None:
    """Install Appium's driver for Chromium, which the suite by hand uses, without another Appium."""
    home.mkdir()
    (home / "package.json").write_text("{}")
    command = [*npm, "install", "--ignore-scripts", "--legacy-peer-deps", DRIVER]
    subprocess.run(command, cwd=home, check=True)


def written(directory: Path) -> Mapping[str, Path]:
    """Write the suites; return their directories, in the order of a round."""
    shared = CONFTEST.format(scope='(scope="session")', driver="session_device_driver")
    own = CONFTEST.format(scope="", driver="device_driver")
    by_hand = directory / "by_hand"
    suite(by_hand, CONFTEST_BY_HAND, by='"css selector"', form="[aria-label={}]")
    one_driver = directory / "one_driver"
    suite(one_driver, shared, by='"accessibility id"', form="{}", marker=MARKER)
    per_test = directory / "per_test"
    suite(per_test, own, by='"accessibility id"', form="{}", marker=MARKER)
    return {
        BY_HAND: by_hand,
        "one driver": one_driver,
        "a driver per test": per_test,
        AGAIN: by_hand,
    }


def suite(
    directory: Path, conftest: str, *, by: str, form: str, marker: str = ""
) -> None:
    """Write a suite whose tests find elements in one way."""
    directory.mkdir()
    names = {name: repr(form.format(name)) for name in ("text", "add", "count")}
    test = textwrap.dedent(TEST).format(tests=TESTS, by=by, **names)
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "conftest.py").write_text(textwrap.dedent(conftest))
    (directory / "test_notes.py").write_text(
        test.replace("import pytest\n", f"import pytest\n{marker}", 1)
    )


class Measured(NamedTuple):
    """Seconds of a run: of its whole process, and of CPU."""

    wall: float
    cpu: float


def measured(suite: Path, environ: Mapping[str, str]) -> Measured:
    """Run a suite in a separate process; return its times."""
    plugin = (
        ["--device-local"]
        if "device" in (suite / "conftest.py").read_text()
        else ["-p", "no:device"]
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin]
    before, started = cpu_of_children(), time.perf_counter()
    run = subprocess.run(
        command,
        cwd=suite,
        env=environ,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    took = time.perf_counter() - started
    if run.returncode:
        raise SystemExit(f"{suite} failed:\n{run.stdout[-3000:]}{run.stderr[-1000:]}")
    return Measured(took, cpu_of_children() - before)


def cpu_of_children() -> float:
    """Return the CPU seconds of all processes that this one, or a child, has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
