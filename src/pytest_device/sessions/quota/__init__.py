"""Limits the number of concurrent sessions: slots shared by all processes of one or more machines. Knows no session."""

from pytest_device.sessions.quota.claim import Claim, Slot, Store
from pytest_device.sessions.quota.files import key_of, slots_directory
from pytest_device.sessions.quota.slots import Slots

__all__ = ["Claim", "Slot", "Slots", "Store", "key_of", "slots_directory"]
