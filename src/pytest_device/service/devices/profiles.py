"""The phones that a browser can emulate: their screens and user agents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_device.service.devices.base import RequestError
from pytest_device.spec import Platform

_ANDROID: Final = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 {form}Safari/537.36"
"""For all Android phones: Chrome reports the true version and model in its client hints only."""
_IOS: Final = (
    "Mozilla/5.0 ({family}; CPU {system} {version} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/{safari} Mobile/15E148 Safari/604.1"
)


@dataclass(frozen=True, slots=True)
class Profile:
    """A phone in portrait orientation.

    Attributes:
        name: The name that requests use.
        platform: The platform.
        width: The width of its screen in CSS pixels.
        height: The height of its screen in CSS pixels.
        scale: The device pixels in a CSS pixel, in each direction.
        version: The version of its system.
        is_tablet: Whether web pages see a tablet.
        aliases: Further names.
    """

    name: str
    platform: Platform
    width: int
    height: int
    scale: float
    version: str
    is_tablet: bool = False
    aliases: tuple[str, ...] = ()

    def user_agent(self, browser_version: str) -> Mapping[str, Any]:
        """Return the parameters of ``Emulation.setUserAgentOverride``; a version looks like ``156.0.8078.79``."""
        if self.platform is Platform.IOS:
            return {
                "userAgent": self._safari(),
                "platform": "iPad" if self.is_tablet else "iPhone",
            }

        major = browser_version.partition(".")[0]
        return {
            "userAgent": _ANDROID.format(
                major=major, form="" if self.is_tablet else "Mobile "
            ),
            "platform": "Linux armv81",
            "userAgentMetadata": self._hints(major, browser_version),
        }

    @property
    def script(self) -> str:
        """The script to run before every document: Safari has no client hints, which libraries check first."""
        if self.platform is not Platform.IOS:
            return ""
        return "delete Navigator.prototype.userAgentData"

    def _safari(self) -> str:
        family, system = ("iPad", "OS") if self.is_tablet else ("iPhone", "iPhone OS")
        version = self.version.replace(".", "_")
        return _IOS.format(
            family=family, system=system, version=version, safari=self.version
        )

    def _hints(self, major: str, full: str) -> Mapping[str, Any]:
        names = ("Chromium", "Google Chrome")
        return {
            "brands": [{"brand": name, "version": major} for name in names],
            "fullVersionList": [{"brand": name, "version": full} for name in names],
            "platform": "Android",
            "platformVersion": f"{self.version}.0.0",
            "architecture": "",
            "model": self.name,
            "mobile": not self.is_tablet,
        }


def _android(
    name: str, width: int, height: int, scale: float, version: str = "15", **more: Any
) -> Profile:
    return Profile(name, Platform.ANDROID, width, height, scale, version, **more)


def _ios(
    name: str,
    width: int,
    height: int,
    scale: float = 3,
    version: str = "18.5",
    **more: Any,
) -> Profile:
    return Profile(name, Platform.IOS, width, height, scale, version, **more)


PROFILES: Final = (
    _android("Pixel 8", 412, 915, 2.625),
    _android("Pixel 9", 412, 923, 2.625, "16"),
    _android("Pixel 9 Pro", 427, 952, 3, "16"),
    _android("Pixel 8 Pro", 448, 997, 3),
    _android("Pixel 7", 412, 915, 2.625, "14"),
    _android("Pixel 7 Pro", 412, 892, 3.5, "14"),
    _android("Pixel 6", 412, 915, 2.625, "13"),
    _android("Pixel 5", 393, 851, 2.75, "13"),
    _android(
        "Medium Phone",
        412,
        915,
        2.625,
        aliases=("Medium Phone API 35", "Medium Phone API 36"),
    ),
    _android(
        "Small Phone", 360, 640, 2, aliases=("Small Phone API 35", "Small Phone API 36")
    ),
    _android("Pixel Tablet", 800, 1280, 2, is_tablet=True),
    _ios("iPhone 16", 393, 852),
    _ios("iPhone 16 Pro", 402, 874),
    _ios("iPhone 16 Pro Max", 440, 956),
    _ios("iPhone 16 Plus", 430, 932),
    _ios("iPhone 16e", 390, 844),
    _ios("iPhone 17", 402, 874, 3, "26.0"),
    _ios("iPhone 15", 393, 852, 3, "17.5"),
    _ios("iPhone 15 Pro", 393, 852, 3, "17.5"),
    _ios("iPhone 15 Pro Max", 430, 932, 3, "17.5"),
    _ios("iPhone 14", 390, 844, 3, "17.5"),
    _ios("iPhone SE (3rd generation)", 375, 667, 2, aliases=("iPhone SE",)),
    _ios("iPad (10th generation)", 820, 1180, 2, is_tablet=True, aliases=("iPad",)),
    _ios("iPad Pro 11-inch (M4)", 834, 1210, 2, is_tablet=True),
)
"""The first profile of each platform is the default."""


def plain(name: str) -> str:
    """Normalize a name for comparison: ``pixel_8``, ``Pixel 8`` and ``pixel-8`` are the same."""
    return re.sub(r"[\W_]+", " ", name.lower()).strip()


def find_profile(platform: Platform, identifier: str | None) -> Profile:
    """Return the phone with this name, or the platform's default. Raises RequestError for an unknown name.

    Not in the document; chosen here.
    """
    phones = [profile for profile in PROFILES if profile.platform is platform]
    if identifier is None:
        return phones[0]

    requested = plain(identifier)
    for profile in phones:
        names = (profile.name, *profile.aliases)
        if any(plain(name) == requested for name in names):
            return profile

    available = ", ".join(profile.name for profile in phones)
    raise RequestError(
        f"deviceIdentifier {identifier!r} is not an {platform} phone that the local browser can emulate: "
        f"set it to one of {available}, or leave it out."
    )
