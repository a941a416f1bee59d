"""Push messages reach each device through the commands of its adapter."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_device import ConfigError
from pytest_device.notifications import (
    AgentDevicePush,
    AppiumPush,
    DevicePush,
    LocalPush,
    PushDelivery,
    PushDevice,
    PushMessage,
)

pytestmark = pytest.mark.every_python

ANDROID = PushDevice("android", "the android device", "com.acme.app")
IPHONE = PushDevice("ios", "the iPhone", "com.acme.app")
NEWS = PushMessage(
    title="News", body="it's today's", data={"url": "/notes/7"}, sound=True, category_identifier="message",
    interruption_level="timeSensitive",
)  # fmt: skip
APNS = {
    "aps": {
        "alert": {"title": "News", "body": "it's today's"},
        "sound": "default",
        "category": "message",
        "interruption-level": "time-sensitive",
    },
    "url": "/notes/7",
}


class RecordingDriver:
    """An Appium driver and an agent-device client that record their commands."""

    def __init__(self, *lists: Mapping[str, Any]) -> None:
        self.sent = list[tuple[Any, ...]]()
        self._lists = list(lists)

    def execute_script(self, script: str, *arguments: Any) -> Any:
        self.sent.append((script, *arguments))
        if arguments[0].get("do") == "list":
            return self._lists.pop(0) if len(self._lists) > 1 else self._lists[0]
        return None

    def command(self, command: str, *positionals: str) -> Mapping[str, Any]:
        self.sent.append((command, *positionals))
        return {}


def shown(key: str, title: str, **options: Any) -> dict[str, Any]:
    return {
        "key": key,
        "title": title,
        "options": options,
        "scope": "http://127.0.0.1/",
    }


def at(address: str, *notifications: Mapping[str, Any]) -> dict[str, Any]:
    return {"shown": list(notifications), "address": address}


def test_agent_device_pushes_apples_payload_to_ios() -> None:
    client = RecordingDriver()
    AgentDevicePush(client).deliver(NEWS, IPHONE)

    ((command, app, payload),) = client.sent
    assert (command, app) == ("push", "com.acme.app")
    assert json.loads(payload) == APNS


def test_agent_device_pushes_a_broadcast_to_android() -> None:
    client = RecordingDriver()
    AgentDevicePush(client, action="com.acme.PUSH").deliver(NEWS, ANDROID)

    payload = json.loads(client.sent[0][2])
    assert payload["action"] == "com.acme.PUSH"
    assert (payload["extras"]["title"], json.loads(payload["extras"]["data"])) == (
        "News",
        {"url": "/notes/7"},
    )
    assert "receiver" not in payload


def test_appium_pushes_to_ios() -> None:
    driver = RecordingDriver()
    AppiumPush(driver).deliver(NEWS, IPHONE)

    assert driver.sent == [
        ("mobile: pushNotification", {"bundleId": "com.acme.app", "payload": APNS})
    ]


def test_a_broadcast_quotes_what_the_shell_of_the_device_reads() -> None:
    driver = RecordingDriver()
    delivery = AppiumPush(driver, "com.acme.PUSH")
    delivery.deliver(PushMessage.read({"my; field": "it's"}), ANDROID)

    ((_script, broadcast),) = driver.sent
    assert broadcast["package"] == "com.acme.app"
    assert ["s", "'my; field'", "'it'\\''s'"] in broadcast["extras"]
    with pytest.raises(ConfigError, match="the message has a zero byte"):
        delivery.deliver(PushMessage(title="a\0b"), ANDROID)


@pytest.mark.parametrize(
    ("delivery", "device", "reason"),
    [
        (
            AppiumPush(RecordingDriver()),
            ANDROID,
            "the android device: Android apps get broadcasts under an action of their own",
        ),
        (
            AppiumPush(RecordingDriver()),
            replace(IPHONE, application_id=""),
            "the iPhone: .* pass application_id",
        ),
        (
            AgentDevicePush(RecordingDriver()),
            replace(ANDROID, application_id=""),
            "pass application_id",
        ),
        (
            None,
            IPHONE,
            "the iPhone: it cannot receive push messages: use device_push_delivery",
        ),
    ],
)
def test_an_unsupported_device_is_reported_before_anything_is_sent(
    delivery: PushDelivery | None, device: PushDevice, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        DevicePush(delivery, device).send(NEWS)
    assert getattr(delivery, "driver", RecordingDriver()).sent == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"data": {"sync": 1}}, "_contentAvailable"),
        (
            {"title": "News", "data": {"aps": {"alert": "Other"}}},
            "must not have the key 'aps'",
        ),
    ],
)
def test_a_message_that_ios_would_not_deliver_is_not_sent(
    message: dict[str, Any], reason: str
) -> None:
    driver = RecordingDriver()
    with pytest.raises(ConfigError, match=reason):
        DevicePush(AppiumPush(driver), IPHONE).send(message)
    assert driver.sent == []


def test_a_message_without_a_sound_says_so_on_android_and_names_none_on_ios() -> None:
    driver, client = RecordingDriver(), RecordingDriver()
    silent = NEWS.model_copy(update={"sound": False})

    AppiumPush(driver).deliver(silent, IPHONE)
    AgentDevicePush(client, action="a").deliver(silent, ANDROID)

    assert "sound" not in driver.sent[0][1]["payload"]["aps"]
    assert json.loads(client.sent[0][2])["extras"]["sound"] is False


def test_the_suites_function_gets_message_and_device() -> None:
    got = list[Any]()
    push = DevicePush(lambda *given: got.append(given), IPHONE)

    sent = push.send({"title": "News"}, application_id="com.other")

    assert got == [(sent, replace(IPHONE, application_id="com.other"))]
    with pytest.raises(
        ConfigError,
        match="the iPhone: reading notifications requires an Appium session",
    ):
        push.wait_shown()


def test_the_local_device_gets_the_message_in_the_documented_form() -> None:
    driver = RecordingDriver()
    DevicePush(LocalPush(driver), ANDROID).send(
        {"title": "News", "categoryIdentifier": "message"}
    )

    script, given = driver.sent[0]
    assert (script, given["do"], given["appId"]) == (
        "mobile: localNotifications",
        "push",
        "com.acme.app",
    )
    assert json.loads(given["data"]) == {
        "title": "News",
        "categoryIdentifier": "message",
        "data": {},
    }


def test_the_newest_notification_with_a_title_is_awaited() -> None:
    found = [
        shown("1", "News", body="old"),
        shown("2", "News", body="new", actions=[{"action": "reply"}]),
    ]
    driver = RecordingDriver(
        at("http://127.0.0.1/"), at("http://127.0.0.1/", *found, shown("3", "Other"))
    )

    one = DevicePush(LocalPush(driver), ANDROID).wait_shown("News")

    assert (one.key, one.body, one.actions) == ("2", "new", ("reply",))


def test_a_missing_notification_is_reported_with_those_shown() -> None:
    push = DevicePush(
        LocalPush(RecordingDriver(at("http://127.0.0.1/", shown("1", "Other")))),
        ANDROID,
    )
    with pytest.raises(
        TimeoutError,
        match=r"timed out after 0 s: no notification 'News', shown: \['Other'\]",
    ):
        push.wait_shown("News", timeout_seconds=0)


def test_a_tap_or_dismissal_applies_to_the_given_notification() -> None:
    driver = RecordingDriver(at("http://127.0.0.1/", shown("1", "News")))
    push = DevicePush(LocalPush(driver), ANDROID)

    push.tap(action="reply", text="yes")
    push.dismiss(push.wait_shown())

    done = [given for _, given in driver.sent if given["do"] != "list"]
    assert done == [
        {"do": "answer", "key": "1", "action": "reply", "text": "yes"},
        {"do": "dismiss", "key": "1"},
    ]


def test_an_opened_link_is_awaited_by_its_path() -> None:
    driver = RecordingDriver(
        at("http://127.0.0.1:1/"), at("http://127.0.0.1:1/notes/7?from=push")
    )
    push = DevicePush(LocalPush(driver), ANDROID)

    assert (
        push.wait_opened("/notes/7?from=push") == "http://127.0.0.1:1/notes/7?from=push"
    )
    with pytest.raises(
        TimeoutError,
        match=r"/notes/8 was not opened, current page: http://127.0.0.1:1/notes/7",
    ):
        push.wait_opened("/notes/8", timeout_seconds=0)
