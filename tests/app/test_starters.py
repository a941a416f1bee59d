"""Projects in the shapes of public starters: the rules speak only about what a project uses."""

from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.app import check, load_project
from tests.app.rows import put, rows

pytestmark = pytest.mark.every_python

NAMES: Final = {"name": "Notes", "slug": "notes", "version": "1.0.0"}
SPLASH: Final = {"image": "./a.png", "resizeMode": "contain", "backgroundColor": "#ffffff"}  # fmt: skip
BLANK: Final = {
    **NAMES, "orientation": "portrait", "icon": "./a.png", "userInterfaceStyle": "light",
    "ios": {"supportsTablet": True},
    "android": {"adaptiveIcon": {"foregroundImage": "./a.png", "backgroundColor": "#ffffff"}},
    "web": {"favicon": "./a.png"},
}  # fmt: skip
OLD: Final = {
    **BLANK,
    "splash": SPLASH,
    "updates": {"fallbackToCacheTimeout": 0},
    "assetBundlePatterns": ["**/*"],
}
TABS: Final = {
    **BLANK, "scheme": "notes", "userInterfaceStyle": "automatic", "newArchEnabled": True,
    "plugins": ["vendor-router"], "experiments": {"typedRoutes": True},
    "web": {"bundler": "metro", "output": "static", "favicon": "./a.png"},
}  # fmt: skip
UUID: Final = "3b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11"
HOSTED: Final = {
    "updates": {"url": f"https://u.example/{UUID}"},
    "runtimeVersion": {"policy": "appVersion"},
}
UPDATING: Final = ("vendor-updates",)
ROUTED: Final = ("vendor-router", "vendor-system-ui")
ROUTES: Final = {
    "app/_layout.tsx": "", "app/index.tsx": "", "app/+not-found.tsx": "",
    "tsconfig.json": {"include": ["**/*.ts", ".vendor/types/**/*.ts", "vendor-env.d.ts"]},
    ".gitignore": "vendor-env.d.ts\n",
}  # fmt: skip
OLDER: Final = [("note", "config-older-key")] * 4

