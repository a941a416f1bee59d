"""Notification lists of Android and iOS, used through Appium's client and a server with recorded replies."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_device.controllers.appium.drivers import driver
from pytest_device.errors import ConfigError, ControllerError
from pytest_device.notifications import AppiumPush, DevicePush
from pytest_device.notifications.shade import AndroidShade
from pytest_device.plugin.provider.push import push_to
from tests.controllers.appium_servers import received, session_on
from tests.controllers.recorded_devices import RecordedAndroid, RecordedIphone
from tests.fakes.http_server import ScriptedServer

NEWS = {"title": "News", "body": "it's from Ada", "data": {"url": "/notes/7"}}


@contextmanager
def pushing(
    controller: ScriptedServer, platform: str, *, own: bool = False
) -> Generator[DevicePush]:
    """Return the push client that a test in an Appium session gets."""
    session = session_on(controller, platform=platform)
    with driver(session, {}) as driven:
        delivery: Any = AppiumPush(driven, action="com.acme.PUSH") if own else None
        yield push_to(session, {"device_driver": driven}.__getitem__, delivery)


def test_notifications_of_an_android_app_are_listed_tapped_and_dismissed(
    controller: ScriptedServer,
) -> None:
    device = RecordedAndroid(controller, ["Newer", "News"])
    with pushing(controller, "android") as push:
        assert [one.title for one in push.shown()] == ["News", "Newer"]
        assert push.wait_shown().title == "Newer"
        news = push.wait_shown("News")
        assert (news.body, news.key) == ("from Ada", "0|News")

        push.dismiss(news)
        push.tap(action="Reply (1)", text="yes")
        push.tap()

        with pytest.raises(ControllerError, match=r"'0\|News' is no longer shown"):
            push.tap(news)
        with pytest.raises(TimeoutError, match=r"no notification, shown: \[\]"):
            push.wait_shown(timeout_seconds=0)
    assert device.does == [
        "dismiss News",
        "tap REPLY (1)",
        "type yes in field",
        "tap send",
        "tap Newer",
    ]
    assert not device.is_open


def test_a_message_to_an_android_app_is_a_broadcast_quoted_for_its_shell(
    controller: ScriptedServer,
) -> None:
    device = RecordedAndroid(controller, [])
    with pushing(controller, "android", own=True) as push:
        push.send(NEWS)
    assert device.scripts == [
        (
            "mobile: broadcast",
            {
                "action": "com.acme.PUSH",
                "package": "com.acme.app",
                "extras": [
                    ["s", "title", "'News'"],
                    ["s", "body", "'it'\\''s from Ada'"],
                    ["s", "data", "'" + json.dumps(NEWS["data"]) + "'"],
                ],
            },
        )
    ]


def test_what_the_shade_does_not_show_is_an_error_that_closes_it(
    controller: ScriptedServer,
) -> None:
    device = RecordedAndroid(controller, ["News"], is_stuck=True)
    with driver(session_on(controller, platform="android"), {}) as driven:
        shade = AndroidShade(driven, "com.acme.app", timeout_seconds=0)
        with pytest.raises(ControllerError, match="'Mute of News' is not in the notif"):
            shade.answer("0|News", "Mute", None)
        assert not device.is_open
        with pytest.raises(ControllerError, match="'News' is still shown"):
            shade.dismiss("0|News")
    assert not device.is_open


def test_notifications_of_an_iphone_are_listed_tapped_and_dismissed(
    controller: ScriptedServer,
) -> None:
    label = "Notes, now, News, it's from Ada"
    device = RecordedIphone(controller, ["Mail, now, Hello", label.replace("'", "")])
    with pushing(controller, "ios") as push:
        push.send({**NEWS, "body": "its from Ada"})
        news = push.wait_shown("News")
        assert (news.body, news.data) == ("its from Ada", {"url": "/notes/7"})
        assert push.shown()[-1].title == "Mail, now, Hello"
        assert not device.is_open

        with pytest.raises(
            ConfigError, match="can't be entered in a notification on iOS"
        ):
            push.tap(news, action="Reply", text="yes")
        push.tap(news, action="Reply")
        assert not device.is_open
        push.tap(news)
        push.dismiss()
    assert not device.rows
    assert device.does[-3:] == [
        "tap Reply",
        f"tap {news.key}",
        "dismiss Mail, now, Hello",
    ]
    assert received(controller, "/appium/settings")[-1] == {
        "settings": {"defaultActiveApplication": "auto"}
    }
    assert device.scripts[0][1]["payload"]["url"] == "/notes/7"


def test_only_the_local_device_tells_which_page_is_open(
    controller: ScriptedServer,
) -> None:
    RecordedIphone(controller, [])
    with (
        pushing(controller, "ios") as push,
        pytest.raises(ConfigError, match="only the local device reports which page"),
    ):
        push.wait_opened("/")
