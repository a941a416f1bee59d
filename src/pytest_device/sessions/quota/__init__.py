"""How many sessions there are at once: slots, shared by all processes of a machine, or of many. Knows no session."""

from pytest_device.sessions.quota.claim import Claim, Slot, Store
from pytest_device.sessions.quota.files import key_of, slots_directory
from pytest_device.sessions.quota.slots import Slots

__all__ = ["Claim", "Slot", "Slots", "Store", "key_of", "slots_directory"]
