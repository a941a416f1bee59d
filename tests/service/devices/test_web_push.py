"""Web pushes of a real sender: the app subscribes, and messages posted to its endpoint reach its worker.

The messages are recorded ones of npm's web-push, for a subscription whose keys the page is given.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import httpx
import pytest
from starlette.applications import Starlette

from pytest_device.service.keys import Keys
from pytest_device.service.push_routes import route
from tests.fakes.devices import FakeRunner
from tests.service.devices.phone import BootedDevice

APP: Final = Path(__file__).parent / "push"
RECORDED: Final = json.loads((APP / "web-push.json").read_text(encoding="utf-8"))
NOW: Final = RECORDED["now"]
ORIGIN: Final = "http://127.0.0.1:1"
SESSION_ID: Final = "0b6ce8a5-4a3a-4a52-9a52-6d3e7f6b3c11"
GIVEN_KEYS: Final = f"""(async () => {{
  const {{ own, auth }} = {json.dumps(RECORDED)};
  const curve = {{ name: 'ECDH', namedCurve: 'P-256' }};
  const {{ d, ...open }} = own;
  const publicKey = await crypto.subtle.importKey('jwk', open, curve, true, []);
  const privateKey = await crypto.subtle.importKey('jwk', own, curve, true, ['deriveBits']);
  crypto.subtle.generateKey = async () => ({{ publicKey, privateKey }});
  const bytes = Uint8Array.from(atob(auth.replace(/-/g, '+').replace(/_/g, '/')), (one) => one.charCodeAt(0));
  crypto.getRandomValues = (array) => {{ array.set(bytes); return array; }};
}})()"""
SUBSCRIBED: Final = """isReady.then((worker) => worker.pushManager.subscribe(
  { userVisibleOnly: true, applicationServerKey: '%s' })).then(JSON.stringify, (error) => error.name)"""


class Sender:
    """Posts messages to the endpoint of the app on a phone."""

    def __init__(self, phone: BootedDevice, endpoint: str) -> None:
        self.endpoint = endpoint
        runner = FakeRunner(phone.device, ready=True)
        runner.start(SESSION_ID, {})
        self._phone, self._keys = phone, Keys(ORIGIN)
        self._app = Starlette(routes=[route(runner, self._keys)])
        phone.device.accept_pushes(self._keys.url("web-push", SESSION_ID))

    def posts(
        self, message: Mapping[str, Any] = RECORDED["message"], **headers: str | None
    ) -> tuple[int, str]:
        """Post a message, with other headers or without some; return the status and the problem."""
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {
            name: str(value)
            for name, value in {
                **{name.lower(): one for name, one in message["headers"].items()},
                **changed,
            }.items()
            if value is not None
        }
        return self._phone.do(self._post(given, base64.b64decode(message["body"])))

    async def _post(self, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        transport = httpx.ASGITransport(app=self._app)
        async with httpx.AsyncClient(transport=transport) as client:
            reply = await client.post(self.endpoint, headers=headers, content=body)
        if reply.status_code == 201:
            assert reply.headers["Location"].startswith(self.endpoint)
            return 201, ""
        return reply.status_code, reply.json()["message"]


@pytest.fixture
def sender(phone: BootedDevice, monkeypatch: pytest.MonkeyPatch) -> Sender:
    """A sender for the subscription of the app."""
    monkeypatch.setattr(
        "pytest_device.service.devices.chromium.time", SimpleNamespace(time=lambda: NOW)
    )
    phone.start(path=APP)
    found = Sender(phone, "")
    phone.says(GIVEN_KEYS)
    made = json.loads(phone.says(SUBSCRIBED % RECORDED["sender"]))
    assert made["keys"] == {name: RECORDED[name] for name in ("p256dh", "auth")}
    found.endpoint = made["endpoint"]
    return found


def test_a_message_of_a_real_sender_is_shown_by_the_apps_worker(
    phone: BootedDevice, sender: Sender
) -> None:
    assert sender.posts() == (201, "")
    title = "isReady.then(one => one.getNotifications()).then(all => all[0]?.title)"
    assert phone.says_in_time(title, "News")
    (shown,) = phone.do(phone.device.notifications())
    assert shown["options"]["body"] == "für Ada"


def test_a_message_that_breaks_a_rule_is_refused_and_not_shown(
    phone: BootedDevice, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = RECORDED["message"]
    body = bytearray(base64.b64decode(message["body"]))
    body[-1] ^= 1
    token = message["headers"]["Authorization"].partition(", k=")[0]
    other = RECORDED["other"]["headers"]["Authorization"].partition(", k=")[0]
    ours = message["headers"]["Authorization"].partition(", k=")[2]
    claims = json.dumps({"aud": ORIGIN, "exp": 10**400}).encode()
    huge = f"vapid t=e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.x"
    refused = [
        (sender.posts(ttl=None), 400, "TTL must be a number of seconds"),
        (sender.posts(urgency="now"), 400, "Urgency must be one of"),
        (sender.posts(topic="a b"), 400, "Topic must have"),
        (sender.posts(content_encoding="aesgcm"), 415, "must be aes128gcm"),
        (sender.posts({**message, "body": "A" * 8000}), 413, "more than 4096"),
        (sender.posts(authorization=None), 401, "vapid t=TOKEN, k=KEY"),
        (sender.posts(authorization=f"{token}.x, k={ours}"), 403, "JSON Web Token"),
        (sender.posts(authorization=f"{huge}, k={ours}"), 403, "JSON Web Token"),
        (sender.posts(RECORDED["other"]), 403, "not the applicationServerKey"),
        (sender.posts(authorization=f"{other}, k={ours}"), 403, "not signed with k"),
        (
            sender.posts({**message, "body": base64.b64encode(body).decode()}),
            400,
            "not encrypted for the subscription",
        ),
    ]
    for (status, problem), wanted, reason in refused:
        assert status == wanted, reason
        assert reason in problem
    for now in (NOW + 60 * 60 * 24, NOW - 60 * 60 * 24):
        monkeypatch.setattr(
            "pytest_device.service.devices.chromium.time",
            SimpleNamespace(time=lambda now=now: now),
        )
        assert sender.posts()[0] == 403
    assert phone.do(phone.device.notifications()) == []


def test_an_app_has_one_subscription_until_it_ends_it(
    phone: BootedDevice, sender: Sender
) -> None:
    again = json.loads(phone.says(SUBSCRIBED % RECORDED["sender"]))
    assert again["endpoint"] == sender.endpoint
    assert phone.says(SUBSCRIBED % RECORDED["p256dh"]) == "InvalidStateError"
    assert phone.says(SUBSCRIBED % "AAAA") == "InvalidAccessError"
    of_app = "isReady.then((one) => one.pushManager.getSubscription())"
    assert phone.says(f"{of_app}.then((one) => one.endpoint)") == sender.endpoint
    assert phone.says(f"{of_app}.then((one) => one instanceof PushSubscription)")
    size = "new Uint8Array(one.getKey('p256dh')).length"
    assert phone.says(f"{of_app}.then((one) => {size})") == 65

    assert phone.says(f"{of_app}.then((one) => one.unsubscribe())") is True

    assert phone.says(of_app) is None
    assert sender.posts() == (410, "the subscription has ended")


def test_a_wrong_address_has_no_subscription(sender: Sender) -> None:
    sender.endpoint = sender.endpoint.replace("/web-push/", "/web-push/x")
    assert sender.posts() == (404, "no such subscription")
