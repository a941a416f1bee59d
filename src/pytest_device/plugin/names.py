"""The names of the fixtures. Every pytest run imports this module."""

from typing import Final

SINGLE_DEVICE: Final = frozenset(
    {
        "device_session",
        "device_agent_device",
        "device_argent",
        "device_driver",
        "device_preview_url",
        "device_environment",
        "device_process_environment",
        "device_platform",
        "class_device_driver",
        "module_device_driver",
        "session_device_driver",
    }
)
"""Fixtures for a test with one device."""
SCOPED_DRIVERS: Final = {
    "class_device_driver": "class",
    "module_device_driver": "module",
    "session_device_driver": "session",
}
"""Drivers that tests share, with their scopes."""
MULTI_DEVICE: Final = frozenset({"device_sessions", "device_agent_devices", "device_argents", "device_drivers"})
"""Fixtures for a test with several devices."""
CREATING: Final = frozenset({"device_client", "device_lease"})
"""Fixtures that create sessions without a marker."""
