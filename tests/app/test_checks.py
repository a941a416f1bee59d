"""Findings: each ID with a project that breaks its rule, and one that follows it."""

import os
import re
import sys
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from pytest_device.app import (
    app_config_fields_not_synced,
    check,
    inlined_public,
    install_check,
    load_project,
)
from pytest_device.app.checks.finding import BUNDLE_RULES, RULES
from pytest_device.errors import ConfigError
from tests.app.rows import project_files, put, rows

KEY: Final = "-----BEGIN PRIVATE KEY-----"
GOOD_UPDATES: Final = {
    "updates": {"url": "https://u.example"},
    "runtimeVersion": "1.0.0",
}
TYPED: Final = {"experiments": {"typedRoutes": True}}
INCLUDED: Final = {"include": [".vendor/types/**/*.ts", "vendor-env.d.ts"]}
SIGNED: Final = {"alg": "rsa-v1_5-sha256", "keyid": "main"}

HEADLESS: Final = {"vendor-notifications": "1", "vendor-task-manager": "1"}


def _package(**section: Any) -> dict[str, Any]:
    return {
        "package.json": {
            "name": "pkg",
            "version": "9.9.9",
            "dependencies": {"lib": "^1.0.0"},
            **section,
        }
    }


UPDATING: Final = _package(dependencies={"vendor-updates": "1"})
ROUTED: Final = _package(dependencies={"vendor-router": "1"})


def _notifying(**options: Any) -> dict[str, Any]:
    return {"plugins": ["another", ["vendor-notifications", options]]}


Files: TypeAlias = dict[str, Any]
Made: TypeAlias = tuple[Files, Files]
"""The app config of a project, and its other files."""

