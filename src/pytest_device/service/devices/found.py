"""What is found of the devices of this machine before one is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_device.service.devices.profiles import plain


@dataclass(frozen=True, slots=True)
class Listed:
    """A real device, emulator or simulator that is up. ``names`` are what a request may call it, see ``plain``."""

    udid: str
    names: frozenset[str]

    @classmethod
    def of(cls, udid: str, *names: str) -> "Listed":
        """Return a device that goes by its number and these names."""
        return cls(udid, frozenset(plain(name) for name in (udid, *names)))


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of one kind of devices; ``missing`` says why none of them can serve, ``fix`` what to do then.

    ``program`` is what commands them, ``chromedriver`` what Appium needs beside a browser, ``appium_home`` where the
    user has the Appium driver of a real one. ``about`` has the version of a browser and where it comes from,
    ``to_install`` what has to be installed before it serves.
    """

    kind: str
    devices: Sequence[Listed] = ()
    program: Path | None = None
    chromedriver: Path | None = None
    appium_home: Path | None = None
    missing: str = ""
    fix: str = ""
    about: str = ""
    to_install: str = ""

    @property
    def tool(self) -> Path:
        """The program that commands the devices which were listed by it."""
        if self.program is None:
            raise RuntimeError(f"nothing commands a device of the kind {self.kind}")
        return self.program
