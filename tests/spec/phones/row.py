"""The form of a row, and the examples that rows are made of."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from appium.webdriver import Remote
from selenium.common.exceptions import WebDriverException

from pytest_device.spec import Platform

ANDROID: Final = Platform.ANDROID
IOS: Final = Platform.IOS
BOTH: Final = (ANDROID, IOS)

APP_ID: Final = "org.example.table"
"""The app of all rows: it shows the page of a row."""


@dataclass(frozen=True)
class Source:
    """Where a rule was read: a package, its version (or a commit), and a file in it."""

    package: str
    version: str
    file: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}, {self.file}"


class Example(Protocol):
    """Something to do with a driver; returns what the driver answers."""

    def __call__(self, driver: Remote) -> object: ...


@dataclass(frozen=True)
class Find:
    """Find an element; return its text, or an attribute if one is named."""

    by: str
    value: str
    attribute: str = ""

    def __call__(self, driver: Remote) -> object:
        element = driver.find_element(self.by, self.value)
        return element.get_attribute(self.attribute) if self.attribute else element.text


@dataclass(frozen=True)
class FindAll:
    """Find elements; return their texts, or an attribute of each if one is named."""

    by: str
    value: str
    attribute: str = ""

    def __call__(self, driver: Remote) -> object:
        elements = driver.find_elements(self.by, self.value)
        if self.attribute:
            return [element.get_attribute(self.attribute) for element in elements]
        return [element.text for element in elements]


@dataclass(frozen=True)
class FindWithin:
    """Find elements below another one; return their texts."""

    outer: tuple[str, str]
    inner: tuple[str, str]

    def __call__(self, driver: Remote) -> object:
        outer = driver.find_element(*self.outer)
        return [element.text for element in outer.find_elements(*self.inner)]


@dataclass(frozen=True)
class State:
    """Find an element; return a part of it: name (the tag's), selected, displayed, enabled."""

    locator: tuple[str, str]
    part: str

    def __call__(self, driver: Remote) -> object:
        element = driver.find_element(*self.locator)
        return Command("GET", f"/element/{element.id}/{self.part}")(driver)


@dataclass(frozen=True)
class Click:
    """Click an element, then do something else."""

    locator: tuple[str, str]
    then: Example

    def __call__(self, driver: Remote) -> object:
        driver.find_element(*self.locator).click()
        return self.then(driver)


@dataclass(frozen=True)
class OfAlert:
    """Read the alert on the screen, and press a button; return its text, or what comes then."""

    press: str = ""
    """``accept``, ``dismiss``, or no button."""
    then: Example | None = None

    def __call__(self, driver: Remote) -> object:
        alert = driver.switch_to.alert
        text = alert.text
        if self.press:
            getattr(alert, self.press)()
        return self.then(driver) if self.then else text


@dataclass(frozen=True)
class Then:
    """Do something, and return the answer to something else."""

    first: Example
    then: Example

    def __call__(self, driver: Remote) -> object:
        self.first(driver)
        return self.then(driver)


@dataclass(frozen=True)
class Turn:
    """Turn an element as a picker wheel."""

    locator: tuple[str, str]
    order: str = "next"
    offset: float = 0.2

    def __call__(self, driver: Remote) -> object:
        element = driver.find_element(*self.locator)
        turned = {"elementId": element.id, "order": self.order, "offset": self.offset}
        return driver.execute_script("mobile: selectPickerWheelValue", turned)


@dataclass(frozen=True)
class Keys:
    """Send keys to an element."""

    locator: tuple[str, str]
    text: str

    def __call__(self, driver: Remote) -> object:
        return driver.find_element(*self.locator).send_keys(self.text)


@dataclass(frozen=True)
class Clear:
    """Clear an element; return its text."""

    locator: tuple[str, str]

    def __call__(self, driver: Remote) -> object:
        return driver.find_element(*self.locator).clear().text


@dataclass(frozen=True)
class Rendered:
    """Find an element, alone or as one of several, and render it again; return its text."""

    locator: tuple[str, str]
    button: tuple[str, str]
    of_several: bool = False

    def __call__(self, driver: Remote) -> object:
        elements = driver.find_elements(*self.locator) if self.of_several else []
        element = elements[0] if elements else driver.find_element(*self.locator)

        driver.find_element(*self.button).click()
        return element.text


@dataclass(frozen=True)
class Script:
    """Execute a script, such as ``mobile: deviceInfo``; return its result, or a key of it."""

    script: str
    arguments: Any = None
    key: str = ""

    def __call__(self, driver: Remote) -> object:
        given = [] if self.arguments is None else [self.arguments]
        result = driver.execute_script(self.script, *given)
        return result[self.key] if self.key else result


@dataclass(frozen=True)
class Command:
    """Send a WebDriver command, such as GET title; return the value of its answer."""

    method: str
    path: str
    """Below the session, with a slash at the beginning."""
    body: Any = None

    def __call__(self, driver: Remote) -> object:
        executor = driver.command_executor
        url = f"/session/{driver.session_id}{self.path}"
        name = f"{self.method} {self.path}"
        executor.add_command(name, self.method, url)  # type: ignore[no-untyped-call]
        return driver.execute(name, self.body or {})["value"]


@dataclass(frozen=True)
class Error:
    """An error as an answer: the client's exception, and a pattern that its message contains."""

    kind: type[WebDriverException]
    message: str = ""


@dataclass(frozen=True)
class Row:
    """A rule of a platform's driver, with an example that shows it.

    Attributes:
        name: what the test of the row is called, in kebab case; unique on the platform.
        platforms: those whose driver has the rule.
        rule: a sentence.
        source: where the rule was read, or NOT_READ.
        page: the HTML that the app shows for the example.
        example: what a test does.
        answer: what it gets on a phone: a value, or an Error.
        settings: settings of Appium during the example.
        difference: if the local driver answers differently, how: a sentence of
            docs/local-appium.md, section "Differences from a phone".
        local_answer: what it answers then.
    """

    name: str
    platforms: tuple[Platform, ...]
    rule: str
    source: Source
    page: str
    example: Example
    answer: object
    settings: tuple[tuple[str, object], ...] = ()
    difference: str = ""
    local_answer: object = None

    @property
    def expected(self) -> object:
        return self.local_answer if self.difference else self.answer


NOT_READ: Final = Source("not read", "", "")

UIAUTOMATOR2: Final = ("appium-uiautomator2-driver", "8.7.0")
XCUITEST: Final = ("appium-xcuitest-driver", "12.13.1")
ANDROID_DRIVER: Final = ("appium-android-driver", "14.2.2")
BASE_DRIVER: Final = ("@appium/base-driver", "10.8.1")
WEBDRIVERAGENT: Final = ("appium-webdriveragent", "16.12.7")


def server(file: str, commit: str) -> Source:
    """Return a source file of the UiAutomator2 server, at a commit of its repository."""
    folder = "app/src/main/java/io/appium/uiautomator2"
    return Source("appium-uiautomator2-server", commit, f"{folder}/{file}")
