"""Sessions whose controllers are servers of a test."""

from collections.abc import Callable, Mapping
from typing import Any

from pytest_device.sessions.models import Session
from tests.contract.document import example_session

TOKEN = "open-sesame-open"
CONFIGS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "appium": lambda url: {"appiumUrl": url, "capabilities": {"platformName": "Fake"}},
    "agent-device": lambda url: {
        "agentDeviceRemoteSessionUrl": url,
        "agentDeviceRemoteSessionToken": TOKEN,
    },
    "argent": lambda url: {"toolsUrl": url, "toolsAuthToken": TOKEN},
    "web-preview-only": lambda url: {"webPreviewUrl": url},
    "quantum-device": lambda url: {"quantumUrl": url},
}


def session_at(url: str, session_type: str = "appium", **details: Any) -> Session:
    """Return a session in progress with a controller at a URL."""
    return Session.from_wire(
        example_session(
            type=session_type, remoteConfig=CONFIGS[session_type](url) | details
        )
    )
