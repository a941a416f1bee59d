"""What the reaper has to know of the service."""

from typing import NamedTuple


class Service(NamedTuple):
    """How to reach the service. ``proxy`` is an ``http://`` address, or empty."""

    url: str
    token: str
    proxy: str = ""
    cafile: str | None = None
    capath: str | None = None
