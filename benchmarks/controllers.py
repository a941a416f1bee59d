"""Cost of the controller fixtures compared with handwritten ones.

Whole pytest processes at one local service with real controllers, alternating between handwritten fixtures (httpx and
the controller's own client, without this plugin) and the plugin's. Both run the same tests on one session and reset the
app after each test; in `shared driver` both keep one driver for all tests. Each round yields one ratio of wall times;
the output has the median, and the ratio of two handwritten runs for comparison. Exits with 1 if a bar is missed.
Arguments name the parts to measure.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from pytest_device.local import LocalService
from pytest_device.settings import LOCAL_APP_ID

ROUNDS: Final = 5
RUN_SECONDS: Final = 300

PAGE: Final = b"""<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>Counter</title><h1 aria-label="count" role="heading">0</h1><button aria-label="add"
onclick="document.querySelector('h1').textContent = ++window.count" >Add</button><script>window.count = 0</script>"""

BY_HAND: Final = """
    import os, time
    import httpx, pytest

    @pytest.fixture(scope="session")
    def session():
        headers = {"Authorization": "Bearer " + os.environ["DEVICE_TOKEN"]}
        with httpx.Client(base_url=os.environ["DEVICE_URL"], headers=headers, timeout=60) as http:
            body = {"appId": os.environ["DEVICE_APP_ID"], "platform": "android", "type": "TYPE"}
            body["maxDurationMinutes"] = 9
            path = "/v2/device-run-sessions"
            session = http.post(path, json=body).json()["data"]
            try:
                while session["remoteConfig"] is None:
                    assert session["status"] == "new", session
                    time.sleep(float(os.environ["DEVICE_POLL_INTERVAL_SECONDS"]))
                    session = http.get(path + "/" + session["id"]).json()["data"]
                yield session
            finally:
                http.post(path + "/" + session["id"] + "/stop")
"""


@dataclass(frozen=True)
class Kind:
    """A controller: its fixture by hand, the plugin's fixture of the same object, and what a test does with it."""

    by_hand: str
    with_plugin: str
    test: str
    type: str
    tests: int = 5
    bar: float = 1.05


COUNTS: Final = """
    for count in range(1, 6):
        it.find_element("accessibility id", "add").click()
        assert it.find_element("accessibility id", "count").text == str(count)
"""
RESET: Final = """
            @pytest.fixture
            def it(driver):
                app = {"appId": driver.capabilities["appPackage"]}
                yield driver
                driver.execute_script("mobile: clearApp", app)
                driver.execute_script("mobile: activateApp", app)
"""


KINDS: Final[Mapping[str, Kind]] = {
    "appium": Kind(
        by_hand="""
            @pytest.fixture
            def it(session):
                from appium.options.android import UiAutomator2Options
                from appium.webdriver import Remote
                config = session["remoteConfig"]
                options = UiAutomator2Options().load_capabilities({**config["capabilities"], "app": os.environ["PAGE"]})
                driver = Remote(config["appiumUrl"], options=options)
                yield driver
                driver.quit()
        """,
        with_plugin="""
            import os, pytest

            @pytest.fixture
            def device_appium_options():
                return {"appium:app": os.environ["PAGE"]}

            @pytest.fixture
            def it(device_driver):
                return device_driver
        """,
        test=COUNTS,
        type="appium",
    ),
    "shared driver": Kind(
        by_hand=f"""
            @pytest.fixture(scope="session")
            def driver(session):
                from appium.options.android import UiAutomator2Options
                from appium.webdriver import Remote
                config = session["remoteConfig"]
                app = {{**config["capabilities"], "app": os.environ["PAGE"]}}
                driver = Remote(config["appiumUrl"], options=UiAutomator2Options().load_capabilities(app))
                yield driver
                driver.quit()
            {RESET}
        """,
        with_plugin=f"""
            import os, pytest

            @pytest.fixture
            def device_appium_options():
                return {{"appium:app": os.environ["PAGE"]}}

            @pytest.fixture(scope="session")
            def driver(session_device_driver):
                return session_device_driver
            {RESET}
        """,
        test=COUNTS,
        type="appium",
        tests=30,
        bar=1.10,
    ),
    "agent-device": Kind(
        by_hand="""
            class Daemon:
                def __init__(self, config):
                    headers = {"Authorization": "Bearer " + config["agentDeviceRemoteSessionToken"]}
                    url = config["agentDeviceRemoteSessionUrl"]
                    self.http = httpx.Client(base_url=url, headers=headers, timeout=60)
                def call(self, command, *positionals, **flags):
                    params = {"session": "it", "command": command, "positionals": positionals, "meta": {},
                              "flags": {"platform": "android", **flags}}
                    call = {"jsonrpc": "2.0", "id": 1, "method": "agent_device.command", "params": params}
                    reply = self.http.post("/rpc", json=call).json()
                    assert "error" not in reply, reply
                    return reply["result"]["data"]
                def open(self, url):
                    self.call("open", url)
                def press(self, target):
                    self.call("press", target)
                def labels(self):
                    return [node.get("label") for node in self.call("snapshot")["nodes"]]

            @pytest.fixture
            def it(session):
                daemon = Daemon(session["remoteConfig"])
                yield daemon
                daemon.call("settings", "clear-app-state")
                daemon.call("close")
        """,
        with_plugin="""
            import os, pytest

            class Daemon:
                def __init__(self, device):
                    self.open, self.press, self.device = device.open, device.press, device
                def labels(self):
                    return [node.label for node in self.device.snapshot().nodes]

            @pytest.fixture
            def it(device_agent_device):
                return Daemon(device_agent_device)
        """,
        test="""
            it.open(os.environ["PAGE"])
            for count in range(1, 3):
                it.press('label="add"')
            assert "count" in it.labels()
        """,
        type="agent-device",
    ),
    "argent": Kind(
        by_hand="""
            class Tools:
                def __init__(self, config):
                    headers = {"Authorization": "Bearer " + config["toolsAuthToken"]}
                    self.http = httpx.Client(base_url=config["toolsUrl"], headers=headers, timeout=60)
                    self.id = self.call("list-devices")["devices"][0]["id"]
                def call(self, name, **arguments):
                    reply = self.http.post("/tools/" + name, json=arguments)
                    assert reply.status_code == 200, reply.text
                    return reply.json()["data"]

            @pytest.fixture
            def it(session):
                tools = Tools(session["remoteConfig"])
                yield tools
                for store in ("local", "session"):
                    tools.call("chromium-storage", udid=tools.id, store=store, action="clear")
                tools.call("chromium-cookies", udid=tools.id, action="clear")
                tools.call("open-url", udid=tools.id, url="about:blank")
        """,
        with_plugin="""
            import os, pytest

            class Tools:
                def __init__(self, argent):
                    self.call, self.id = argent.call, argent.device_id

            @pytest.fixture
            def it(device_argent):
                return Tools(device_argent)
        """,
        test="""
            it.call("open-url", udid=it.id, url=os.environ["PAGE"])
            for count in range(1, 6):
                it.call("gesture-tap", udid=it.id, x=0.1, y=0.1)
                assert "count" in it.call("describe", udid=it.id)["description"]
        """,
        type="argent",
    ),
}


