from pytest_device.service.runners.environment import for_installers, for_sessions

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
    assert for_sessions(USER) == {name: USER[name] for name in names}


def test_installers_see_all_but_the_settings_of_this_package() -> None:
    assert for_installers(USER) == {name: value for name, value in USER.items() if name != "DEVICE_TOKEN"}
