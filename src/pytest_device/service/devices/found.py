"""The devices found on this machine, before one is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_device.errors import ControllerError
from pytest_device.service.devices.profiles import plain


class BusyError(ControllerError):
    """Every device that fits is in use by another session."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants of the devices of this machine.

    ``real_only``: no browser stands in for a device. ``avd`` and ``simulator`` name the only emulator and simulator to
    use, which are started unless they are up.
    """

    real_only: bool = False
    avd: str | None = None
    simulator: str | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A real device, emulator or simulator that is up. ``names`` are accepted in requests, see ``plain``."""

    udid: str
    names: frozenset[str]

    @classmethod
    def of(cls, udid: str, *names: str) -> "Listed":
        """Return a device with its id and these names."""
        return cls(udid, frozenset(plain(name) for name in (udid, *names)))


@dataclass(frozen=True, slots=True)
class Found:
    """The devices of one kind; ``missing`` is the reason why none can be used, ``fix`` what to do then.

    ``to_start`` is the one that is started for the first session, by the program ``starter``.
    ``program`` commands them, ``chromedriver`` is what Appium needs for a browser, ``appium_home`` has the user's
    Appium driver for a real device. ``about`` is the version and origin of a browser, ``to_install`` lists what it
    lacks.
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
    to_start: str = ""
    starter: Path | None = None

    @property
    def tool(self) -> Path:
        """The program that commands the devices which were listed by it."""
        if self.program is None:
            raise RuntimeError(f"nothing commands a device of the kind {self.kind}")
        return self.program
