"""Records the commands of an Appium driver: its connection, through which each of them passes."""

import base64
import binascii
import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from appium.webdriver.appium_connection import AppiumConnection
from urllib3.exceptions import HTTPError

from pytest_device.redact import MASK, is_secret_name
from pytest_device.trace.recorder import (
    Command,
    DeviceRecorder,
    OpenAction,
    bounded,
    masked_typed,
    note_action,
)
from pytest_device.trace.tree import is_secret_field
from pytest_device.trace.values import Box, Failure, Group, Locator

_MAX_ELEMENTS: Final = 2_000
"""Elements whose locators are remembered: a suite may find new ones in a loop, for hours."""
_MAX_LINES: Final = 500
"""Lines of a log that are recorded: the last ones, which are of the test."""
_SESSION: Final = "sessionId"
_NO_RESPONSE: Final = -1
_ACTION: Final = "pytest_device_action"
"""Key in a response to a command that failed: its action. The client raises the error later, and elsewhere."""

_NEW_SESSION: Final = "newSession"
_FIND: Final = {
    "findElement": "Find {element}",
    "findElements": "Find all {element}",
    "findChildElement": "Find {element}",
    "findChildElements": "Find all {element}",
}
_TYPING: Final = "sendKeysToElement"
_PICTURES: Final = frozenset({"screenshot", "elementScreenshot"})
_SOURCE: Final = "getPageSource"
_LOG: Final = "getLog"
_ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"
"""What a response names an element by (WebDriver, "12.1 Interface")."""

_TITLES: Final[Mapping[str, tuple[str, Group, bool]]] = {
    _NEW_SESSION: ("Start driver", "configuration", False),
    "quit": ("Quit driver", "configuration", False),
    "clickElement": ("Tap {element}", "", True),
    "sendKeysToElement": ("Type {text} into {element}", "", True),
    "clear": ("Clear {element}", "", True),
    "clearElement": ("Clear {element}", "", True),
    "getElementText": ("Get text of {element}", "getter", False),
    "getElementTagName": ("Get tag of {element}", "getter", False),
    "getElementAttribute": ("Get attribute {name} of {element}", "getter", False),
    "getElementRect": ("Get bounds of {element}", "getter", False),
    "isElementEnabled": ("Is {element} enabled", "getter", False),
    "isElementDisplayed": ("Is {element} displayed", "getter", False),
    "isElementSelected": ("Is {element} selected", "getter", False),
    "screenshot": ("Take screenshot", "getter", False),
    "elementScreenshot": ("Take screenshot of {element}", "getter", False),
    _SOURCE: ("Get page source", "getter", False),
    _LOG: ("Read log {type}", "getter", False),
    "getAvailableLogTypes": ("List logs", "getter", False),
    "get": ("Open {url}", "", True),
    "w3cExecuteScript": ("Execute {script}", "", True),
    "actions": ("Perform gestures", "", True),
    "clearActionState": ("Release gestures", "configuration", True),
    "w3cAcceptAlert": ("Accept alert", "", True),
    "w3cDismissAlert": ("Dismiss alert", "", True),
    "w3cGetAlertText": ("Get text of alert", "getter", False),
    "goBack": ("Go back", "", True),
    "startRecordingScreen": ("Start video", "configuration", False),
    "stopRecordingScreen": ("Stop video", "configuration", False),
}
"""Title, group and whether it may change the screen, by Selenium's name of the command; others are derived."""
_READS: Final = re.compile(r"(?i)^(get|is|find|query|status|screenshot|element)")
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_CAPABILITIES: Final = frozenset(
    {
        "platformName", "automationName", "platformVersion", "deviceName", "browserName",
        "orientation", "language", "locale", "noReset", "fullReset", "newCommandTimeout",
        "appPackage", "appActivity", "bundleId", "deviceScreenSize", "pixelRatio",
    }
)  # fmt: skip
"""Capabilities that are recorded; all others may give access to a device, or name files of this machine."""
_NOT_SHOWN: Final = frozenset({_SESSION, "id", "using", "w3c"})
"""Parameters that the title says, or that give access."""
_TEXT_ARGUMENTS: Final = frozenset({"text", "value", "keys", "content", "password"})


def note_response(error: BaseException, response: Mapping[str, Any]) -> None:
    """Note on an error of the client the action whose response it made of it."""
    action = response.get(_ACTION)
    if action:
        note_action(error, action)


