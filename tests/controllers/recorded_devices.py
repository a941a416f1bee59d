"""Android and iOS devices behind an Appium server, as far as their notification lists go."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.controllers.appium_servers import DONE, appium, refuses
from tests.fakes.http_server import Answer, ScriptedServer, says

KEY = "element-6066-11e4-a52e-4f735466cecf"


@dataclass
class RecordedDevice:
    """A device whose list is open or closed; an element can only be found in an open list."""

    controller: ScriptedServer
    rows: list[str]
    """The titles of the notifications, newest first."""
    is_stuck: bool = False
    """Whether a notification can't be dismissed."""
    is_open: bool = False
    does: list[str] = field(default_factory=list[str])
    scripts: list[tuple[str, Mapping[str, Any]]] = field(
        default_factory=list[tuple[str, Mapping[str, Any]]]
    )
    capabilities: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        started = appium(self.capabilities)
        own: Mapping[str, Callable[[str], Answer]] = {
            "/execute/sync": self._script,
            "/elements": self._elements,
            "/click": self._clicked,
            "/value": self._typed,
            "/attribute/label": lambda call: says({"value": self._name(call)}),
            "/window/rect": lambda _call: says(
                {"value": {"x": 0, "y": 0, "width": 400, "height": 801}}
            ),
        }

        def answer(call: str) -> Answer:
            for end, one in own.items():
                if call.endswith(end):
                    return one(call)
            return started(call)

        self.controller.answer = answer

    def _script(self, _call: str) -> Answer:
        body = json.loads(self.controller.bodies[-1])
        given: dict[str, Any] = body["args"][0] if body["args"] else {}
        self.scripts.append((body["script"], given))
        return self.run(body["script"], given)

    def run(self, script: str, given: Mapping[str, Any]) -> Answer:
        raise NotImplementedError

    def found(self, selector: str) -> list[str]:
        raise NotImplementedError

    def _elements(self, _call: str) -> Answer:
        body = json.loads(self.controller.bodies[-1])
        names = self.found(body["value"]) if self.is_open else []
        return says({"value": [{KEY: f"e-{name}"} for name in names]})

    def _name(self, call: str) -> str:
        return call.partition("/element/e-")[2].partition("/")[0].replace("%20", " ")

    def _clicked(self, call: str) -> Answer:
        self.does.append(f"tap {self._name(call)}")
        if self._name(call) in self.rows:  # opens the app
            self.is_open = False
            self.rows.remove(self._name(call))
        return DONE

    def _typed(self, call: str) -> Answer:
        text = json.loads(self.controller.bodies[-1])["text"]
        self.does.append(f"type {text} in {self._name(call)}")
        return DONE

    def remove(self, name: str) -> None:
        self.does.append(f"dismiss {name}")
        if not self.is_stuck:
            self.rows.remove(name)


@dataclass
class RecordedAndroid(RecordedDevice):
    capabilities: ClassVar[Mapping[str, str]] = {"appPackage": "com.acme.app"}

    def run(self, script: str, given: Mapping[str, Any]) -> Answer:
        match script:
            case "mobile: getNotifications":
                other = _posted("Other app", packageName="com.other")
                summary = _posted(None, isGroup=True)
                gone = _posted("Old", isRemoved=True)
                rows = [other, *map(_posted, self.rows), summary, gone]
                return says({"value": {"statusBarNotifications": rows}})
            case "mobile: openNotifications":
                self.is_open = True
            case "mobile: statusBar" if given == {"command": "collapse"}:
                self.is_open = False
            case "mobile: swipeGesture":
                assert given["direction"] == "right"
                assert given["percent"] <= 1
                self.remove(given["elementId"].removeprefix("e-"))
            case "mobile: broadcast":
                pass
            case _:
                return refuses("unknown method", f"Unknown mobile command {script}")
        return DONE

    def found(self, selector: str) -> list[str]:
        start, _, part = selector.partition('packageName("com.android.systemui").')
        assert start == "new UiSelector()."
        names = {
            'resourceId("com.android.systemui:id/remote_input_text")': "field",
            'resourceId("com.android.systemui:id/remote_input_send")': "send",
            'textMatches("(?i)Reply \\\\(1\\\\)")': "REPLY (1)",
        }
        names |= {f"text({json.dumps(one)})": one for one in self.rows}
        return [names[part]] if part in names else []


@dataclass
class RecordedIphone(RecordedDevice):
    is_cleared: str = ""
    capabilities: ClassVar[Mapping[str, str]] = {"bundleId": "com.acme.app"}

    def run(self, script: str, given: Mapping[str, Any]) -> Answer:
        match script:
            case "mobile: dragFromToForDuration":
                assert 0.5 <= given["duration"] <= 60
                self.is_open = given["fromY"] < given["toY"]
            case "mobile: swipe":
                assert given["direction"] == "left"
                self.is_cleared = given["elementId"].removeprefix("e-")
            case "mobile: touchAndHold":
                assert given["duration"]
                self.does.append(f"hold {given['elementId'].removeprefix('e-')}")
            case "mobile: pushNotification":
                pass
            case _:
                return refuses("unknown method", f"Unknown mobile command {script}")
        return DONE

    def _clicked(self, call: str) -> Answer:
        if self._name(call) != "Clear":
            return super()._clicked(call)
        self.remove(self.is_cleared)
        return DONE

    def found(self, selector: str) -> list[str]:
        if selector.startswith("name == 'NotificationShortLookView'"):
            wanted = selector.partition(" AND label == ")[2]
            return [one for one in self.rows if wanted in ("", f"'{one}'")]
        if "label == 'Clear'" in selector:
            return ["Clear"] if self.is_cleared else []
        is_held = self.does[-1:] and self.does[-1].startswith("hold ")
        return ["Reply"] if "label == 'Reply'" in selector and is_held else []


def _posted(title: str | None, **changes: Any) -> dict[str, Any]:
    texts = {"title": title, "bigTitle": None, "text": "from Ada", "bigText": None}
    return {
        "isGroup": False,
        "packageName": "com.acme.app",
        "isClearable": True,
        "isOngoing": False,
        "id": 1,
        "tag": None,
        "notification": texts,
        "key": f"0|{title}",
        "isRemoved": False,
        **changes,
    }
