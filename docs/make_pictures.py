"""Make the pictures of the documentation: ``python -m docs.make_pictures``, in the root of a checkout.

They show real runs at the local service, in its pinned browser. All state is in a temporary directory, so that no picture
shows anything of this machine. Run it by hand when a page or an output has changed, and look at each picture: no test
compares pixels.
"""

import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Final
from urllib.parse import urlencode

from appium.options.common import AppiumOptions
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device import AppiumConfig, DeviceClient, Session, SessionRequest, lease
from pytest_device.auth.provider import Client, IdentityProvider
from tests.service.pages import browser

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURES: Final = ROOT / "docs/pictures"
PYTEST: Final = (sys.executable, "-m", "pytest", "--no-header", "--color=yes")
COMMAND: Final = Path(sys.executable).with_name("pytest-device")

MAX_BYTES: Final = 600_000
"""Of all pictures: everyone who clones the repository downloads them."""
COLORS: Final = 128
"""In a PNG: enough for text on flat surfaces, at a third of the size."""
SCALE: Final = 2
"""Pixels per CSS pixel: text stays sharp on dense screens."""
MAX_WAIT_SECONDS: Final = 60.0
LOADED: Final = "document.querySelector(arguments[0])?.naturalWidth > 0"

COLUMNS: Final = 110
LINE_HEIGHT: Final = 19
CHARACTER_WIDTH: Final = 7.8
PADDING: Final = 16
ANSI: Final = re.compile(r"\x1b\[([\d;]*)m")
STYLES: Final = {
    "1": "font-weight:bold",
    **dict.fromkeys(("31", "91"), "fill:#ff8272"),
    **dict.fromkeys(("32", "92"), "fill:#8fd97b"),
    **dict.fromkeys(("33", "93"), "fill:#e8c468"),
    **dict.fromkeys(("34", "94"), "fill:#82b1ff"),
    **dict.fromkeys(("35", "95"), "fill:#d7a1f9"),
    **dict.fromkeys(("36", "96"), "fill:#7fd6d2"),
    "90": "fill:#8b949e",
}
"""Of the codes that pytest writes; the other codes end a style."""


@dataclass(frozen=True)
class Studio:
    """A browser, and a suite in a temporary directory."""

    chrome: Chrome
    suite: Path
    environ: Mapping[str, str]

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        """Return the output of a command in the suite's directory, whatever its exit status."""
        done = subprocess.run(
            command,
            cwd=cwd or self.suite,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    @contextmanager
    def running(self, *command: str | Path) -> Generator[str]:
        """Run a command during the block; yield the first line that it prints."""
        with subprocess.Popen(
            command,
            cwd=self.suite,
            env=self.environ,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout
                yield process.stdout.readline()
            finally:
                process.terminate()

    def open(self, url: str, width: int, height: int, *texts: str) -> None:
        """Open a page in a window of a size, and wait until it shows all texts."""
        self.chrome.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {
                "width": width,
                "height": height,
                "deviceScaleFactor": SCALE,
                "mobile": False,
            },
        )
        self.chrome.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        # Another URL than the last one, else a fragment would be only a move within the page.
        self.chrome.get("about:blank")
        self.chrome.get(url)
        self.wait_for(*texts)

    def wait_for(self, *texts: str) -> None:
        """Wait until the page shows all texts."""
        for text in texts:
            self.wait_until("document.body.innerText.includes(arguments[0])", text)

    def wait_until(self, condition: str, argument: str) -> None:
        """Wait until a JavaScript expression is true."""
        WebDriverWait(self.chrome, MAX_WAIT_SECONDS).until(
            lambda chrome: chrome.execute_script(f"return {condition}", argument),
            f"{condition}: {argument}",
        )

    def click(self, xpath: str) -> None:
        """Click on an element as soon as the page has it.

        By script: the mouse would stay on the element, and pages show what it hovers over.
        """
        elements = WebDriverWait(self.chrome, MAX_WAIT_SECONDS).until(
            lambda chrome: chrome.find_elements(By.XPATH, xpath), xpath
        )
        self.chrome.execute_script("arguments[0].click()", elements[0])

    def save(self, name: str) -> None:
        """Save what the window shows."""
        shot = self.chrome.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        picture = Image.open(BytesIO(b64decode(shot["data"]))).convert("RGB")
        picture = picture.quantize(COLORS, dither=Image.Dither.NONE)
        picture.save(PICTURES / f"{name}.png", optimize=True)


def main() -> None:
    """Make all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as directory, browser() as chrome:
        suite = Path(directory, "my-suite")
        studio = Studio(chrome, suite, environment(directory))
        write_suite(studio)

        run(studio)
        plan(studio)
        report(studio)
        trace(studio)
        session_page(studio)
        sign_in_page(studio)

    total = sum(picture.stat().st_size for picture in PICTURES.iterdir())
    print(f"{total} bytes in {PICTURES}")
    if total > MAX_BYTES:
        sys.exit(f"more than {MAX_BYTES} bytes")


def environment(directory: str) -> dict[str, str]:
    """Return this process's environment without settings of suites, with all state below a directory."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DEVICE_", "PYTEST_", "CI", "GITHUB_"))
    }

    return kept | {
        "COLUMNS": str(COLUMNS),
        # More than the default, for the trace's film strip.
        "DEVICE_TRACE": "on",
        "DEVICE_STATE_DIR": f"{directory}/state",
        # Else the output would mention other plugins of the environment.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p xdist -p pytest_device.plugin",
    }


