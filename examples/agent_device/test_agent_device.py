"""An app from a build, driven by agent-device. The service installs it; each test starts with cleared app data."""

import pytest

from pytest_device import AgentDevice

# The device is a local Chromium and the build a web build. Remove or replace both for your own app.
NOTES = "5b0f6f0e-7c52-4f0b-9a53-2d1f8f0f6a11"
pytestmark = pytest.mark.device(platform="android", type="agent-device", device_identifier="chromium", build_id=NOTES)

APP = "org.example.notes"


def test_adds_a_note(device_agent_device: AgentDevice) -> None:
    device_agent_device.open(APP)
    device_agent_device.fill('label="Text"', "buy milk")
    device_agent_device.press('label="Add"')
    device_agent_device.wait(text="Notes: 1")


def test_begins_without_notes(device_agent_device: AgentDevice) -> None:
    device_agent_device.open(APP)
    labels = [node.label for node in device_agent_device.snapshot().nodes]
    assert "Notes: 0" in labels


def test_opens_a_deep_link(device_agent_device: AgentDevice) -> None:
    device_agent_device.open("notes://notes/7")
    assert device_agent_device.is_("visible", 'label="Note 7"')