WRONG_AND_RIGHT: Final[dict[str, tuple[Made, Made]]] = {
    "config-type": (({"name": 1}, {}), ({"name": "a"}, {})),
    "config-value": (({"orientation": "up"}, {}), ({"orientation": "portrait"}, {})),
    "config-unknown-key": (({"orientatoin": "x"}, {}), ({"somethingElse": 1}, {})),
    "config-duplicate-key": (({}, {"app.json": '{"vendor": {"name": "a",\n"name": "b"}}'}), ({}, {})),
    "config-generated-key": (({"currentFullName": "@a/b"}, {}), ({"owner": "a"}, {})),
    "config-deprecated-key": (({"androidStatusBar": {}, "sdkVersion": "58.0.0"}, {}), ({"androidStatusBar": {}}, {})),
    "config-removed-key": (({"notification": {}}, {}), ({"notification": {}, "sdkVersion": "54.0.0"}, {})),
    "config-older-key": (({"splash": {}}, {}), ({}, {})),
    "config-ignored-key": (({}, {"app.json": {"vendor": {}, "name": "x"}}), ({}, {})),
    "config-sdk-version": (({"sdkVersion": "55.0.0"}, {}), ({"sdkVersion": "57.0.0"}, {})),
    "config-project-id": (
        ({"extra": {"vendor": {"projectId": "x"}}}, {}),
        ({"extra": {"vendor": {"projectId": "3b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11"}}}, {}),
    ),
    "vendor-profile": (
        ({"extra": {"x": {"projectId": "3b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11"}}}, {}),
        (
            {"extra": {"vendor": {"projectId": "3b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11"}}},
            {},
        ),
    ),
    "config-missing-file": (({"icon": "./i.png"}, {}), ({"icon": "./i.png"}, {"i.png": ""})),
    "config-missing-library": (
        ({"userInterfaceStyle": "dark"}, {}),
        ({"userInterfaceStyle": "dark"}, _package(dependencies={"vendor-system-ui": "1"})),
    ),
    "runtime-version": (({"runtimeVersion": "-1"}, {}), ({"runtimeVersion": {"policy": "appVersion"}}, {})),
    "updates-required": (({"updates": {"enabled": True}}, UPDATING), (GOOD_UPDATES, UPDATING)),
    "updates-embedded": (
        ({**GOOD_UPDATES, "updates": {"url": "https://u", "useEmbeddedUpdate": False}}, UPDATING),
        (
            {**GOOD_UPDATES, "updates": {"url": "u", "useEmbeddedUpdate": False, "fallbackToCacheTimeout": 9}},
            UPDATING,
        ),
    ),
    "updates-not-for-production": (
        ({**GOOD_UPDATES, "updates": {"url": "https://u", "useNativeDebug": True}}, UPDATING),
        (GOOD_UPDATES, UPDATING),
    ),
    "updates-asset-pattern": (
        ({"updates": {"url": "https://u", "assetPatternsToBeBundled": ["assets/*", "/etc/*", ""]}}, UPDATING),
        ({"updates": {"url": "https://u", "assetPatternsToBeBundled": ["a*/**/*.png"]}}, {"assets/x/logo.png": "", **UPDATING}),
    ),
    "updates-code-signing": (
        ({**GOOD_UPDATES, "updates": {"url": "https://u", "codeSigningCertificate": "./c.pem"}}, UPDATING),
        (
            {**GOOD_UPDATES, "updates": {"codeSigningCertificate": "./c.pem", "codeSigningMetadata": SIGNED}},
            {"c.pem": "", **UPDATING},
        ),
    ),
    "env-not-inlined": (
        ({}, {"app/a.tsx": "process.env['VENDOR_PUBLIC_A']"}),
        ({}, {"app/a.tsx": "process.env.VENDOR_PUBLIC_A; process.env.OTHER", "app/b+api.ts": "f(process.env)"}),
    ),
    "env-undefined": (
        ({}, {"app/a.tsx": "process.env.VENDOR_PUBLIC_A"}),
        ({}, {"app/a.tsx": "process.env.VENDOR_PUBLIC_A", ".env": "VENDOR_PUBLIC_A=1"}),
    ),
    "secret-in-config": (({"extra": {"a": [{"clientSecret": "hunter2"}]}}, {}), ({"extra": {"apiKey": "k"}}, {})),
    "secret-in-public-variable": (
        ({}, {".env": "VENDOR_PUBLIC_CLIENT_SECRET=hunter2"}),
        ({}, {".env": "CLIENT_SECRET=hunter2\nVENDOR_PUBLIC_URL=x"}),
    ),
    "secret-in-source": (
        ({}, {"src/a.ts": f"const k = `{KEY}`; f({{accessToken: 'ey12345678'}})"}),
        ({}, {"src/a.ts": "clientSecret: env.secret"}),
    ),
    "source-unreadable": (({}, {"src/a.ts": "x" * 9_000_000}), ({}, {"src/a.ts": "x", "src/a.bin": "x" * 9_000_000})),
    "bundler-css-order": (({}, {"a.ios.module.css": ""}), ({}, {"a.module.ios.css": ""})),
    "bundler-sass-missing": (({}, {"a.scss": ""}), ({}, {"a.scss": "", **_package(devDependencies={"sass": "1"})})),
    "bundler-sass-import": (({}, {"a.scss": "@use 'b';"}), ({}, {"a.scss": "a { color: red }"})),
    "bundler-postcss-config": (({}, {"postcss.config.js": ""}), ({}, {"postcss.config.json": ""})),
    "routes-file": (({}, {"app/(group).tsx": "", **ROUTED}), ({}, {"app/(group)/index.tsx": "", **ROUTED})),
    "routes-parameter": (({}, {"app/[id]/[id].tsx": "", **ROUTED}), ({}, {"app/[id]/[other].tsx": "", **ROUTED})),
    "typed-routes-ignored": (
        (TYPED, {"app/index.tsx": "", "tsconfig.json": {}, **ROUTED}),
        (TYPED, {"app/index.tsx": "", "tsconfig.json": {}, ".gitignore": "vendor-env.d.ts\n", **ROUTED}),
    ),
    "typed-routes-included": (
        (TYPED, {"app/index.tsx": "", "tsconfig.json": {"include": ["vendor-env.d.ts"]}, **ROUTED}),
        (TYPED, {"app/index.tsx": "", "tsconfig.json": INCLUDED, **ROUTED}),
    ),
    "notifications-value": ((_notifying(color="red"), {}), (_notifying(color="#ffffff", sounds=[]), {})),
    "notifications-icon": ((_notifying(icon="./i.png"), {"i.png": "no image"}), (_notifying(), {})),
    "notifications-sound": ((_notifying(sounds=["a.mp3"]), {}), (_notifying(sounds=["a.wav"]), {})),
    "notifications-background": (
        (_notifying(), _package(dependencies=HEADLESS)),
        (_notifying(enableBackgroundRemoteNotifications=True), _package(dependencies=HEADLESS)),
    ),
    "native-not-synced": (({"scheme": "a"}, {"ios/Podfile": ""}), ({"scheme": "a"}, {})),
    "install-version": (({}, _package(dependencies={"lib": "^2.0.0"})), ({}, _package())),
    "library-directory": (({}, _package(dependencies={"bad": "1"})), ({}, _package())),
}  # fmt: skip
TABLES: Final[Any] = {
    "versions": {"lib": "~1.0.0", "absent": "3"},
    "directory": {"lib": "", "bad": "is unmaintained"},
}