class RecordingConnection(AppiumConnection):
    """A connection that records each command and its response."""

    recorder: DeviceRecorder

    def execute(self, command: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a command and record it."""
        if not self.recorder.is_active:
            return self.send_unrecorded(command, params)

        return self._commands_of_test().execute(command, params)

    def send_unrecorded(self, command: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a command without recording it."""
        return cast("dict[str, Any]", super().execute(command, params))  # type: ignore[no-untyped-call]

    def _commands_of_test(self) -> "_Commands":
        commands: _Commands | None = getattr(self, "_recorded", None)
        if commands is None:
            commands = _Commands(self, self.recorder)
            self._recorded = commands

        return commands


def recording_connection(
    config: Any, recorder: DeviceRecorder | None
) -> AppiumConnection:
    """Return the connection of a driver; with a recorder, it records all commands."""
    if recorder is None:
        return AppiumConnection(client_config=config)

    connection = RecordingConnection(client_config=config)
    connection.recorder = recorder
    return connection


class _Commands:
    """The commands of one connection: describes them, and remembers how the suite found each element."""

    def __init__(
        self, connection: RecordingConnection, recorder: DeviceRecorder
    ) -> None:
        self._connection = connection
        self._recorder = recorder
        self._locators: OrderedDict[str, Locator] = OrderedDict()

    def execute(self, command: str, params: dict[str, Any]) -> dict[str, Any]:
        # The client removes what is in the path of the URL while it sends.
        sent = dict(params)
        described = self._described(command, sent)
        # Before the tap: afterwards, the element may be gone.
        bounds = self._bounds(command, sent)
        opened = self._recorder.begin(described)
        response: dict[str, Any] = {}
        raised: BaseException | None = None

        try:
            response = self._connection.send_unrecorded(command, params)
        except BaseException as error:
            opened.error = Failure(type(error).__name__, str(error))
            raised = error
            raise
        else:
            self._note_response(command, sent, response, opened)
            return response
        finally:
            action = self._recorder.end(opened)
            if raised:
                note_action(raised, action)
            elif opened.error:
                response[_ACTION] = action

            if response and not opened.error:
                self._record_contents(command, sent, response, action.key)
                if described.is_acting and self._recorder.takes_pictures:
                    self._take_picture(sent, action.key)
                if bounds:
                    self._recorder.mark(action, bounds)

    def _observe(
        self, command: str, sent: Mapping[str, Any], **params: Any
    ) -> Mapping[str, Any]:
        """Send a command of the recorder's own, to the session of a command of the suite.

        A connection that breaks meanwhile is no error of the suite's command, which may have succeeded: the response
        has a status then, as that to a command that failed.
        """
        try:
            return self._connection.send_unrecorded(
                command, {_SESSION: sent.get(_SESSION), **params}
            )
        except (HTTPError, OSError) as error:
            return {"status": _NO_RESPONSE, "value": str(error)}

    def _bounds(self, command: str, sent: Mapping[str, Any]) -> Box | None:
        """Return the bounds of an element that is about to be tapped, if the trace has pictures of it."""
        # Every command costs a test time.
        if command != "clickElement" or not self._recorder.takes_pictures:
            return None

        response = self._observe("getElementRect", sent, id=sent.get("id"))
        rect = _mapping(response.get("value"))
        try:
            return Box(
                float(rect["x"]),
                float(rect["y"]),
                float(rect["width"]),
                float(rect["height"]),
            )
        # An error, or an element that has no rectangle of numbers.
        except (KeyError, TypeError, ValueError):
            return None

    def _described(self, command: str, sent: Mapping[str, Any]) -> Command:
        """Return a command as it is recorded, before masking."""
        locator = self._locator_of(command, sent)
        typed = self._typed(command, sent, locator)

        if command == _NEW_SESSION:
            params: dict[str, Any] = {"capabilities": _capabilities(sent)}
        else:
            params = _shown_params(command, sent, locator)

        # Gestures send each character on its own.
        typed_characters = set("".join(typed))
        params = cast(
            "dict[str, Any]", masked_typed(params, {*typed, *typed_characters})
        )

        title, group, is_acting = _title(command)
        # Nobody says into which field the others type, so that what they type is rarely a secret.
        passwords = typed if command == _TYPING else ()

        return Command(
            "Device",
            command,
            title,
            params,
            group,
            is_acting,
            locator,
            typed,
            passwords,
        )

    def _locator_of(self, command: str, sent: Mapping[str, Any]) -> Locator | None:
        """Return what a command looks for, or how the suite found the element that it acts on."""
        if command in _FIND:
            return Locator(str(sent.get("using", "")), str(sent.get("value", "")))

        return self._locators.get(str(sent.get("id", "")))

    def _typed(
        self, command: str, sent: Mapping[str, Any], locator: Locator | None
    ) -> Sequence[str]:
        """Return the texts that a command types and nobody may see: those of a password field, or all."""
        masks_all = self._recorder.recorder.typed_text == "all"
        if command == _TYPING:
            if not masks_all and not self._is_secret_field(sent, locator):
                return ()

            return [str(sent.get("text") or "")]

        if command == "w3cExecuteScript":
            return self._typed_by_script(sent, masks_all=masks_all)
        if command == "actions":
            return ["".join(_keystrokes(sent.get("actions")))]
        if command == "setClipboard":
            return _texts(sent.get("content"))

        return ()

    def _typed_by_script(
        self, sent: Mapping[str, Any], *, masks_all: bool
    ) -> Sequence[str]:
        """Return what ``mobile: type`` and its like type: nobody says into which field."""
        script = str(sent.get("script", "")).lower()
        if not script.startswith("mobile:"):
            return ()

        is_typing = masks_all or any(
            word in script for word in ("type", "keys", "clipboard")
        )

        texts: list[str] = []
        for argument in _items(sent.get("args")):
            for name, value in _mapping(argument).items():
                if is_secret_name(name) or (is_typing and name in _TEXT_ARGUMENTS):
                    texts += _texts(value)

        return texts

    def _is_secret_field(
        self, sent: Mapping[str, Any], locator: Locator | None
    ) -> bool:
        """Return whether an element is a field for a password; True if the device does not say."""
        # Of an Android ID, without its package.
        if locator and is_secret_name(locator.value.rpartition("/")[2]):
            return True

        platform = self._recorder.device.platform.lower()
        name = "type" if platform == "ios" else "password"
        element_id = sent.get("id")
        response = self._observe("getElementAttribute", sent, id=element_id, name=name)
        attributes: dict[str, str] = {}
        if not response.get("status"):
            attributes[name] = str(response.get("value")).lower()

        role = _known_role(locator, attributes) or self._role(sent)
        if not attributes and not role:
            return True

        return is_secret_field(attributes, role)

    def _role(self, sent: Mapping[str, Any]) -> str:
        response = self._observe("getElementTagName", sent, id=sent.get("id"))
        return "" if response.get("status") else str(response.get("value") or "")

    def _note_response(
        self,
        command: str,
        sent: Mapping[str, Any],
        response: Mapping[str, Any],
        opened: OpenAction,
    ) -> None:
        """Take over the result or the error of a command, and learn from it."""
        opened.error = _error_of(response)
        if opened.error:
            return

        value = response.get("value")
        locator = self._locator_of(command, sent)
        if command in _FIND and locator:
            for element_id in _element_ids(value):
                self._remember(element_id, locator)

        if command == _NEW_SESSION:
            # Whoever has the ID of a session and the URL of its server has the device.
            session_id = response.get(_SESSION) or _mapping(value).get(_SESSION)
            self._recorder.recorder.masker.learn(str(session_id or ""))
            capabilities = _mapping(_mapping(value).get("capabilities"))
            value = {"capabilities": _without_unknown(capabilities)}

        opened.result = _shown_result(command, value)

    def _remember(self, element_id: str, locator: Locator) -> None:
        self._locators[element_id] = locator
        if len(self._locators) > _MAX_ELEMENTS:
            self._locators.popitem(last=False)

    def _record_contents(
        self,
        command: str,
        sent: Mapping[str, Any],
        response: Mapping[str, Any],
        action: str,
    ) -> None:
        """Record what a command has read of the device: a log, a picture or a tree."""
        value = response.get("value")
        if command == _LOG and isinstance(value, list):
            lines = map(_log_line, cast("list[object]", value)[-_MAX_LINES:])
            self._recorder.log(str(sent.get("type")), lines)
        elif command == "screenshot" and isinstance(value, str):
            self._recorder.picture(_decoded(value), action)
        elif command == _SOURCE and isinstance(value, str):
            self._recorder.page_source(value, action)

    def _take_picture(self, sent: Mapping[str, Any], action: str) -> None:
        """Record what the device shows after an acting command."""
        # The picture first: its size says how large the elements of the tree are.
        for command in ("screenshot", _SOURCE):
            response = self._observe(command, sent)
            if not response.get("status"):
                self._record_contents(command, sent, response, action)


def _shown_params(
    command: str, sent: Mapping[str, Any], locator: Locator | None
) -> dict[str, Any]:
    """Return the parameters of a command that are recorded, with the element that it acts on."""
    hidden = set(_NOT_SHOWN)
    # The locator has it, or it is a typed text, which the client repeats character by character.
    if command in _FIND or "text" in sent:
        hidden.add("value")

    params = {name: value for name, value in sent.items() if name not in hidden}
    return {"element": str(locator), **params} if locator else params


def _known_role(locator: Locator | None, attributes: Mapping[str, str]) -> str:
    """Return what an element's tag name would be, if it is known already: every command costs a test time.

    XCUITest answers with the type. UiAutomator2 answers with the content description, by which the element was found.
    """
    kind = attributes.get("type", "")
    if kind.startswith("xcuielementtype"):
        return kind

    if "password" in attributes and locator and locator.using == "accessibility id":
        return locator.value

    return ""


def _title(command: str) -> tuple[str, Group, bool]:
    """Return the title of a command, its group, and whether it may change what the device shows."""
    if command in _TITLES:
        return _TITLES[command]
    if command in _FIND:
        return _FIND[command], "", False

    words = _WORDS.sub(" ", command).lower().capitalize()
    is_read = bool(_READS.match(command))
    return words, "getter" if is_read else "", not is_read


def _texts(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [str(item) for item in cast("list[object]", value)]
        case _:
            return []


def _keystrokes(actions: object) -> list[str]:
    """Return the keys of a gesture that types: nobody says into which field."""
    keys: list[str] = []
    for source in _items(actions):
        for item in _items(_mapping(source).get("actions")):
            step = _mapping(item)
            key = step.get("value")
            if step.get("type") == "keyDown" and isinstance(key, str):
                keys.append(key)

    return keys


def _error_of(response: Mapping[str, Any]) -> Failure | None:
    """Return the error of a response, None if it has none: the client leaves it as JSON in a string."""
    if not response.get("status"):
        return None

    value = response.get("value")
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        parsed = None

    details = _mapping(_mapping(parsed).get("value")) or _mapping(parsed)
    name = str(details.get("error") or f"status {response['status']}")
    return Failure(name, str(details.get("message") or value or ""))


def _element_ids(value: object) -> list[str]:
    """Return the IDs of the elements of a response, which is one of them or a list."""
    elements = cast("list[object]", value) if isinstance(value, list) else [value]
    element_ids = [_mapping(element).get(_ELEMENT) for element in elements]
    return [element_id for element_id in element_ids if isinstance(element_id, str)]


def _shown_result(command: str, value: object) -> object:
    """Return the result of a command as it is recorded: pictures and trees are values of their own."""
    # Four characters of Base64 stand for three bytes.
    if command in _PICTURES and isinstance(value, str):
        return f"a picture of {len(value) * 3 // 4} bytes"
    if command == _SOURCE and isinstance(value, str):
        return f"the tree, {len(value)} characters"
    if command == _LOG and isinstance(value, list):
        return f"{len(cast('list[object]', value))} lines"

    return bounded(value)


def _capabilities(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities of a start, with those masked that may not be recorded."""
    requested = _mapping(sent.get("capabilities"))
    merged = dict(_mapping(requested.get("alwaysMatch")))
    for choice in _items(requested.get("firstMatch")):
        merged |= _mapping(choice)

    return _without_unknown(merged)


def _without_unknown(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if name.removeprefix("appium:") in _CAPABILITIES else MASK
        for name, value in capabilities.items()
    }


def _log_line(entry: object) -> tuple[str, str]:
    """Return the level and the text of a line; the time in it is that of the device's clock."""
    if not isinstance(entry, Mapping):
        return "", str(entry)
    line = cast("Mapping[str, Any]", entry)
    return str(line.get("level") or ""), str(line.get("message") or "")


def _decoded(picture: str) -> bytes:
    try:
        return base64.b64decode(picture)
    except (binascii.Error, ValueError):
        return b""


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
