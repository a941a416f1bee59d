"""Commands for web pages in the native context: what the drivers answer instead."""

from typing import Any, Final

from selenium.common.exceptions import (
    InvalidArgumentException,
    UnknownMethodException,
    WebDriverException,
)

from tests.spec.phones.row import (
    ANDROID,
    ANDROID_DRIVER,
    APP_ID,
    BASE_DRIVER,
    BOTH,
    IOS,
    UIAUTOMATOR2,
    WEBDRIVERAGENT,
    XCUITEST,
    Command,
    Error,
    Row,
    Script,
    Source,
    Then,
    server,
)

PAGE: Final = "<button>Go</button>"
COOKIE: Final = {"cookie": {"name": "a", "value": "b"}}
RECT: Final = {"x": 0, "y": 0, "width": 100, "height": 100}
Request = tuple[str, str, Any]

SERVER: Final = server("server/AppiumServlet.java", "00f2c683")
"""The server of UiAutomator2 answers a command that it doesn't know with an empty 404."""
NO_PROXY: Final = Source(*UIAUTOMATOR2, "build/lib/driver.js")
WINDOW: Final = Source(*XCUITEST, "build/lib/commands/window.js")
WEB: Final = Source(*XCUITEST, "build/lib/commands/web.js")
UNHANDLED: Final = Source(
    *WEBDRIVERAGENT, "WebDriverAgentLib/Commands/FBUnknownCommands.m"
)
NO_METHOD: Final = Source(*BASE_DRIVER, "build/lib/basedriver/driver.js")

NOT_FOUND: Final = Error(WebDriverException, "Request failed with status code 404")
NOT_IMPLEMENTED: Final = Error(UnknownMethodException, "is not implemented")
NOT_YET: Final = Error(UnknownMethodException, "has not yet been implemented")
NO_ENDPOINT: Final = Error(UnknownMethodException, "Unhandled endpoint")

TIMEOUTS: Final = Source(*BASE_DRIVER, "build/lib/basedriver/commands/timeout.js")

READ: Final[dict[str, Request]] = {
    "cookies": ("GET", "/cookie", None),
    "add-cookie": ("POST", "/cookie", COOKIE),
    "delete-cookies": ("DELETE", "/cookie", None),
    "delete-cookie": ("DELETE", "/cookie/a", None),
    "close-window": ("DELETE", "/window", None),
}
"""XCUITest refuses these itself; UiAutomator2 sends them to its server."""

NO_COMMAND: Final[dict[str, Request]] = {
    "new-window": ("POST", "/window/new", {"type": "tab"}),
    "cookie": ("GET", "/cookie/a", None),
}
"""XCUITest has no method for these; UiAutomator2 sends them to its server."""

ON_DEVICE: Final[dict[str, Request]] = {
    "title": ("GET", "/title", None),
    "refresh": ("POST", "/refresh", None),
    "forward": ("POST", "/forward", None),
    "print": ("POST", "/print", {}),
    "frame": ("POST", "/frame", {"id": 0}),
    "parent-frame": ("POST", "/frame/parent", {}),
    "css-property": ("GET", "/element/1/css/color", None),
    "property": ("GET", "/element/1/property/value", None),
    "computed-role": ("GET", "/element/1/computedrole", None),
    "computed-label": ("GET", "/element/1/computedlabel", None),
    "shadow-root": ("GET", "/element/1/shadow", None),
}
"""Both drivers send these to their server on the device."""

SIZES: Final[dict[str, Request]] = {
    "set-window-rect": ("POST", "/window/rect", RECT),
    "maximize-window": ("POST", "/window/maximize", {}),
    "minimize-window": ("POST", "/window/minimize", {}),
    "fullscreen-window": ("POST", "/window/fullscreen", {}),
}

HANDLES: Final[dict[str, tuple[Request, object]]] = {
    "window-handle": (("GET", "/window", None), "1"),
    "window-handles": (("GET", "/window/handles", None), ["1"]),
    "switch-to-window": (("POST", "/window", {"handle": "other"}), None),
}


def _on_android(name: str, request: Request) -> Row:
    return Row(
        name=f"no-{name}",
        platforms=(ANDROID,),
        rule="The server of UiAutomator2 does not know the command.",
        source=SERVER,
        page=PAGE,
        example=Command(*request),
        answer=NOT_FOUND,
    )


def _on_ios(
    name: str, request: Request, rule: str, source: Source, answer: object
) -> Row:
    return Row(
        name=f"no-{name}",
        platforms=(IOS,),
        rule=rule,
        source=source,
        page=PAGE,
        example=Command(*request),
        answer=answer,
    )