def _statuses(
    root: Path, project: tuple[dict[str, Any], dict[str, Any]], rule: str
) -> list[str]:
    config, files = project
    loaded = load_project(put(root, project_files(config, **files)))
    return [finding.status for finding in check(loaded, **TABLES) if finding.id == rule]


@pytest.mark.parametrize("rule", WRONG_AND_RIGHT)
def test_each_rule_rejects_a_wrong_project_and_accepts_a_right_one(
    rule: str, tmp_path: Path
) -> None:
    wrong, right = WRONG_AND_RIGHT[rule]
    assert _statuses(tmp_path / "wrong", wrong, rule).count("failed") >= 1
    assert _statuses(tmp_path / "right", right, rule) == ["passed"]


def test_reads_of_the_environment_are_skipped_without_the_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = project_files(
        {}, **{"app/a.tsx": f"process.env['VENDOR_PUBLIC_A']; '{KEY}'"}
    )
    project = load_project(put(tmp_path, files))
    monkeypatch.setitem(sys.modules, "tree_sitter_typescript", None)

    findings = {finding.id: finding for finding in check(project)}

    for rule in ("env-not-inlined", "env-undefined"):
        assert findings[rule].status == "skipped"
        assert findings[rule].fix == "pip install 'pytest-device[app]'"
    assert findings["secret-in-source"].status == "failed"
    with pytest.raises(ConfigError, match=r"pip install 'pytest-device\[app\]'"):
        inlined_public("process.env.A", {})


def test_each_rule_has_a_wrong_and_a_right_project() -> None:
    assert (
        set(RULES) - set(WRONG_AND_RIGHT)
        == {
            "config-unread",  # the command reports it: test_cli
            "config-unused-static",  # it needs Node.js: test_dynamic
            "notifications-icon-size",  # it needs an image: test_notification_assets
            "notifications-channel",  # it is known while the app runs: test_notification_assets
        }
    )


def test_each_rule_is_documented_with_its_severity_and_its_reason() -> None:
    docs = Path(__file__).parents[2] / "docs"
    row = r"^\| `([\w-]+)` \| (.+) \| (.+) \|$"
    listed, argued = (
        re.findall(row, (docs / page).read_text(), flags=re.MULTILINE)
        for page in ("app-checks.md", "app-findings.md")
    )
    rules = RULES | BUNDLE_RULES
    assert listed == [(name, *rule) for name, rule in rules.items()]
    assert [name for name, _, _ in argued] == [*rules]


STATIC: Final = [
    row
    for row in rows("package_config", "app_config_fields_not_synced")
    if "app.config.js" not in row.values[0]["input"]["files"]  # it is in test_dynamic
]


@pytest.mark.parametrize("row", STATIC)
def test_unsynced_keys_are_found_as_in_the_reference_case(
    row: Any, tmp_path: Path
) -> None:
    given = row["input"]
    put(
        tmp_path,
        {
            **given["files"],
            **dict.fromkeys(given["native_files"], ""),
            ".gitignore": "\n".join(given["gitignore"]),
        },
    )
    [finding] = app_config_fields_not_synced(load_project(tmp_path))
    assert finding.status == ("passed" if row["output"]["passed"] else "failed")


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        (
            {
                "ios": {
                    "icon": {
                        "light": "./a.png",
                        "dark": "./none.png",
                        "tinted": "https://i.example/t.png",
                    }
                }
            },
            ["ios.icon.dark"],
        ),
        (
            {"splash": {"image": "./none.png"}, "notification": {"icon": "none.png"}},
            ["splash.image", "notification.icon"],
        ),
        (
            {
                "icon": "./a.png",
                "ios": {"icon": "./a.png", "servicesFile": "none.plist"},
            },
            ["ios.servicesFile"],
        ),
    ],
)
def test_each_local_file_that_the_configuration_names_must_exist(
    config: dict[str, Any], missing: list[str], tmp_path: Path
) -> None:
    found = check(load_project(put(tmp_path, project_files(config, **{"a.png": ""}))))
    files = [
        one.rule.split()[0]
        for one in found
        if one.id == "config-missing-file" and one.status == "failed"
    ]
    assert sorted(files) == sorted(missing)


