"""macOS: neither process descriptors nor namespaces, and it does not show who opened a connection."""

import sys

assert sys.platform == "darwin"  # noqa: S101  # for type checkers

from pytest_device.platforms.places import Places, places_on
from pytest_device.platforms.posix import Posix
from pytest_device.platforms.system import Level, Support


class Darwin(Posix):
    """macOS, on any processor."""

    title: str = "macOS"
    support: Support = Support(
        Level.PARTIAL,
        "the ports of a session's programs are open to other users of the machine",
    )
    places: Places = places_on("darwin")
    has_local_service: bool = True
    loader_prefix: str = "DYLD_"
