"""The environment of programs, by pure functions; ``test_programs`` shows that a session's programs get it."""

import pytest

from pytest_device.programs import for_installers, passed_on
from pytest_device.service.runners.resources import for_sessions

USER = {
    "PATH": "/usr/bin",
    "ANDROID_HOME": "/sdk",
    "https_proxy": "http://127.0.0.1:3128",
    "LANG": "C.UTF-8",
    "HOME": "/home/someone",
    "DEVICE_TOKEN": "made-up-token",
    "GITHUB_TOKEN": "another-made-up-token",
    "NPM_TOKEN": "a-made-up-npm-token",
}


def test_programs_of_a_session_see_tools_and_network_and_no_token() -> None:
    names = {"PATH", "ANDROID_HOME", "https_proxy", "LANG"}
    seen = for_sessions(USER)

    assert {name: seen[name] for name in seen if name.upper() != "NO_PROXY"} == {
        name: USER[name] for name in names
    }


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_programs_of_a_session_find_each_other_without_a_proxy(name: str) -> None:
    seen = for_sessions(
        {"HTTP_PROXY": "http://proxy.example:3128", name: "builds.example"}
    )

    assert (
        seen["NO_PROXY"] == seen["no_proxy"] == "builds.example,127.0.0.1,localhost,::1"
    )


def test_the_service_and_its_installers_see_paths_and_settings_of_installers_and_no_other_token() -> (
    None
):
    names = {"PATH", "ANDROID_HOME", "https_proxy", "LANG", "HOME"}
    settings = {
        "PIP_INDEX_URL": "https://packages.example/simple",
        "npm_config_registry": "https://packages.example",
    }
    user = {**USER, **settings, "AWS_SECRET_ACCESS_KEY": "another"}

    assert passed_on(user) == {name: user[name] for name in names}
    assert for_installers(user) == passed_on(user) | settings