STARTERS: Final[dict[str, tuple[dict[str, Any], tuple[str, ...], dict[str, Any], list[Any]]]] = {
    # The config, the libraries besides the SDK, further files ("sdk": the installed version), and the findings.
    "blank": (BLANK, (), {}, []),
    "blank, TypeScript": (BLANK, (), {"tsconfig.json": {}, "App.tsx": ""}, []),
    "blank of an old SDK": (OLD, (), {"sdk": "49.0.0"}, OLDER),
    "blank of an old SDK, named": ({**OLD, "sdkVersion": "51.0.0"}, (), {"sdk": "51.0.0"}, OLDER),
    "blank with a left-over": ({**BLANK, "updates": {"fallbackToCacheTimeout": 0}}, (), {}, []),
    "left-overs of updates": (
        {**BLANK, "updates": {"useEmbeddedUpdate": False, "useNativeDebug": True, "codeSigningCertificate": "./c.pem",
                              "assetPatternsToBeBundled": ["none/*"]}},
        (), {}, [],
    ),
    "updates switched off": ({**BLANK, "updates": {"enabled": False}}, UPDATING, {}, []),
    "updates without settings": (BLANK, UPDATING, {}, []),
    "hosted updates": ({**BLANK, **HOSTED, "extra": {"vendor": {"projectId": UUID}}, "owner": "acme"}, UPDATING, {}, []),
    "hosted updates, removed library": ({**BLANK, **HOSTED}, (), {}, []),
    "updates with a left-over only": (
        {**BLANK, "updates": {"fallbackToCacheTimeout": 0}}, UPDATING, {}, [("error", "updates-required")] * 2,
    ),
    "updates with a missing certificate": (
        {**BLANK, **HOSTED, "updates": {**HOSTED["updates"], "codeSigningCertificate": "./c.pem"}},
        UPDATING, {}, [("error", "config-missing-file"), ("error", "updates-code-signing")],
    ),
    "tabs": (TABS, ROUTED, ROUTES, []),
    "tabs with all platforms": (
        {**TABS, "platforms": ["ios", "android", "web"]}, (*ROUTED, "react-dom"), ROUTES, [],
    ),
    "tabs without the library of styles": (TABS, ("vendor-router",), ROUTES, [("warning", "config-missing-library")]),
    "tabs before the declaration": (
        TABS, ROUTED, {**ROUTES, "tsconfig.json": {"include": ["**/*.ts"]}, ".gitignore": ""},
        [("error", "typed-routes-included")] * 2 + [("warning", "typed-routes-ignored")],
    ),
    "tabs in JavaScript": (TABS, ROUTED, {"app/index.js": ""}, []),
    "typed routes left over": ({**BLANK, "experiments": {"typedRoutes": True}}, (), {"tsconfig.json": {}}, []),
    "a directory app without the router": (
        BLANK, (),
        {"app/app.tsx": "", "app/components/Button.ios.tsx": "", "app/components/Button.android.tsx": "",
         "app/(x).tsx": "", "app/+x.ts": ""},
        [],
    ),
    "boilerplate at the top level": (
        {**OLD, "jsEngine": "hermes", "newArchEnabled": True, "plugins": ["vendor-localization", "vendor-font"],
         "experiments": {"tsconfigPaths": True}, "extra": {"starter": {"version": "1"}}},
        ("vendor-localization", "vendor-font"), {"app/app.tsx": ""}, [*OLDER, ("warning", "config-deprecated-key")],
    ),
    "a workspace's app": (
        {**BLANK, "extra": {"vendor": {"projectId": "your-project-id"}}, "plugins": ["./plugins/gradle.js"]},
        (), {"plugins/gradle.js": ""}, [("error", "config-project-id")],
    ),
    "a development build": (
        {**BLANK, "scheme": "notes", "ios": {"bundleIdentifier": "com.acme.notes"}, "android": {"package": "com.acme.notes"},
         "developmentClient": {"silentLaunch": True}},
        ("vendor-dev-client",), {}, [],
    ),
    "native directories": (
        {"name": "notes", "displayName": "Notes"}, (), {"ios/Podfile": "", "android/build.gradle": ""}, [],
    ),
    "native directories and settings": (
        {**BLANK, "scheme": "notes"}, (), {"ios/Podfile": ""}, [("warning", "native-not-synced")],
    ),
    "notifications": (
        {**BLANK, "plugins": [["vendor-notifications", {"color": "#ffffff", "sounds": ["./a.wav"]}]]},
        ("vendor-notifications",), {"a.wav": ""}, [],
    ),
    "public variables": (
        {**BLANK, "extra": {"apiUrl": "https://api.example"}}, (),
        {".env": "VENDOR_PUBLIC_API_URL=https://api.example", "src/api.ts": "fetch(process.env.VENDOR_PUBLIC_API_URL)"},
        [],
    ),
    "styles with PostCSS": (TABS, ROUTED, {**ROUTES, "global.css": "", "postcss.config.js": ""},
                            [("note", "bundler-postcss-config")]),
    "a large app": (
        {**TABS, **HOSTED, "owner": "acme", "primaryColor": "#61389d", "description": "Notes", "backgroundColor": "#ffffff",
         "ios": {"bundleIdentifier": "com.acme.notes", "buildNumber": "7", "config": {"usesNonExemptEncryption": False},
                 "infoPlist": {"UIBackgroundModes": ["remote-notification"]}, "associatedDomains": ["applinks:a.example"],
                 "privacyManifests": {}, "entitlements": {}},
         "android": {"package": "com.acme.notes", "versionCode": 7, "intentFilters": [], "googleServicesFile": "./g.json"}},
        (*ROUTED, *UPDATING, "vendor-notifications", "vendor-task-manager"), ROUTES, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STARTERS)
def test_the_rules_speak_only_about_what_a_starter_uses(
    name: str, tmp_path: Path
) -> None:
    config, libraries, files, expected = STARTERS[name]
    sdk = files.get("sdk", "57.0.26")
    versions = {"vendor": "*", "react-native": "*", **dict.fromkeys(libraries, "*")}
    put(
        tmp_path,
        {
            "app.json": {"vendor": config},
            "package.json": {"name": "notes", "dependencies": versions},
            "node_modules/vendor/package.json": {"name": "vendor", "version": sdk},
            "a.png": "",
            **{path: text for path, text in files.items() if path != "sdk"},
        },
    )

    found = check(load_project(tmp_path, environ={}))
    failed = [(one.severity, one.id) for one in found if one.status == "failed"]
    assert sorted(failed) == sorted(expected), [one for one in found if one.fix]


@pytest.mark.parametrize("row", rows("app_check"))
def test_a_check_has_the_errors_of_the_reference_case(row: Any, tmp_path: Path) -> None:
    found = check(load_project(put(tmp_path, row["input"])))
    errors = {
        one.id for one in found if (one.status, one.severity) == ("failed", "error")
    }

    assert errors == set(row["output"].get("errors_of", ()))