def write_suite(studio: Studio) -> None:
    """Write the suite of `pytest-device init`, with an app whose greeting is wrong on iOS only."""
    studio.run(COMMAND, "init", studio.suite, cwd=studio.suite.parent)

    page = studio.suite / "app/index.html"
    greeting = "${/iPhone/.test(navigator.userAgent) ? 'Hello' : 'Welcome'}, "
    page.write_text(page.read_text().replace("Welcome, ", greeting))


def run(studio: Studio) -> None:
    """Save the output of a run with a failed test; the other pictures show the same run."""
    write_terminal("run", "pytest", studio.run(*PYTEST))


def plan(studio: Studio) -> None:
    """Save the plan for the examples."""
    command = ("-n", "4", "--device-plan")
    options = ("--device-local", "-p", "pytest_bdd.plugin", "-p", "no:cacheprovider")
    output = studio.run(*PYTEST, *command, *options, cwd=ROOT / "examples")
    write_terminal("plan", f"pytest {' '.join(command)}", output)


def report(studio: Studio) -> None:
    """Save the page of the run, at the failed test."""
    studio.run(COMMAND, "report", "--no-browser")

    page = studio.suite / "device-report/page/index.html"
    studio.open(f"{page.as_uri()}#?q=s:failed", 1000, 720, "test_greets_the_user")
    studio.click("//a[contains(., 'test_greets_the_user')]")
    studio.wait_for("AssertionError")
    studio.save("report")


def trace(studio: Studio) -> None:
    """Save the trace of the failed test in the viewer."""
    (archive,) = studio.suite.glob("device-artifacts/*/trace.zip")
    with studio.running(COMMAND, "trace", "open", "--no-browser", archive) as line:
        (url,) = re.findall(r"http://\S+", line)
        studio.open(url, 1100, 680, "Errors")
        studio.click(
            "//*[@role='treeitem'][.//*[text()='Test']]//*[contains(@class, 'chevron-right')]"
        )
        studio.click("//*[@role='tab'][starts-with(., 'Errors')]")
        studio.wait_for("Find")
        studio.save("trace")