@pytest.mark.parametrize(
    ("pattern", "status"),
    [
        *(
            (one, "passed")
            for one in (
                "**",
                "assets/**",
                "assets/**/*",
                "images/*.{png,jpg}",  # not checked
            )
        ),
        *((one, "failed") for one in ("assets/*", "images/**", "*" * 10_000)),
    ],
)
def test_a_pattern_of_assets_must_match_a_file(
    pattern: str, status: str, tmp_path: Path
) -> None:
    config = {
        **GOOD_UPDATES,
        "updates": {"url": "https://u", "assetPatternsToBeBundled": [pattern]},
    }
    found = check(
        load_project(
            put(
                tmp_path,
                project_files(config, **{"assets/x/logo.png": ""}, **UPDATING),
            )
        )
    )
    assert [one.status for one in found if one.id == "updates-asset-pattern"] == [
        status
    ]


@pytest.mark.parametrize(
    ("policy", "statuses"),
    [("nope", ["failed"]), (7, ["failed"]), ("fingerprint", ["passed"])],
)
def test_the_policy_of_each_platform_must_be_known(
    policy: object, statuses: list[str], tmp_path: Path
) -> None:
    found = check(
        load_project(
            put(
                tmp_path,
                project_files({"android": {"runtimeVersion": {"policy": policy}}}),
            )
        )
    )
    assert [one.status for one in found if one.id == "runtime-version"] == statuses


@pytest.mark.parametrize("ignored", ["ios", "/ios/**", "**/ios/"])
def test_keys_are_synced_if_the_native_directory_is_ignored(
    ignored: str, tmp_path: Path
) -> None:
    files = project_files(
        {"scheme": "a"}, **{"ios/Podfile": "", ".gitignore": f"# ios\n{ignored}\n"}
    )
    [finding] = app_config_fields_not_synced(load_project(put(tmp_path, files)))
    assert finding.status == "passed"


