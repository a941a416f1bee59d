"""The center shows what a device would show, by the clock of the test."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from pytest_device import ConfigError
from pytest_device.notifications import (
    DEFAULT_ACTION_IDENTIFIER,
    ActionOptions,
    IosAuthorizationStatus,
    Notification,
    NotificationAction,
    NotificationBehavior,
    NotificationCenter,
    NotificationChannelInput,
    NotificationError,
    NotificationHandler,
    NotificationRequestInput,
    PushMessage,
    TextInput,
    TriggerError,
)
from pytest_device.notifications.endpoint import PushEndpoint
from pytest_device.notifications.triggers import Platform
from tests.fakes.clock import FakeCalendar

pytestmark = pytest.mark.every_python

WARSAW = ZoneInfo("Europe/Warsaw")
SHOW = NotificationBehavior(
    should_play_sound=False,
    should_set_badge=False,
    should_show_banner=True,
    should_show_list=True,
)
NEWS = {"title": "News", "body": "of today"}
HOURLY = {"type": "timeInterval", "seconds": 3600, "repeats": True}
REPLY = NotificationAction("reply", "Reply", text_input=TextInput("your answer"))
LATER = NotificationAction(
    "later", "Later", ActionOptions(opens_app_to_foreground=False)
)


@pytest.fixture
def clock() -> FakeCalendar:
    return FakeCalendar(datetime(2026, 3, 10, 8, tzinfo=WARSAW))


@pytest.fixture(params=["android", "ios"])
def platform(request: pytest.FixtureRequest) -> Platform:
    found: Platform = request.param
    return found


@pytest.fixture
def center(clock: FakeCalendar, platform: Platform) -> NotificationCenter:
    """An app in the background whose user has allowed notifications."""
    return allowed(clock, platform)


def allowed(clock: FakeCalendar, platform: Platform) -> NotificationCenter:
    made = NotificationCenter(clock=clock, platform=platform, handler_timeout_seconds=3)
    made.channels.set_channel(
        "news", NotificationChannelInput(name="News", importance=3)
    )
    assert made.request_permissions().allows
    made.app_state = "background"
    return made


def titles(center: NotificationCenter) -> list[str | None]:
    return [one.notification.request.content.title for one in center.shown]


def test_a_request_without_a_trigger_is_shown_at_once(
    center: NotificationCenter, clock: FakeCalendar
) -> None:
    identifier = center.schedule({"content": NEWS})

    (shown,) = center.presented()
    assert shown.identifier == identifier
    assert shown.notification.date == clock.now.timestamp() * 1000
    assert center.scheduled() == ()


def test_a_scheduled_notification_fires_when_it_is_due_and_again_if_it_repeats(
    center: NotificationCenter, clock: FakeCalendar
) -> None:
    identifier = center.schedule({"content": NEWS, "trigger": HOURLY})
    assert center.fire_due() == []

    clock.advance(hours=3)

    fired = center.fire_due()
    begin = datetime(2026, 3, 10, 8, tzinfo=WARSAW).timestamp()
    assert [(one.date / 1000 - begin) / 3600 for one in fired] == [1, 2, 3]
    assert [one.identifier for one in center.scheduled()] == [identifier]


def test_notifications_fire_in_the_order_of_their_dates(
    center: NotificationCenter, clock: FakeCalendar
) -> None:
    center.schedule(
        {
            "content": {"title": "daily"},
            "trigger": {"type": "daily", "hour": 9, "minute": 0},
        }
    )
    center.schedule(
        {
            "content": {"title": "soon"},
            "trigger": {"type": "timeInterval", "seconds": 60},
        }
    )

    clock.advance(hours=30)
    center.fire_due()

    assert titles(center) == ["soon", "daily", "daily"]
    assert len(center.scheduled()) == 1


def test_a_cancelled_notification_does_not_fire(
    center: NotificationCenter, clock: FakeCalendar
) -> None:
    first = center.schedule({"content": NEWS, "trigger": HOURLY})
    center.schedule({"content": NEWS, "trigger": HOURLY, "identifier": "second"})
    center.cancel(first)
    assert [one.identifier for one in center.scheduled()] == ["second"]
    center.cancel("second")

    clock.advance(days=1)

    assert center.fire_due() == []


def test_the_same_identifier_replaces_a_request(center: NotificationCenter) -> None:
    for title in ("old", "new"):
        center.schedule(NotificationRequestInput({"title": title}, HOURLY, "one"))

    assert [one.content.title for one in center.scheduled()] == ["new"]


def test_too_many_notifications_at_once_are_refused(
    center: NotificationCenter, clock: FakeCalendar
) -> None:
    every_minute = {"type": "timeInterval", "seconds": 60, "repeats": True}
    center.schedule({"content": NEWS, "trigger": every_minute})
    clock.advance(days=100)

    with pytest.raises(ConfigError, match="advance the clock in smaller steps"):
        center.fire_due()


def test_the_handler_of_an_app_in_the_foreground_decides(
    center: NotificationCenter,
) -> None:
    center.app_state = "foreground"
    center.schedule({"content": {"title": "without"}})
    succeeded = list[str]()
    center.set_handler(
        NotificationHandler(lambda _: SHOW, handle_success=succeeded.append)
    )
    identifier = center.schedule({"content": {"title": "with"}})
    center.set_handler(
        NotificationHandler(
            lambda _: replace(SHOW, should_show_banner=False, should_show_list=False)
        )
    )
    center.schedule({"content": {"title": "hidden"}})
    center.set_handler(
        NotificationHandler(lambda _: replace(SHOW, should_show_list=False))
    )
    center.schedule({"content": {"title": "banner"}})

    assert titles(center) == ["with", "banner"]
    assert [one.identifier for one in center.presented()] == [identifier]
    assert succeeded == [identifier]
    assert [one.reason for one in center.dropped] == [
        "the app is in the foreground and has no handler",
        "the handler shows neither a banner nor an entry in the list",
    ]


def handlers(clock: FakeCalendar) -> dict[str, Callable[[Notification], Any]]:
    def slow(_: Notification) -> NotificationBehavior:
        clock.advance(seconds=3.5)
        return SHOW

    def failing(_: Notification) -> NotificationBehavior:
        raise OSError("no storage")

    return {
        "took 3.5 s (maximum 3 s)": slow,
        "no storage": failing,
        "NotificationBehavior": lambda _: None,
    }


@pytest.mark.parametrize(
    "problem", ["took 3.5 s (maximum 3 s)", "no storage", "NotificationBehavior"]
)
def test_a_failing_or_late_handler_is_notified_and_shows_nothing(
    center: NotificationCenter, clock: FakeCalendar, problem: str
) -> None:
    errors = list[tuple[str, Exception]]()
    center.app_state = "foreground"
    handle = handlers(clock)[problem]
    center.set_handler(
        NotificationHandler(
            handle, handle_error=lambda name, error: errors.append((name, error))
        )
    )

    identifier = center.schedule({"content": NEWS})

    ((named, error),) = errors
    assert named == identifier
    assert problem in str(error)
    assert center.shown == ()
    center.set_handler(NotificationHandler(handle))
    with pytest.raises((OSError, NotificationError), match=re.escape(problem)):
        center.schedule({"content": NEWS})


def test_the_alert_field_of_a_behavior_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="should_show_banner"):
        replace(SHOW, should_show_alert=True)


def test_a_listener_is_called_until_it_is_removed_and_not_while_the_app_is_closed(
    center: NotificationCenter,
) -> None:
    received = list[str | None]()
    subscription = center.add_received_listener(
        lambda one: received.append(one.request.content.title)
    )
    for state in ("foreground", "background", "closed"):
        center.app_state = state
        center.schedule({"content": {"title": state}})
    subscription.remove()
    subscription.remove()
    center.app_state = "background"
    center.schedule({"content": NEWS})

    assert received == ["foreground", "background"]


def test_a_tap_opens_the_app_and_is_the_last_response(
    center: NotificationCenter,
) -> None:
    responses = list[Any]()
    center.add_response_received_listener(responses.append)
    identifier = center.schedule(
        {"content": {**NEWS, "data": {"url": "app://notes/7"}}}
    )

    response = center.tap(identifier)

    assert responses == [response]
    assert response.action_identifier == DEFAULT_ACTION_IDENTIFIER
    assert response.notification.request.content.data["url"] == "app://notes/7"
    assert (center.last_response, center.app_state, center.presented()) == (
        response,
        "foreground",
        (),
    )
    with pytest.raises(ConfigError, match="no notification"):
        center.tap(identifier)

    # A closed app has no listeners yet.
    center.app_state = "background"
    identifier = center.schedule({"content": NEWS})
    center.app_state = "closed"
    assert center.tap(identifier) is center.last_response
    assert (responses, center.app_state) == ([response], "foreground")


def test_an_action_takes_text_and_opens_the_app_as_configured(
    center: NotificationCenter,
) -> None:
    center.set_category("message", [REPLY, LATER])
    content = {**NEWS, "categoryIdentifier": "message"}

    later = center.tap(center.schedule({"content": content}), action="later")
    assert (later.action_identifier, later.user_text, center.app_state) == (
        "later",
        None,
        "background",
    )
    reply = center.tap(
        center.schedule({"content": content}), action="reply", text="yes"
    )
    assert (reply.action_identifier, reply.user_text, center.app_state) == (
        "reply",
        "yes",
        "foreground",
    )


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"action": "other"}, "no action 'other'"),
        ({"action": "reply"}, "needs text"),
        ({"action": "later", "text": "yes"}, "takes no text"),
        ({"text": "yes"}, "a tap takes no text"),
    ],
)
def test_an_unknown_action_of_a_notification_is_refused(
    center: NotificationCenter, answer: dict[str, str], problem: str
) -> None:
    center.set_category("message", [REPLY, LATER])
    identifier = center.schedule({"content": {**NEWS, "categoryIdentifier": "message"}})
    with pytest.raises(ConfigError, match=problem):
        center.tap(identifier, **answer)


def test_a_category_must_be_registered_before_use(center: NotificationCenter) -> None:
    content = {**NEWS, "categoryIdentifier": "message"}
    with pytest.raises(ConfigError, match="call set_category first"):
        center.schedule({"content": content})
    center.push(content)
    assert center.presented()[0].actions == ()


def test_dismissed_notifications_leave_the_list(center: NotificationCenter) -> None:
    first, second = (center.schedule({"content": NEWS}) for _ in range(2))
    center.dismiss(first)
    assert [one.identifier for one in center.presented()] == [second]
    assert len(center.shown) == 2


def test_nothing_is_shown_until_the_user_allows_it(
    clock: FakeCalendar, platform: Platform
) -> None:
    center = NotificationCenter(
        clock=clock, platform=platform, handler_timeout_seconds=3
    )
    center.app_state = "background"
    center.schedule({"content": NEWS})

    assert center.get_permissions().status == "undetermined"
    assert [one.reason for one in center.dropped] == [
        "the user has not allowed notifications"
    ]


def test_android_13_asks_the_user_once_a_channel_exists(clock: FakeCalendar) -> None:
    center = NotificationCenter(
        clock=clock, platform="android", handler_timeout_seconds=3
    )
    assert center.request_permissions().status == "undetermined"
    with pytest.raises(
        NotificationError, match="set one before requesting a push token"
    ) as raised:
        center.get_device_push_token()
    assert raised.value.code == "ERR_NOTIFICATIONS_CHANNEL_REQUIRED"

    center.channels.set_channel(
        "news", NotificationChannelInput(name="News", importance=3)
    )
    assert center.request_permissions().status == "granted"
    assert center.get_device_push_token().type == "android"


def test_an_older_android_allows_notifications_without_asking(
    clock: FakeCalendar,
) -> None:
    center = NotificationCenter(
        clock=clock, platform="android", handler_timeout_seconds=3, android_version=12
    )

    assert center.get_permissions().allows
    assert center.get_device_push_token().data
    assert center.permissions.prompts == 0


@pytest.mark.parametrize(
    ("status", "allows"),
    [
        ("NOT_DETERMINED", False),
        ("DENIED", False),
        ("AUTHORIZED", True),
        ("PROVISIONAL", True),
        ("EPHEMERAL", True),
    ],
)
def test_on_ios_the_ios_status_decides(
    clock: FakeCalendar, status: str, *, allows: bool
) -> None:
    center = NotificationCenter(clock=clock, platform="ios", handler_timeout_seconds=3)
    center.permissions.answer = lambda _request: IosAuthorizationStatus(status)

    found = center.request_permissions()

    assert found.ios
    assert (found.ios.status, found.allows) == (status, allows)


def test_a_status_can_be_given_by_name(center: NotificationCenter) -> None:
    center.permissions.change("PROVISIONAL")  # type: ignore[arg-type]
    assert (center.get_permissions().status, center.get_permissions().allows) == (
        "granted",
        True,
    )

    with pytest.raises(ConfigError, match="'ALLOWED' must be undetermined, granted"):
        center.permissions.change("ALLOWED")  # type: ignore[arg-type]

    center.permissions.change("denied")
    assert center.request_permissions().status == "denied"
    assert center.permissions.prompts == 1


def test_a_missing_channel_shows_nothing_on_android(clock: FakeCalendar) -> None:
    center = allowed(clock, "android")
    for channel in ("news", "other"):
        center.schedule({"content": NEWS, "trigger": {"channelId": channel}})

    assert len(center.shown) == 1
    assert [one.reason for one in center.dropped] == [
        "the channel 'other' does not exist"
    ]


def test_channels_and_groups_work_as_on_android(clock: FakeCalendar) -> None:
    channels = allowed(clock, "android").channels
    with pytest.raises(ConfigError, match="channel group 'all' does not exist"):
        channels.set_channel(
            "a", NotificationChannelInput(name="A", importance=3, group_id="all")
        )
    channels.set_group("all", name="All")
    made = channels.set_channel(
        "a",
        NotificationChannelInput(
            name="A", importance=3, group_id="all", sound="bell.wav"
        ),
    )

    assert made
    assert (made.id, made.sound, made.name) == ("a", "custom", "A")
    assert [one.id for one in channels.channels()] == ["news", "a"]
    assert [(one.id, one.channels) for one in channels.groups()] == [("all", (made,))]
    channels.delete_group("all")
    assert (channels.groups(), channels.channel("a")) == ((), None)
    channels.delete_channel("news")
    assert channels.channels() == ()


def test_channels_and_groups_do_nothing_on_ios(clock: FakeCalendar) -> None:
    channels = allowed(clock, "ios").channels

    assert channels.set_group("all", name="All") is None
    assert (
        channels.set_channel(
            "a", NotificationChannelInput(name="A", importance=3, group_id="all")
        )
        is None
    )
    assert (
        channels.channels(),
        channels.groups(),
        channels.channel("a"),
        channels.group("all"),
    ) == (
        (),
        (),
        None,
        None,
    )
    channels.delete_channel("a")
    channels.delete_group("all")


def test_tokens_are_exchanged_and_rotated(
    center: NotificationCenter, platform: Platform
) -> None:
    rolled = list[Any]()
    center.add_push_token_listener(rolled.append)
    options = {"application_id": "com.acme.app", "device_id": "d", "project_id": "p"}
    with PushEndpoint() as endpoint, httpx.Client() as client:
        first = center.get_push_token(client, base_url=endpoint.base_url, **options)
        new = center.roll_device_token("another")
        second = center.get_push_token(client, base_url=endpoint.base_url, **options)

    assert first != second
    assert rolled == [new]
    assert new == center.get_device_push_token()
    assert new.type == platform
    assert [one.body["deviceToken"] for one in endpoint.requests] == [
        "device-token",
        "another",
    ]


def test_a_data_only_message_runs_the_background_task(
    center: NotificationCenter,
) -> None:
    ran, received = list[dict[str, Any]](), list[Notification]()
    center.register_task(lambda data: ran.append(dict(data)))
    center.add_received_listener(received.append)
    message = PushMessage(data={"sync": "notes"}, content_available=True)

    for state in ("background", "closed", "foreground"):
        center.app_state = state
        center.push(message)

    assert ran == [{"sync": "notes"}] * 2
    assert len(received) == 1
    assert center.history == []


def test_ios_requires_a_flag_for_data_only_messages(clock: FakeCalendar) -> None:
    message = {"data": {"sync": "notes"}}
    with pytest.raises(ConfigError, match="_contentAvailable"):
        allowed(clock, "ios").push(message)
    allowed(clock, "ios").push({**message, "_contentAvailable": True})
    allowed(clock, "android").push(message)


def test_a_pushed_message_is_shown_with_its_remote_message(
    center: NotificationCenter,
) -> None:
    notification = center.push(
        {**NEWS, "data": {"n": 7, "of": {"a": None}}, "channelId": "news", "another": 1}
    )

    content = notification.request.content
    assert (content.title, content.body, dict(content.data)) == (
        "News",
        "of today",
        {"n": 7, "of": {"a": None}},
    )
    assert content.others["another"] == 1
    assert notification.request.trigger
    assert notification.request.trigger.native()["remoteMessage"]["data"] == {
        "n": "7",
        "of": '{"a": null}',
    }
    assert titles(center) == ["News"]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"title": "x" * 4096}, r"too large: \d+ bytes \(maximum 4096\)"),
        ({"title": "é" * 2048}, r"too large: \d+ bytes"),
        ({"title": "a", "channelId": 7}, "channelId 7: .*valid string"),
        ({"title": "a", "sound": 1}, "sound 1: .*valid string"),
        ({"_contentAvailable": "false"}, "_contentAvailable 'false': .*boolean"),
        ({"data": [1]}, "data .*dictionary"),
        ({"data": {"a": object()}}, "must be JSON"),
        ({"data": {"a": float("nan")}}, "must be JSON"),
        (
            {"interruptionLevel": "loud"},
            "'passive', 'active', 'timeSensitive' or 'critical'",
        ),
        ([], "content must be an object"),
    ],
)
def test_an_undeliverable_message_is_refused(message: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        PushMessage.read(message)


@pytest.mark.parametrize(
    "given",
    [
        None,
        {"trigger": None},
        {"content": NEWS, "when": 1},
        {"content": NEWS, "identifier": 7},
    ],
)
def test_an_invalid_request_is_refused(center: NotificationCenter, given: Any) -> None:
    with pytest.raises(ConfigError):
        center.schedule(given)


def test_a_value_of_the_wrong_type_is_refused(center: NotificationCenter) -> None:
    untyped: Any = center

    with pytest.raises(ConfigError, match="did you mean 'background'"):
        untyped.app_state = "backgruond"
    with pytest.raises(ConfigError, match="must be a NotificationChannelInput, not d"):
        untyped.channels.set_channel("news", {"name": "News"})
    with pytest.raises(ConfigError, match="an action must be a NotificationAction, no"):
        untyped.set_category("reply", [{"identifier": "reply"}])

    assert center.app_state == "background"


def test_a_clock_without_a_time_zone_is_refused() -> None:
    center = NotificationCenter(
        clock=lambda: datetime(2026, 3, 10),  # noqa: DTZ001  # the mistake
        platform="ios",
        handler_timeout_seconds=float("inf"),
    )
    with pytest.raises(TriggerError, match="2026-03-10T00:00:00 needs a time zone"):
        center.schedule(
            {"content": NEWS, "trigger": {"type": "daily", "hour": 9, "minute": 0}}
        )


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_the_clocks_time_zone_can_be_a_mere_offset(
    clock: FakeCalendar, platform: Platform
) -> None:
    clock.now = datetime(
        2026, 3, 10, 8, tzinfo=timezone(timedelta(hours=5, minutes=30))
    )
    center = NotificationCenter(
        clock=clock, platform=platform, handler_timeout_seconds=3
    )
    center.schedule(
        {"content": NEWS, "trigger": {"type": "daily", "hour": 9, "minute": 0}}
    )

    clock.advance(hours=1)

    assert [one.date for one in center.fire_due()] == [clock.now.timestamp() * 1000]
