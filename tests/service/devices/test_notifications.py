"""The notification center of a browser as a device: real web pushes into a service worker."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device import ControllerError
from tests.service.devices.phone import BootedDevice

APP: Final = Path(__file__).parent / "push"
SAID: Final = "document.getElementById('said').textContent"
ACTIONS: Final = [
    {"action": "reply", "type": "text", "title": "Reply"},
    {"action": "later", "title": "Later"},
]


@pytest.fixture
def app(phone: BootedDevice) -> str:
    """The app, allowed to show notifications."""
    found = phone.start(path=APP)
    assert (
        phone.says("isReady.then(() => Notification.requestPermission())") == "granted"
    )
    return found


def push(phone: BootedDevice, title: str, **options: Any) -> dict[str, Any]:
    """Push a message, and return the notification that it shows."""
    phone.do(phone.device.push(json.dumps({"title": title, **options})))
    assert phone.says_in_time(
        "isReady.then(one => one.getNotifications()).then(all => all.at(-1)?.title)",
        title,
    )
    return dict(phone.do(phone.device.notifications())[-1])


@pytest.mark.usefixtures("app")
def test_a_push_is_shown_by_the_apps_worker(phone: BootedDevice) -> None:
    shown = push(phone, "News", body="of today", data={"n": 7})

    assert (shown["title"], shown["options"]) == (
        "News",
        {"body": "of today", "data": {"n": 7}},
    )
    seen = "one => [one instanceof Notification, one.body, one.data.n, one.tag]"
    listed = f"isReady.then(worker => worker.getNotifications()).then(all => all.map({seen}))"
    assert phone.says(listed) == [[True, "of today", 7, ""]]


@pytest.mark.usefixtures("app")
def test_a_tap_is_an_event_in_the_service_worker(phone: BootedDevice) -> None:
    phone.do(phone.device.answer_notification(push(phone, "News")["key"]))

    assert phone.says_in_time(SAID, '[true,"",null]')
    assert phone.do(phone.device.notifications()) == []


@pytest.mark.usefixtures("app")
def test_an_action_takes_its_text(phone: BootedDevice) -> None:
    phone.do(
        phone.device.answer_notification(
            push(phone, "News", actions=ACTIONS)["key"], "reply", "yes"
        )
    )

    assert phone.says_in_time(SAID, '[true,"reply","yes"]')


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (("other", None), "no action other, available: reply, later"),
        (("reply", None), "the action reply needs text"),
        (("later", "yes"), "the action later takes no text"),
        ((None, "yes"), "a tap takes no text"),
    ],
)
def test_an_unknown_action_is_refused(
    phone: BootedDevice, answer: tuple[Any, Any], problem: str
) -> None:
    key = push(phone, "News", actions=ACTIONS)["key"]
    with pytest.raises(ControllerError, match=problem):
        phone.do(phone.device.answer_notification(key, *answer))
    assert [one["key"] for one in phone.do(phone.device.notifications())] == [key]


def test_a_tap_opens_the_app_that_was_closed(phone: BootedDevice, app: str) -> None:
    key = push(phone, "News", data={"url": "/notes/7"})["key"]
    phone.do(phone.device.terminate(app))

    phone.do(phone.device.answer_notification(key))

    assert phone.do(phone.device.address()).endswith("/notes/7")


def test_a_closed_app_receives_pushes(phone: BootedDevice, app: str) -> None:
    phone.do(phone.device.terminate(app))
    phone.do(phone.device.push(json.dumps({"title": "News"}), app))
    phone.do(phone.device.launch(app))

    assert phone.says_in_time(
        "isReady.then(one => one.getNotifications()).then(all => all.length)", 1
    )


@pytest.mark.usefixtures("app")
def test_a_dismissed_notification_is_closed_in_the_worker(phone: BootedDevice) -> None:
    key = push(phone, "News")["key"]
    phone.do(phone.device.dismiss_notification(key))

    assert phone.says_in_time(SAID, "closed News")
    with pytest.raises(
        ControllerError, match=f"no notification {key} in the list, available: none"
    ):
        phone.do(phone.device.dismiss_notification(key))


@pytest.mark.usefixtures("app")
def test_a_page_shows_and_closes_notifications_too(phone: BootedDevice) -> None:
    phone.says("isReady.then(one => one.showNotification('mine', {tag: 'a'}))")
    phone.says("isReady.then(one => one.showNotification('again', {tag: 'a'}))")
    assert [one["title"] for one in phone.do(phone.device.notifications())] == ["again"]

    phone.says(
        "isReady.then(one => one.getNotifications({tag: 'a'})).then(all => all.forEach(one => one.close()))"
    )
    assert phone.says_in_time(
        "isReady.then(one => one.getNotifications()).then(all => all.length)", 0
    )


def test_clearing_an_apps_data_removes_its_notifications_and_permission(
    phone: BootedDevice, app: str
) -> None:
    push(phone, "News")
    phone.do(phone.device.terminate(app))
    phone.do(phone.device.launch(app))
    assert phone.says_in_time("Notification.permission", "granted")
    phone.do(phone.device.clear(app))
    assert phone.do(phone.device.notifications()) == []

    phone.do(phone.device.launch(app))
    assert phone.says_in_time("Notification.permission", "default")


@pytest.mark.usefixtures("app")
def test_an_exception_in_the_service_worker_is_the_apps_fault(
    phone: BootedDevice,
) -> None:
    phone.do(
        phone.device.answer_notification(
            push(phone, "News", data={"fails": True})["key"]
        )
    )

    assert phone.do(phone.device.notifications()) == []


@pytest.mark.usefixtures("app")
def test_a_hundred_notifications_are_kept(phone: BootedDevice) -> None:
    many = "isReady.then(async one => { for (let n = 0; n < 102; n += 1) await one.showNotification(`${n}`) })"
    phone.says(many)

    titles = [one["title"] for one in phone.do(phone.device.notifications())]
    assert (len(titles), titles[0], titles[-1]) == (100, "2", "101")


@pytest.mark.usefixtures("app")
def test_a_message_above_the_limit_is_refused(phone: BootedDevice) -> None:
    with pytest.raises(ControllerError, match="at most 4096 bytes"):
        phone.do(phone.device.push("x" * 4097))


def test_an_app_without_a_service_worker_is_reported(phone: BootedDevice) -> None:
    phone.start()
    with pytest.raises(ControllerError, match="has no active service worker"):
        phone.do(phone.device.push("{}"))


def test_an_app_that_is_not_installed_is_reported(phone: BootedDevice) -> None:
    with pytest.raises(ControllerError, match="is not installed"):
        phone.do(phone.device.push("{}", "com.other"))
