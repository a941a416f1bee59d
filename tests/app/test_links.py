"""Links, and the modules that let type checkers refuse wrong ones."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device import ConfigError
from pytest_device.app import Links, load_project
from pytest_device.app.link import check_url, unmatched
from pytest_device.app.routes.declarations import python_module
from tests.app.rows import project_files, put

ROUTES: Final = {
    f"app/{name}.tsx": ""
    for name in ("index", "about", "notes/[id]", "docs/[...rest]", "p/[user-id]")
}


def _links(root: Path, config: dict[str, Any] | None = None, **options: Any) -> Links:
    return Links(
        load_project(
            put(root, project_files(config or {"scheme": ["one", "two"]}, **ROUTES))
        ),
        **options,
    )


def test_a_link_is_the_scheme_with_the_path(tmp_path: Path) -> None:
    link = _links(tmp_path)
    assert link("/notes/[id]", id="7") == "one://notes/7"
    assert (
        link("/notes/[id]", {"id": 7}, scheme="two", query={"a": "b c"})
        == "two://notes/7?a=b%20c"
    )
    assert link("/docs/[...rest]", rest=["a", "b"]) == "one://docs/a/b"
    assert link("/p/[user-id]", {"user-id": "x"}) == "one://p/x"
    assert [link("/"), link("/", query={"a": 1}), link("/#f")] == [
        "one:///",
        "one:///?a=1",
        "one:///#f",
    ]
    assert link.project.routes.match(link("/notes/[id]", id="a/b")).params == {  # type: ignore[union-attr]
        "id": "a/b"
    }


def test_a_platform_has_its_own_schemes(tmp_path: Path) -> None:
    link = _links(tmp_path, {"scheme": "all", "ios": {"scheme": "apple"}})
    assert link("/", scheme="apple", platform="ios") == "apple:///"
    with pytest.raises(
        ConfigError,
        match="scheme 'apple' is not declared by the project \\(it has all\\)",
    ):
        link("/", scheme="apple", platform="android")


def test_a_link_without_a_route_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gets the parameter 'id' twice"):
        _links(tmp_path)("/notes/[id]", {"id": 1}, id=2)
    with pytest.raises(ConfigError, match="must begin with a lowercase letter"):
        _links(tmp_path)("/", scheme="One")
    with pytest.raises(ConfigError, match="declares no scheme"):
        _links(tmp_path, {"name": "x"})("/")


def test_the_development_client_has_its_own_links(tmp_path: Path) -> None:
    link = _links(
        tmp_path, development_client=True, development_address="192.168.1.5:8081"
    )
    assert link("/notes/[id]", id=7) == "vendorgo://192.168.1.5:8081/--/notes/7"
    with pytest.raises(
        ConfigError, match="a scheme has no effect in the development client"
    ):
        link("/", scheme="one")
    with pytest.raises(
        ConfigError, match="a scheme has no effect in the development client"
    ):
        _links(tmp_path, development_client=True)("/")


def test_only_schemes_of_apps_are_checked(tmp_path: Path) -> None:
    project = _links(tmp_path).project
    for url in ("https://x", "tel:1", "mailto:a@b.c", "sms:1", "one://x", "TWO://x"):
        check_url(url, project)
    check_url("vendorgo://host/--/x", project, development_client=True)
    with pytest.raises(ConfigError, match="'three' is not declared"):
        check_url("three://x", project)
    with pytest.raises(ConfigError, match="has no effect in the development client"):
        check_url("one://x", project, development_client=True)
    with pytest.raises(
        ConfigError, match=r"'one://\[x' is not a valid URL: Invalid IPv6"
    ):
        check_url("one://[x", project)


def test_the_identifier_of_a_build_is_a_scheme_of_its_platform(tmp_path: Path) -> None:
    config = {
        "scheme": "one",
        "ios": {"bundleIdentifier": "com.Acme.app"},
        "android": {"package": "com.acme.android"},
    }
    project = _links(tmp_path, config).project
    for url, platform in (
        ("com.acme.app://x", "ios"),
        ("com.acme.app://x", None),
        ("com.acme.android:/x", "android"),
    ):
        check_url(url, project, platform=platform)
    with pytest.raises(ConfigError, match=r"'com\.acme\.app' is not declared"):
        check_url("com.acme.app://x", project, platform="android")


@pytest.mark.parametrize(
    "url", ["vendor+my-notes://", "vendorgo+my-notes://vendor-development-client/?url=one%3A%2F%2Fabout", "my_app://about"]
)  # fmt: skip
def test_what_a_development_build_registers_opens_the_app(
    url: str, tmp_path: Path
) -> None:
    config = {"slug": "My_-Notes", "scheme": ["one", "my_app"]}
    link = _links(tmp_path, config)

    check_url(url, link.project, platform="ios")
    assert unmatched(url, link.project) is None
    assert unmatched(f"{url.partition(':')[0]}://nowhere", link.project)
    scheme = url.partition(":")[0]
    assert link("/about", scheme=scheme) == f"{scheme}://about"

    # The development client's own app is another one.
    with pytest.raises(ConfigError, match="has no effect in the development client"):
        check_url(url, link.project, development_client=True)


@pytest.mark.parametrize("scheme", ["vendor+other", "other+my-notes", "no_app"])
def test_the_scheme_of_another_apps_development_build_is_refused(
    scheme: str, tmp_path: Path
) -> None:
    project = _links(tmp_path, {"slug": "my-notes", "scheme": "one"}).project
    with pytest.raises(ConfigError, match=r"is not declared|must begin with"):
        check_url(f"{scheme}://about", project)


RIGHT: Final = """\
from app_routes import device_link
device_link("/")
device_link("/(group)/settings")
device_link("/notes/[id]", id="7")
device_link("/notes/[id]", {"id": 7}, query={"a": 1})
device_link("/docs/[...rest]", rest=["a", "b"])
device_link("/docs/[...rest]", rest=("a", 1))
device_link("/p/[user-id]", {"user-id": "x"})
device_link("/q/[2fa]", {"2fa": "x"})
device_link("/k/[class]", {"class": "x"})
device_link("/k/[route]/[params]", {"route": "x", "params": "y"})
device_link("/twice/[id]/[id]", id="x")
"""
WRONG: Final = (
    'device_link("/nope")',
    'device_link("/notes/7")',
    'device_link("/notes/[id]")',
    'device_link("/notes/[id]", id="1", other="2")',
    'device_link("/notes/[id]", {"ID": "1"})',
    'device_link("/docs/[...rest]", rest="a")',
    'device_link("/about", id="1")',
    'device_link("./about")',
)


def _module(root: Path) -> None:
    files = {
        f"app/{name}.tsx": ""
        for name in (
            "(group)/settings",
            "q/[2fa]",
            "k/[class]",
            "k/[route]/[params]",
            "twice/[id]/[id]",
        )
    }
    project = load_project(
        put(root, project_files({"scheme": "one"}, **ROUTES, **files))
    )
    put(root, {"tests/app_routes.py": python_module(project.routes.linkable, "..")})


def _run(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=root / "tests", capture_output=True, text=True, check=False
    )


def test_the_generated_module_writes_the_same_links(tmp_path: Path) -> None:
    _module(tmp_path)
    put(
        tmp_path,
        {
            "tests/right.py": RIGHT
            + 'print(device_link("/p/[user-id]", {"user-id": "x"}))'
        },
    )
    done = _run(tmp_path, "right.py")
    assert done.stdout == "one://p/x\n"


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_accept_right_links_and_refuse_wrong_ones(
    checker: str, tmp_path: Path
) -> None:
    pytest.importorskip(checker)
    _module(tmp_path)
    wrong = "".join(f"{line}\n" for line in WRONG)
    put(
        tmp_path / "tests",
        {"right.py": RIGHT, "wrong.py": f"from app_routes import device_link\n{wrong}"},
    )
    put(tmp_path / "tests", {"pyrightconfig.json": {"typeCheckingMode": "strict"}})
    strict = ["--strict"] if checker == "mypy" else ["--pythonpath", sys.executable]
    done = _run(tmp_path, "-m", checker, *strict, ".")
    refused = {
        line.split(":")[1]
        for line in done.stdout.splitlines()
        if "wrong.py:" in line and "error" in line
    }
    assert refused == {str(number) for number in range(2, len(WRONG) + 2)}, done.stdout
    assert "right.py:" not in done.stdout
    assert "app_routes.py:" not in done.stdout, done.stdout