ROWS: Final = (
    *(
        _on_android(name, request)
        for name, request in {**READ, **NO_COMMAND, **ON_DEVICE, **SIZES}.items()
    ),
    *(_on_android(name, request) for name, (request, _) in HANDLES.items()),
    *(
        _on_ios(name, request, "XCUITest requires a web context.", WEB, NOT_IMPLEMENTED)
        for name, request in READ.items()
    ),
    *(
        _on_ios(
            name,
            request,
            "XCUITest has no such method.",
            NO_METHOD,
            NOT_YET,
        )
        for name, request in NO_COMMAND.items()
    ),
    *(
        _on_ios(
            name,
            request,
            "WebDriverAgent does not know the command.",
            UNHANDLED,
            NO_ENDPOINT,
        )
        for name, request in ON_DEVICE.items()
    ),
    *(
        _on_ios(
            name,
            request,
            "XCUITest sizes windows only in Safari's automation session.",
            WINDOW,
            Error(UnknownMethodException, "requires an active automation session"),
        )
        for name, request in SIZES.items()
    ),
    *(
        _on_ios(
            name,
            request,
            "XCUITest has one window with the handle 1.",
            WINDOW,
            answer,
        )
        for name, (request, answer) in HANDLES.items()
    ),
    Row(
        name="no-current-url",
        platforms=(ANDROID,),
        rule="UiAutomator2 has no such method, and sends nothing to its server.",
        source=NO_PROXY,
        page=PAGE,
        example=Command("GET", "/url"),
        answer=NOT_YET,
    ),
    Row(
        name="no-current-url",
        platforms=(IOS,),
        rule="XCUITest requires a web context.",
        source=WEB,
        page=PAGE,
        example=Command("GET", "/url"),
        answer=NOT_IMPLEMENTED,
    ),
    *(
        Row(
            name=f"no-{name}-timeout",
            platforms=(ANDROID,),
            rule="UiAutomator2 has only the implicit wait in the native context.",
            source=TIMEOUTS,
            page=PAGE,
            example=Command("POST", "/timeouts", {name: 1000}),
            answer=Error(UnknownMethodException, f"Not implemented yet for {name}"),
        )
        for name in ("script", "pageLoad")
    ),
    Row(
        name="timeouts",
        platforms=BOTH,
        rule="The drivers answer with the timeouts that they have themselves.",
        source=TIMEOUTS,
        page=PAGE,
        example=Command("GET", "/timeouts"),
        answer={"command": 0, "implicit": 0},
    ),
    Row(
        name="an-impossible-rotation",
        platforms=BOTH,
        rule="A screen has four rotations.",
        source=server("handler/SetRotation.java", "35dc51f1"),
        page=PAGE,
        example=Command("POST", "/rotation", {"x": 0, "y": 0, "z": 45}),
        answer=Error(InvalidArgumentException),
    ),
    *(
        Row(
            name=f"no-{path.replace('_', '-')}",
            platforms=(IOS,),
            rule="XCUITest has no endpoints of Android.",
            source=Source(*XCUITEST, "lib/method-map.ts"),
            page=PAGE,
            example=Command(method, f"/appium/device/{path}", body),
            answer=Error(UnknownMethodException),
        )
        for method, path, body in (
            ("POST", "press_keycode", {"keycode": 4}),
            ("GET", "current_package", None),
        )
    ),
    Row(
        name="scripts-record-the-screen",
        platforms=(IOS,),
        rule="Scripts record the screen, with the options of the endpoints.",
        source=Source(*XCUITEST, "lib/commands/recordscreen.ts"),
        page=PAGE,
        example=Then(
            Script("mobile: startScreenRecording", {"timeLimit": 60, "videoFps": 10}),
            lambda driver: bool(Script("mobile: stopScreenRecording")(driver)),
        ),
        answer=True,
    ),
    Row(
        name="no-script-for-the-orientation",
        platforms=BOTH,
        rule="The orientation has an endpoint, not a script.",
        source=Source(*ANDROID_DRIVER, "lib/execute-method-map.ts"),
        page=PAGE,
        example=Script("mobile: getOrientation"),
        answer=Error(UnknownMethodException),
    ),
    Row(
        name="the-accuracy-of-a-location",
        platforms=(ANDROID,),
        rule="A location has more arguments than its coordinates.",
        source=Source(*ANDROID_DRIVER, "lib/execute-method-map.ts"),
        page=PAGE,
        example=Then(
            Script(
                "mobile: setGeolocation",
                {"latitude": 48.1, "longitude": 11.5, "accuracy": 5, "bearing": 90},
            ),
            Script("mobile: getGeolocation", key="latitude"),
        ),
        answer=48.1,
    ),
    Row(
        name="the-apps-on-the-device",
        platforms=(ANDROID,),
        rule="listApps describes each app by its ID.",
        source=Source(*ANDROID_DRIVER, "lib/commands/app-management.ts"),
        page=PAGE,
        example=lambda driver: Script("mobile: listApps", key=APP_ID)(driver)[  # type: ignore[index]
            "packageName"
        ],
        answer=APP_ID,
    ),
    Row(
        name="window-rect",
        platforms=BOTH,
        rule="Reading the window's size works.",
        source=NO_PROXY,
        page=PAGE,
        example=lambda driver: driver.get_window_size()["width"] > 0,
        answer=True,
    ),
    Row(
        name="no-execute-driver",
        platforms=BOTH,
        rule="Appium needs the plugin execute-driver.",
        source=Source(*BASE_DRIVER, "build/lib/express/middleware.js"),
        page=PAGE,
        example=lambda driver: driver.execute_driver("return 1"),  # pyright: ignore[reportUnknownMemberType]
        answer=Error(UnknownMethodException, "execute_driver|could not be found"),
    ),
)
