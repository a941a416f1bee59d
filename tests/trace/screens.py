"""The same screen as each controller describes it, recorded from the local service."""

import json
from typing import Final

from pytest_device.trace.screen import Screen
from pytest_device.trace.screen_parsers import (
    from_description,
    from_page_source,
    from_snapshot,
)

ANDROID: Final = """<?xml version="1.0" encoding="UTF-8"?>
<hierarchy index="0" class="hierarchy" rotation="0" width="981" height="2177">
<android.widget.FrameLayout class="android.widget.FrameLayout" text="" resource-id="" content-desc=""
 enabled="true" bounds="[8,21][972,156]" displayed="true">
<android.widget.TextView class="android.widget.TextView" text="Shop" resource-id="" content-desc="title"
 bounds="[8,21][972,59]"/>
<android.widget.EditText class="android.widget.EditText" text="User name" hint="User name"
 resource-id="com.example:id/user" content-desc="username" bounds="[8,81][187,102]"/>
<android.widget.EditText class="android.widget.EditText" text="hunter2" resource-id="com.example:id/pw"
 content-desc="password" password="true" focused="true" bounds="[192,81][371,102]"/>
<android.widget.Button class="android.widget.Button" text="Sign in" resource-id="com.example:id/signin"
 content-desc="sign-in" clickable="true" bounds="[376,81][436,102]"/>
<android.widget.Button class="android.widget.Button" text="Help me" resource-id="com.example:id/help"
 content-desc="" enabled="false" bounds="[441,81][512,102]"/>
<android.view.ViewGroup class="android.view.ViewGroup" bounds="[8,118][972,156]">
<android.widget.TextView class="android.widget.TextView" text="Bread" bounds="[48,118][972,137]"/>
<android.widget.TextView class="android.widget.TextView" text="Milk" bounds="[48,137][972,156]"/>
<android.widget.TextView class="android.widget.TextView" text="Milk" bounds="[48,156][972,175]"/>
</android.view.ViewGroup></android.widget.FrameLayout></hierarchy>
"""
IOS: Final = """<?xml version="1.0" encoding="UTF-8"?>
<XCUIElementTypeApplication type="XCUIElementTypeApplication" name="app" label="app" enabled="true"
 visible="true" x="0" y="0" width="980" height="2125">
<XCUIElementTypeWindow type="XCUIElementTypeWindow" enabled="true" visible="true" x="8" y="21" width="964" height="135">
<XCUIElementTypeSecureTextField type="XCUIElementTypeSecureTextField" value="hunter2" name="pw" label="password"
 focused="true" x="192" y="81" width="179" height="21"/>
<XCUIElementTypeButton type="XCUIElementTypeButton" name="signin" label="sign-in" x="376" y="81" width="60"
 height="21"/>
<XCUIElementTypeStaticText type="XCUIElementTypeStaticText" value="Milk" label="Milk" visible="false" x="48"
 y="137" width="924" height="19"/>
</XCUIElementTypeWindow></XCUIElementTypeApplication>
"""
HTML: Final = """<!doctype html><html><head><title>Shop</title><style>p { color: red }</style></head><body>
<h1 aria-label="title">Shop</h1><input id="pw" type="password" value="hunter2"><br>
<button id="signin" disabled>Sign in</button><ul><li>Bread<li>Milk</ul>
<input data-testid="amount" name="quantity" value="12"><p>Total: <b>7</b> euros</p><h2>Hello <!-- -->A&nbsp;B</h2>
<select><option value="r">Red</option></select></body></html>
"""
SNAPSHOT: Final = [
    {"type": "heading", "role": "heading", "label": "title", "depth": 0, "ref": "e1"},
    {"role": "secure-text-field", "label": "password", "value": "hunter2", "depth": 1},
    {
        "role": "button",
        "label": "sign-in",
        "identifier": "signin",
        "depth": 1,
        "rect": {"x": 376, "y": 81, "width": 60, "height": 21},
        "enabled": False,
    },
    {"role": "button", "label": "Help me", "depth": 1, "focused": True},
]
DESCRIPTION: Final = r"""Source: cdp-dom
Mode: nested
Coordinates are normalized [0,1] fractions of the screen (x, y, width, height), not pixels.

ROOT  html (0.000, 0.000, 1.000, 0.081)

  body  (0.008, 0.010, 0.984, 0.063)
    h1 "title" value="Shop \"now\""  (0.008, 0.010, 0.984, 0.018)
    input "password" value="hunter2" id="pw" [clickable,password]  (0.196, 0.038, 0.183, 0.010)
    button "sign-in" value="Sign in" id="signin" [clickable]  (0.384, 0.038, 0.061, 0.010)
    ul  (0.008, 0.055, 0.984, 0.018)
      li value="Bread"  (0.049, 0.055, 0.943, 0.009)"""

SCREENS: Final[dict[str, Screen]] = {
    "android": from_page_source(ANDROID),
    "ios": from_page_source(IOS),
    "web": from_page_source(HTML),
    "agent-device": from_snapshot(json.loads(json.dumps(SNAPSHOT))),
    "argent": from_description(DESCRIPTION),
}
