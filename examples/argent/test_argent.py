"""An app from a build, driven by argent's tools."""

import time
from typing import Any

import pytest

from pytest_device import Argent

# The device is a local Chromium and the build a web build. Remove or replace both for your own app.
NOTES = "5b0f6f0e-7c52-4f0b-9a53-2d1f8f0f6a11"
pytestmark = pytest.mark.device(platform="ios", type="argent", device_identifier="chromium", build_id=NOTES)


def described(argent: Argent) -> str:
    answer: dict[str, Any] = argent.call("describe", udid=argent.device_id)
    return str(answer["description"])


def wait_for(argent: Argent, text: str, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while text not in (shown := described(argent)):
        assert time.monotonic() < deadline, shown


def test_shows_the_app(device_argent: Argent) -> None:
    assert "Notes: 0" in described(device_argent)


def test_adds_a_note(device_argent: Argent) -> None:
    device = device_argent.device_id
    wait_for(device_argent, "Notes: 0")  # describe also measures the screen: taps are fractions of it
    device_argent.call("gesture-tap", udid=device, x=0.5, y=0.15)
    device_argent.call("keyboard", udid=device, text="buy milk")
    device_argent.call("gesture-tap", udid=device, x=0.5, y=0.21)
    wait_for(device_argent, "Notes: 1")  # a tap returns before the app has handled it