@pytest.mark.parametrize(
    ("config", "files", "missing"),
    [
        ({"userInterfaceStyle": "dark", "platforms": ["ios"]}, {}, []),
        ({"backgroundColor": "#000000", "platforms": ["ios"]}, {}, ["backgroundColor"]),
        ({"backgroundColor": "#000000", "platforms": ["android"]}, {}, []),
        ({"ios": {"backgroundColor": "#000000"}}, {}, ["ios.backgroundColor"]),
        ({"platforms": ["ios", "web"]}, {}, ["platforms"]),
        (
            {"platforms": ["ios", "web"]},
            {"node_modules/react-dom/package.json": {}},
            [],
        ),
    ],
)
def test_a_key_needs_a_library_on_its_platform_only(
    config: dict[str, Any], files: dict[str, Any], missing: list[str], tmp_path: Path
) -> None:
    project = load_project(put(tmp_path, project_files(config, **files)))
    found = [
        one.rule.split()[0]
        for one in check(project)
        if one.id == "config-missing-library" and one.line
    ]
    assert found == missing


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("MAPS_TOKEN", True), ("TOKENS", True), ("API_SECRET", True), ("DB_PASSWORD", True), ("privateKey", True),
        ("MAPS_PUBLIC_TOKEN", False), ("PUBLISHABLE_TOKEN", False), ("TOKEN_URL", False), ("API_KEY", False),
    ],
)  # fmt: skip
def test_tokens_and_secrets_must_not_ship_unless_they_are_public(
    name: str,
    secret: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    config = {"extra": {name: "x"}}
    project = load_project(
        put(tmp_path, project_files(config, **{".env": f"VENDOR_PUBLIC_{name}=x"}))
    )
    failed = {one.id for one in check(project) if one.status == "failed"}
    assert ("secret-in-config" in failed, "secret-in-public-variable" in failed) == (
        secret,
        secret,
    )


@pytest.mark.parametrize("version", ["57.0.0", "57.0.26", "UNVERSIONED"])
def test_the_sdk_version_can_be_the_installed_one(version: str, tmp_path: Path) -> None:
    found = check(load_project(put(tmp_path, project_files({"sdkVersion": version}))))
    assert [one.status for one in found if one.id == "config-sdk-version"] == ["passed"]


def test_development_dependencies_have_expected_versions_too(tmp_path: Path) -> None:
    package = _package(devDependencies={"dev-lib": "1.0.0"})
    project = load_project(put(tmp_path, project_files({}, **package)))
    [found] = install_check(project, {"dev-lib": "2.0.0"})
    assert (found.status, found.path.name, found.line) == ("failed", "package.json", 1)


@pytest.mark.parametrize("row", rows("package_config", "install_check"))
def test_versions_are_compared_as_in_the_reference_case(
    row: Any, tmp_path: Path
) -> None:
    project = load_project(
        put(tmp_path, {"package.json": row["input"]["package_json"]})
    )
    versions = {
        "react-native-safe-area-context": "~5.8.0",
        "react-native": "0.86.3",
        "vendor": "~57.0.0",
    }
    assert [one.status for one in install_check(project, versions)] == ["passed"]


def test_the_installed_sdk_has_the_expected_versions(tmp_path: Path) -> None:
    table = {"lib": "~1.2.0", "other": "2.0.0", "absent": "3.0.0", "odd": 1}
    package = _package(dependencies={"lib": "^1.0.0", "other": "^1.0.0"})
    files = {
        "node_modules/vendor/bundledNativeModules.json": table,
        "node_modules/lib/package.json": {"name": "lib", "version": "1.4.0"},
        "node_modules/other/package.json": {"name": "other", "version": "2.0.0"},
    }
    project = load_project(put(tmp_path, project_files({}, **package, **files)))

    [found] = install_check(project, None)
    assert (found.status, found.rule.partition(":")[0]) == (
        "failed",
        "lib is 1.4.0, expected ~1.2.0",
    )
    # A table that is passed counts alone.
    assert [one.status for one in install_check(project, {"lib": "^1.4"})] == ["passed"]


def test_checks_without_data_are_skipped_not_passed(tmp_path: Path) -> None:
    project = load_project(put(tmp_path, project_files({})))
    skipped = {finding.id for finding in check(project) if finding.status == "skipped"}
    assert skipped == {"install-version", "library-directory"}


def test_checks_can_be_turned_off_in_the_package_config(tmp_path: Path) -> None:
    section = {
        "doctor": {
            name: {"enabled": False}
            for name in ("reactNativeDirectoryCheck", "appConfigFieldsNotSyncedCheck")
        }
    }
    files = {**_package(vendor=section), "ios/Podfile": ""}
    project = load_project(put(tmp_path, project_files({"scheme": "a"}, **files)))
    assert [one.status for one in app_config_fields_not_synced(project)] == ["skipped"]
    assert [
        one.status for one in check(project, **TABLES) if one.id == "library-directory"
    ] == ["skipped"]


@pytest.mark.parametrize(
    ("section", "failed"),
    [
        ({}, ["a-lib", "b-lib"]),
        ({"exclude": ["a-lib"]}, ["b-lib"]),
        ({"exclude": ["/^a-/"]}, ["b-lib"]),
        ({"exclude": ["/[/", "/a{99999999999}/"]}, ["a-lib", "b-lib"]),
        ({"listUnknownPackages": False}, []),
    ],
)
def test_unknown_libraries_are_listed_unless_excluded(
    section: dict[str, Any], failed: list[str], tmp_path: Path
) -> None:
    package = _package(
        dependencies={"a-lib": "1", "b-lib": "1"},
        vendor={"doctor": {"reactNativeDirectoryCheck": section}},
    )
    project = load_project(put(tmp_path, project_files({}, **package)))
    found = [
        one.rule.split()[0]
        for one in check(project, directory={})
        if one.id == "library-directory" and one.line
    ]
    assert found == failed


def test_sources_that_cannot_be_checked_are_reported(tmp_path: Path) -> None:
    project = load_project(
        put(tmp_path, project_files({}, **{"src/bad/b.ts": "", "src/c.ts": ""}))
    )
    (tmp_path / "src/a.ts").write_bytes("const a = 1".encode("utf-16"))
    os.mkfifo(tmp_path / "src/d.ts")
    (tmp_path / "src/e.ts").symlink_to("nowhere")
    found = {
        one.path.name: one.rule
        for one in check(project)
        if one.id == "source-unreadable"
    }
    assert {name: rule.partition(":")[0] for name, rule in found.items()} == {
        "a.ts": "is not UTF-8",
        "d.ts": "cannot be read",
        "e.ts": "is a broken symbolic link",
    }


@pytest.mark.parametrize(
    ("name", "failed"),
    [
        ("src/a.ts", True), ("app/tests/a.tsx", True), ("scripts/a.js", False), ("a.config.js", False),
        ("src/jest.setup.ts", False), ("src/__tests__/a.ts", False), ("src/a.test.tsx", False), ("plugins/a.js", False),
    ],
)  # fmt: skip
def test_only_what_the_bundler_reads_must_be_inlined(
    name: str,
    failed: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    project = load_project(
        put(
            tmp_path,
            project_files({}, **{name: "const {VENDOR_PUBLIC_A} = process.env"}),
        )
    )
    [found] = [one for one in check(project) if one.id == "env-not-inlined"]
    assert (found.status == "failed") == failed


def test_a_finding_has_a_position_and_a_fix_but_no_secret(tmp_path: Path) -> None:
    text = '{\n  // JSON5\n  vendor: {\n    extra: { clientSecret: "hunter2hunter2" },\n    orientation: "up",\n  },\n}'
    project = load_project(put(tmp_path, project_files({}, **{"app.json": text})))
    found = {one.id: one for one in check(project) if one.status == "failed"}
    assert (found["config-value"].line, found["config-value"].column) == (5, 5)
    assert found["config-value"].path == tmp_path / "app.json"
    assert (found["secret-in-config"].line, found["secret-in-config"].column) == (4, 14)
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("5.8.3", "~5.8.0", True), ("5.9.0", "~5.8.0", False), ("5.9.0", "^5.8.0", True), ("6.0.0", "^5.8.0", False),
        ("0.86.3", "0.86.3", True), ("0.86.4", "0.86.3", False), ("^57.0.1", "~57.0.0", True),
        ("0.2.9", "^0.2.3", True), ("0.3.0", "^0.2.3", False), ("1.5.0", "1.x", True), ("latest", "1.0.0", False),
        ("2.0.0", ">=1.0.0 <2.0.0", False), ("3.1.0", "^1 || ^3", True), ("1.3.0", "1.2.0 - 1.4.0", True),
        ("1.2.5", ">1.2", False), ("1.3.0", ">1.2", True), ("1.2.5", "<=1.2", True), ("1.3.0", "<=1.2", False),
        ("0.0.4", "^0.0.3", False),
        ("0.0.3", "^0.0.3-rc.1", True), ("0.0.9", "^0.0", True), ("0.9.0", "^0", True), ("1.2.3+5", "1.2.3", True),
        ("1.2.3-rc.1", "1.2.3", False), ("1.2.4-rc.1", "~1.2.3", False), ("1.2.3", "^1.2.3-rc.1", True),
        ("2.0.0-rc.10", "^2.0.0-rc.9", True), ("2.0.0-rc.1", "^2.0.0-rc.9", False), ("2.0.0-rc", "^2.0.0-9", True),
        ("2.1.0-rc.9", "^2.0.0-rc.9", False), ("2.0.0-rc.9", "2.0.0-rc.9", True), ("2.0.0-rc.9", "2.0.0-rc.8", False),
    ],
)  # fmt: skip
def test_versions_match_ranges(version: str, wanted: str, fits: bool) -> None:  # noqa: FBT001
    from pytest_device.app.checks.packages import fits as does_fit

    assert does_fit(version, wanted) is fits


def test_the_declaration_and_its_entries_can_have_other_names(tmp_path: Path) -> None:
    files = {
        "app/index.tsx": "",
        ".gitignore": "/routes.d.ts\n",
        "tsconfig.json": {"include": ["types/*.ts"]},
    }
    project = load_project(put(tmp_path, project_files(TYPED, **files, **ROUTED)))
    typed = {"typed-routes-ignored", "typed-routes-included"}
    assert typed <= {one.id for one in check(project) if one.status == "failed"}
    findings = check(project, declaration="routes.d.ts", include=["types/*.ts"])
    assert typed <= {one.id for one in findings if one.status == "passed"}