def main() -> int:
    """Measure every kind and print its ratios; return the exit status."""
    failed = False
    kinds = {
        name: kind for name, kind in KINDS.items() if name in (sys.argv[1:] or KINDS)
    }
    types = sorted({kind.type for kind in kinds.values()})
    with (
        tempfile.TemporaryDirectory() as directory,
        page() as url,
        service(types) as environ,
    ):
        for name, kind in kinds.items():
            by_hand, with_plugin = suites(Path(directory, name), kind)
            times = [
                rounds(by_hand, with_plugin, {**environ, "PAGE": url})
                for _ in range(ROUNDS)
            ]
            ratio = statistics.median(plugin / hand for hand, plugin, _ in times)
            noise = statistics.median(again / hand for hand, _, again in times)
            hand, plugin = (
                statistics.median(one[index] for one in times) for index in (0, 1)
            )
            failed |= ratio > kind.bar
            print(
                f"{name}: {ratio:.3f} of the suite by hand (bar {kind.bar}; by hand against itself {noise:.3f}); "
                f"{hand:.2f} s by hand, {plugin:.2f} s with the plugin, {kind.tests} tests on one session"
            )
    return int(failed)


def rounds(
    by_hand: Path, with_plugin: Path, environ: Mapping[str, str]
) -> tuple[float, float, float]:
    """Return the seconds of a run by hand, one with the plugin and another one by hand."""
    return (
        seconds(by_hand, environ, "no:device"),
        seconds(with_plugin, environ),
        seconds(by_hand, environ, "no:device"),
    )


def seconds(suite: Path, environ: Mapping[str, str], *plugins: str) -> float:
    """Run a suite in a separate process; return its duration."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:anyio",
    ]
    command += [word for plugin in plugins for word in ("-p", plugin)]
    started = time.perf_counter()
    run = subprocess.run(
        command,
        cwd=suite,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    took = time.perf_counter() - started
    if run.returncode:
        raise SystemExit(f"{suite} failed:\n{run.stdout[-3000:]}{run.stderr[-1000:]}")
    return took


def suites(directory: Path, kind: Kind) -> tuple[Path, Path]:
    """Write the two suites, which differ in their ``conftest.py`` and the marker only."""
    marker = f'pytestmark = pytest.mark.device(platform="android", type="{kind.type}", max_duration_minutes=9)'
    texts = {
        "by_hand": (
            textwrap.dedent(BY_HAND).replace("TYPE", kind.type)
            + textwrap.dedent(kind.by_hand),
            "",
        ),
        "with_plugin": (textwrap.dedent(kind.with_plugin), marker),
    }
    for name, (conftest, mark) in texts.items():
        place = directory / name
        place.mkdir(parents=True)
        (place / "pytest.ini").write_text("[pytest]\n")
        (place / "conftest.py").write_text(conftest)
        test = f"@pytest.mark.parametrize('number', range({kind.tests}))\ndef test_counts(it, number):\n"
        body = textwrap.indent(textwrap.dedent(kind.test), "    ")
        (place / "test_counts.py").write_text(
            f"import os, pytest\n{mark}\n{test}{body}"
        )
    return directory / "by_hand", directory / "with_plugin"


@contextmanager
def service(types: list[str]) -> Iterator[Mapping[str, str]]:
    """Run the local service with real controllers; give the variables by which a suite finds it."""
    local = LocalService.start(app_id=LOCAL_APP_ID, progress=print, types=types)
    try:
        yield {
            "DEVICE_URL": local.url,
            "DEVICE_TOKEN": local.token,
            "DEVICE_APP_ID": LOCAL_APP_ID,
            "DEVICE_POLL_INTERVAL_SECONDS": "0.1",
        }
    finally:
        local.close()


@contextmanager
def page() -> Iterator[str]:
    """Serve the app under test: one page that counts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that its base gave it
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
