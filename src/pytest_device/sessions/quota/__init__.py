"""Limits the number of concurrent sessions: slots shared by all processes of one or more machines. Knows no session."""

from pytest_device.sessions.quota.files import FileStore, key_of, slots_directory
from pytest_device.sessions.quota.slots import Claim, Slot, Slots, Store

__all__ = ["Claim", "FileStore", "Slot", "Slots", "Store", "key_of", "slots_directory"]
