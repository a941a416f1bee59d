"""Each test runs twice: on Android and on iOS."""

import pytest

from pytest_device import AgentDevice

pytestmark = pytest.mark.device(platform=["android", "ios"], type="agent-device")

APP = "org.example.sign-in"


def test_greets_the_user(device_agent_device: AgentDevice):
    device_agent_device.open(APP)
    device_agent_device.fill('label="Name"', "Ada")
    device_agent_device.press('label="Sign in"')
    device_agent_device.wait(text="Welcome, Ada")


def test_requires_a_name(device_agent_device: AgentDevice):
    device_agent_device.open(APP)
    device_agent_device.press('label="Sign in"')
    device_agent_device.wait(text="Enter your name")