def session_page(studio: Studio) -> None:
    """Save the page of a session whose device a test uses."""
    with studio.running(COMMAND, "serve", "--port", "0", "--json") as line:
        service = json.loads(line)
        token = Path(service["token_path"]).read_text().strip()
        request = SessionRequest.from_arguments(
            app_id=service["app_id"],
            platform="android",
            type="appium",
            name="my-suite · test_greets_the_user",
            max_duration_minutes=10,
        )
        with (
            DeviceClient(service["url"], token) as client,
            lease(client, request) as session,
            using_app(session, studio.suite / "app"),
        ):
            studio.open(session.page, 1100, 960, "Timeline")
            studio.wait_until(LOADED, "#screen img")
            studio.save("session-page")


@contextmanager
def using_app(session: Session, app: Path) -> Generator[None]:
    """Fill in the app's form, and keep the driver during the block."""
    config = session.remote_config
    assert isinstance(config, AppiumConfig)
    options = AppiumOptions()
    options.load_capabilities({**config.capabilities, "appium:app": str(app)})
    driver = WebDriver(config.appium_url, options=options)
    try:
        name = 'new UiSelector().resourceId("name")'
        driver.find_element(AppiumBy.ANDROID_UIAUTOMATOR, name).send_keys("Ada")
        button = 'new UiSelector().resourceId("sign-in")'
        driver.find_element(AppiumBy.ANDROID_UIAUTOMATOR, button).click()
        yield
    finally:
        driver.quit()


def sign_in_page(studio: Studio) -> None:
    """Save the page of the identity provider, in a window as wide as a phone."""
    redirect = "https://app.example/signed-in"
    with IdentityProvider(clients=[Client("app", [redirect])]) as provider:
        query = {
            "client_id": "app",
            "redirect_uri": redirect,
            "response_type": "code",
            "scope": "openid profile",
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "code_challenge_method": "S256",
        }
        url = f"{provider.issuer}/authorize?{urlencode(query)}"
        studio.open(url, 390, 500, "Deny")
        studio.save("sign-in")


def write_terminal(name: str, command: str, output: str) -> None:
    """Write a command and its output as an SVG: text that scales, and whose changes Git shows."""
    lines = [f"\x1b[90m$\x1b[0m \x1b[1m{command}\x1b[0m", *folded(output)]
    height = len(lines) * LINE_HEIGHT + 2 * PADDING
    width = round(COLUMNS * CHARACTER_WIDTH + 2 * PADDING)

    rows = [
        f'<text x="{PADDING}" y="{PADDING + (number + 0.75) * LINE_HEIGHT:g}">{spans(line)}</text>'
        for number, line in enumerate(lines)
        if line
    ]
    text = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
            "<style>text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;white-space:pre}</style>",
            '<rect width="100%" height="100%" rx="8" fill="#161b22"/>',
            *rows,
            "</svg>",
        ]
    )
    (PICTURES / f"{name}.svg").write_text(f"{text}\n")


def folded(output: str) -> list[str]:
    """Return the lines of an output, those of plain text folded at the terminal's width."""
    lines: list[str] = []
    for line in output.rstrip().splitlines():
        if len(line) > COLUMNS and not ANSI.search(line):
            lines += wrap(line, COLUMNS, break_on_hyphens=False)
        else:
            lines.append(line)

    return lines


def spans(line: str) -> str:
    """Return a line with its ANSI styles as those of SVG.

    Each part has its own position and length, so that columns meet with any monospaced font.
    """
    parts = ANSI.split(line)
    active: list[str] = []
    column = 0
    markup = ""
    for text, codes in zip(parts[::2], ["", *parts[1::2]], strict=True):
        for code in codes.split(";"):
            active = [*active, STYLES[code]] if code in STYLES else []
        if text:
            x = f"{PADDING + column * CHARACTER_WIDTH:g}"
            length = f"{len(text) * CHARACTER_WIDTH:g}"
            style = f' style="{";".join(active)}"' if active else ""
            markup += (
                f'<tspan x="{x}" textLength="{length}"{style}>{escape(text)}</tspan>'
            )
        column += len(text)
    return markup


if __name__ == "__main__":
    main()
