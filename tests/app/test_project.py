"""Projects: the merged configuration, and what belongs to it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_device import ConfigError
from pytest_device.app import (
    VendorProfile,
    check,
    load_project,
    resolve_runtime_version,
)
from pytest_device.app.link import check_url
from pytest_device.errors import ProjectError
from tests.app.rows import project_files, put, rows

STATIC = [
    row
    for row in rows("app_config")
    if not any(
        name.startswith("app.config.") for name in row.values[0]["input"]["files"]
    )
]
DEFAULT_PLATFORMS = ["ios", "android"]


@pytest.mark.parametrize("row", STATIC)
def test_a_static_configuration_matches_the_reference_case(
    row: Any, tmp_path: Path
) -> None:
    put(tmp_path, row["input"]["files"])
    if "error" in row:
        with pytest.raises(ProjectError) as caught:
            load_project(tmp_path)
        assert caught.value.code == row["error"]["code"]
        return
    project = load_project(tmp_path)
    # The document: the default is [ios, android], whatever is installed.
    wanted = row["output"]["config"] | {
        "platforms": row["output"]["config"]["platforms"] or DEFAULT_PLATFORMS
    }
    assert (
        project.to_dict(public=row["input"]["options"].get("isPublicConfig", False))
        == wanted
    )
    assert project.static_path == tmp_path / row["output"]["staticConfigPath"]
    assert project.dynamic_path is None
    assert len(project.warnings) == row.get("warnings", 0)


@pytest.mark.parametrize("row", rows("native_values"))
def test_a_build_gets_the_values_of_the_reference_case(
    row: Any, tmp_path: Path
) -> None:
    project = load_project(put(tmp_path, row["input"]["files"]))
    config: Any = {"runtimeVersion": {"policy": "nativeVersion"}}
    versions = replace(project, config={**project.config, **config})

    for platform, version, number in (
        ("ios", "version", "buildNumber"),
        ("android", "versionName", "versionCode"),
    ):
        wanted = row["output"][platform]
        schemes = project.schemes(platform)
        assert {*wanted["schemes"]} - {wanted.get("bundleIdentifier")} == {*schemes}
        for scheme in wanted["schemes"]:
            check_url(f"{scheme}://", project, platform=platform)

        native = resolve_runtime_version(versions, platform, workflow="managed")
        assert native == f"{wanted[version]}({wanted[number]})"

    assert project.identifier("ios") == row["output"]["ios"]["bundleIdentifier"]
    assert project.identifier("android") == row["output"]["android"]["package"]
    families = [1, 2] if project.app_config().ios.supports_tablet else [1]
    assert families == row["output"]["ios"]["deviceFamilies"]


def test_a_platform_overrides_values_and_merges_schemes(tmp_path: Path) -> None:
    config = {
        "scheme": "one", "icon": "./a.png", "version": "1.0.0", "backgroundColor": "#ffffff",
        "ios": {"scheme": ["two", "one"], "icon": "./b.icon", "version": "2.0.0", "userInterfaceStyle": "dark"},
        "android": {"package": "com.a", "scheme": "three"},
    }  # fmt: skip
    project = load_project(put(tmp_path, project_files(config)))
    ios, android = project.effective("ios"), project.effective("android")
    assert {key: ios[key] for key in ("scheme", "icon", "version", "userInterfaceStyle", "backgroundColor")} == {
        "scheme": ["one", "two"], "icon": "./b.icon", "version": "2.0.0", "userInterfaceStyle": "dark",
        "backgroundColor": "#ffffff",
    }  # fmt: skip
    assert (android["scheme"], android["icon"], android["version"]) == (
        ["one", "three"],
        "./a.png",
        "1.0.0",
    )
    assert project.schemes() == ("one", "two", "three")
    assert project.to_dict()["icon"] == "./a.png"
    with pytest.raises(ConfigError, match="'iOS' must be ios, android or web"):
        project.effective("iOS")
    assert (project.identifier("android"), project.identifier("ios")) == ("com.a", None)


def test_a_platform_that_sets_null_overrides_nothing(tmp_path: Path) -> None:
    config = {"icon": "./a.png", "runtimeVersion": "1", "scheme": "one"}
    project = load_project(
        put(tmp_path, project_files({**config, "ios": dict.fromkeys(config)}))
    )
    assert {key: project.effective("ios")[key] for key in config} == {
        **config,
        "scheme": ["one"],
    }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "EJSONEMPTY"),
        (" \n", "EJSONEMPTY"),
        ("null", "INVALID_CONFIG"),
        ("[]", "INVALID_CONFIG"),
        ("{", "EJSONPARSE"),
    ],
)
def test_a_file_that_is_no_configuration_has_the_code_of_its_problem(
    text: str, code: str, tmp_path: Path
) -> None:
    with pytest.raises(ProjectError, match=r"app\.json") as caught:
        load_project(put(tmp_path, project_files({}, **{"app.json": text})))
    assert caught.value.code == code


def test_a_dictionary_is_a_copy(tmp_path: Path) -> None:
    project = load_project(
        put(tmp_path, project_files({"ios": {"config": {"a": 1}}, "extra": {"x": 1}}))
    )
    project.to_dict()["extra"] = None
    assert project.to_dict(public=True)["ios"] == {}
    assert project.to_dict()["ios"] == {"config": {"a": 1}}
    assert project.to_dict()["extra"] == {"x": 1}
    assert load_project(tmp_path, public=True).to_dict() == project.to_dict(public=True)


def test_the_project_identifier_can_be_elsewhere(tmp_path: Path) -> None:
    config = {"extra": {"vendor": {"projectId": "a"}, "mine": "b"}}
    put(tmp_path, project_files(config))

    def found(path: str) -> str | None:
        profile = VendorProfile(project_id_path=path)
        return load_project(tmp_path, vendor=profile).project_id()

    assert (found(""), found("extra.mine"), found("x.y")) == ("a", "b", None)


def test_another_vendor_reads_its_own_names(tmp_path: Path) -> None:
    files = {
        "package.json": {"name": "x", "acme": {"install": {"exclude": ["y"]}}},
        "node_modules/acme/package.json": {"version": "55.1.0"},
        "app.json": {
            "acme": {"extra": {"acme": {"projectId": "p"}}},
            "vendor": {"name": "no"},
        },
    }
    project = load_project(put(tmp_path, files), vendor="acme")
    assert (project.sdk_version, project.project_id(), project.config["name"]) == (
        "55.0.0",
        "p",
        "x",
    )
    assert project.package.install_exclude == ("y",)
    with pytest.raises(ConfigError, match="must be one lowercase word"):
        load_project(tmp_path, vendor="Acme Inc")


def test_hoisted_libraries_are_found(tmp_path: Path) -> None:
    put(tmp_path, {"node_modules/vendor/package.json": {"version": "56.2.1"}})
    put(tmp_path / "apps/one", {"package.json": {"name": "one"}, "app.json": {}})
    project = load_project(tmp_path / "apps/one")
    assert (project.sdk_version, project.sdk_major) == ("56.0.0", 56)


def test_the_file_named_config_wins(tmp_path: Path) -> None:
    project = load_project(
        put(
            tmp_path, project_files({"name": "a"}, **{"app.config.json": {"name": "b"}})
        )
    )
    assert (project.config["name"], project.static_path) == (
        "b",
        tmp_path / "app.config.json",
    )


def test_the_package_config_has_defaults(tmp_path: Path) -> None:
    package = load_project(put(tmp_path, project_files({}))).package
    assert (
        package.install_exclude,
        package.native_modules_dir,
        package.sync_check_enabled,
    ) == ((), None, True)
    assert (
        package.directory_check.enabled,
        package.directory_check.list_unknown_packages,
    ) == (True, True)
    section = {
        "install": {"exclude": ["a"]}, "autolinking": {"nativeModulesDir": "./m"},
        "doctor": {
            "reactNativeDirectoryCheck": {"enabled": False, "exclude": ["/^a/"], "listUnknownPackages": False},
            "appConfigFieldsNotSyncedCheck": {"enabled": False},
        },
    }  # fmt: skip
    put(tmp_path, {"package.json": {"vendor": section}})
    package = load_project(tmp_path).package
    assert (
        package.install_exclude,
        package.native_modules_dir,
        package.sync_check_enabled,
    ) == (("a",), "./m", False)
    check = package.directory_check
    assert (check.enabled, check.exclude, check.list_unknown_packages) == (
        False,
        ("/^a/",),
        False,
    )
    assert package.name == tmp_path.name


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "is not the directory of a vendor app: it has no package.json"),
        (
            {"package.json": {"name": "web"}},
            "neither an app config with the key vendor nor the package vendor",
        ),
        (
            {"package.json": {}, "app.json": {"name": "x"}},
            "neither an app config with the key vendor nor the package",
        ),
        (
            {"package.json": "[]", "app.json": {}},
            r"package.json:1:1: must be an object",
        ),
        ({"package.json": {}, "app.json": "[1]"}, r"app.json:1:1: must be an object"),
        (
            {"package.json": {}, "app.json": {"vendor": 1}},
            r'app\.json: "vendor" must be an object',
        ),
        (
            {"package.json": {}, "app.json": '{\n "vendor": {,}}'},
            r"app.json:2:\d+: is not valid JSON or JSON5",
        ),
        (
            {"package.json": {}, "app.json": '{"a": "hunter2'},
            r"app.json:1:\d+: (ends unexpectedly|is not valid)",
        ),
        (
            {"package.json": {}, "app.json": "[" * 10_000},
            r"app\.json: is nested too deeply",
        ),
        (
            {"package.json": {}, "app.json": "{a:" * 10_000},
            r"app\.json: is nested too deeply",
        ),
        (
            {"package.json": {}, "app.json": "{a: .5, b:'" + "x" * 70_000 + "'}"},
            "larger than 64 kB and is not JSON",
        ),
    ],
)
def test_a_bad_project_is_one_clear_error(
    files: dict[str, object], problem: str, tmp_path: Path
) -> None:
    put(tmp_path, files)
    with pytest.raises(ConfigError, match=problem) as caught:
        load_project(tmp_path)
    assert "hunter2" not in str(caught.value)


def test_a_bad_file_is_one_error_with_the_position(tmp_path: Path) -> None:
    put(tmp_path, project_files({}))
    (tmp_path / "app.json").write_bytes(b" " * 50_000_000)
    with pytest.raises(ProjectError, match=r"app\.json: is larger than 1 MB"):
        load_project(tmp_path)
    (tmp_path / "app.json").unlink()
    (tmp_path / "app.json").mkdir()
    with pytest.raises(
        ProjectError, match=r"app\.json: is a directory, must be a file"
    ):
        load_project(tmp_path)
    with pytest.raises(ProjectError, match="nowhere: is not a directory"):
        load_project(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="must be 'auto' or 'never'"):
        load_project(tmp_path, dynamic="always")  # type: ignore[arg-type]


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    put(tmp_path, project_files({}))
    (tmp_path / "app.json").write_bytes(
        b'\xef\xbb\xbf{\r\n"vendor": {\r\n"name": "\xc3\xa4"}}\r\n'
    )
    project = load_project(tmp_path)
    assert (project.config["name"], project.config["slug"]) == ("ä", "a")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("My App", "my-app"),
        ("Zoë & Bob's  App!", "zoe-and-bob's-app!"),
        ("a--b_c", "a-b_c"),
        ("50 % off", "50-percent-off"),
        ("Café \u2013 Ann\u2019s", "cafe-ann's"),
        ("Привет мир", None),
        ("-a b-", "a-b"),
    ],
)
def test_a_slug_is_made_from_the_name(
    name: str, slug: str | None, tmp_path: Path
) -> None:
    assert (
        load_project(put(tmp_path, project_files({"name": name}))).config.get("slug")
        == slug
    )


def test_a_configuration_never_reaches_a_repr(tmp_path: Path) -> None:
    project = load_project(
        put(tmp_path, project_files({"extra": {"apiSecret": "hunter2"}}))
    )
    assert "hunter2" not in repr(project)
    assert json.dumps(project.to_dict())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A=" + "${A:-" * 100_000, "has unclosed references"),
        ("A=" + "}" * 100 + "${A:-" * 100 + "}", "has unclosed references"),
    ],
)
def test_references_that_would_take_forever_are_refused(
    text: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_project(put(tmp_path, project_files({}, **{".env": text})))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/a.ts", "process.env.A; " + "/[" * 40_000),
        ("a.scss", "\n" * 500_000 + " " * 500_000),
        (
            "app.json",
            "{" + ",".join(f'"key{one % 6_000}": 1' for one in range(12_000)) + "}",
        ),
    ],
    ids=["expressions", "blanks", "duplicates"],
)
@pytest.mark.timeout(60)
def test_hostile_files_are_checked_in_bounded_time(
    name: str, text: str, tmp_path: Path
) -> None:
    project = load_project(
        put(tmp_path, project_files({}, **{"app/index.tsx": "", name: text}))
    )
    findings = {finding.id: finding for finding in check(project)}

    is_unparsed = "to parse" in findings["source-unreadable"].rule
    assert is_unparsed is (text.endswith("/["))
