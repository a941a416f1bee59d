"""Values that an app config has without setting them: from ``package.json`` and the installed libraries."""

import re
import unicodedata
from typing import Final

from pytest_device.app.document import Json, Object, text_at
from pytest_device.app.package import PackageConfig

_WORDS: Final = {
    "$": "dollar", "%": "percent", "&": "and", "<": "less", ">": "greater", "|": "or", "¢": "cent", "£": "pound",
    "¤": "currency", "¥": "yen", "©": "(c)", "®": "(r)", "€": "euro", "ß": "ss", "ẞ": "SS", "æ": "ae", "ø": "o",
    "đ": "d", "ð": "d", "þ": "th", "ł": "l", "œ": "oe", "\u0131": "i", "™": "tm", "…": "...", "•": "*",
    **dict(zip("\u2013\u2014\u2018\u2019\u201c\u201d", "--''\"\"", strict=True)),
    **dict(zip("абвгдезийклмнопрстуфхцыэ", "abvgdezijklmnoprstufhcye", strict=True)),
    "ё": "yo", "ж": "zh", "ч": "ch", "ш": "sh", "щ": "sh", "ъ": "u", "ь": "", "ю": "yu", "я": "ya",
}  # fmt: skip
_DROPPED: Final = re.compile(r"[^A-Za-z0-9_\s$*+~.()'\"!\-:@]+")


def with_defaults(config: Object, package: PackageConfig) -> Object:
    """Fill in missing keys from ``package.json`` and the installed libraries."""
    name = config.get("name")
    elsewhere: Object = {
        "name": package.name,
        "slug": _slug(name if isinstance(name, str) else package.name),
        "version": package.version,
        "description": text_at(package.content, "description"),
        "sdkVersion": _sdk_version(package) if config.get("sdkVersion") is None else None,
        "platforms": _platforms(package),
    }
    given = {
        key: value for key, value in config.items() if key != "mods" and (value is not None or key not in elsewhere)
    }
    return {key: value for key, value in elsewhere.items() if value is not None} | given


def _slug(name: str) -> str:
    """Return the slug of a name: lowercase, without accents or special characters, words joined by hyphens."""
    spelt = "".join(_WORDS.get(sign, sign) for sign in unicodedata.normalize("NFC", name.lower()))
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", spelt) if not unicodedata.combining(sign))
    return re.sub(r"[-\s]+", "-", _DROPPED.sub("", plain).strip())


def _sdk_version(package: PackageConfig) -> str | None:
    installed = package.installed_version(package.vendor.word)
    return f"{installed.partition('.')[0]}.0.0" if installed else None


def _platforms(package: PackageConfig) -> list[Json]:
    return ["ios", "android", *(["web"] if package.installed("react-dom") else [])]
