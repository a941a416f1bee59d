"""URL-friendly name (slug) derived from a project's display name."""

import re
import unicodedata
from typing import Final

_WORDS: Final = {
    "$": "dollar", "%": "percent", "&": "and", "<": "less", ">": "greater", "|": "or", "¢": "cent", "£": "pound",
    "¤": "currency", "¥": "yen", "©": "(c)", "®": "(r)", "€": "euro", "ß": "ss", "ẞ": "SS", "æ": "ae", "ø": "o",
    "đ": "d", "ð": "d", "þ": "th", "ł": "l", "œ": "oe", "\u0131": "i", "™": "tm", "…": "...", "•": "*",
    **dict(zip("\u2013\u2014\u2018\u2019\u201c\u201d", "--''\"\"", strict=True)),
    **dict(zip("абвгдезийклмнопрстуфхцыэ", "abvgdezijklmnoprstufhcye", strict=True)),
    "ё": "yo", "ж": "zh", "ч": "ch", "ш": "sh", "щ": "sh", "ъ": "u", "ь": "", "ю": "yu", "я": "ya",
}  # fmt: skip
_DROPPED: Final = re.compile(r"[^A-Za-z0-9_\s$*+~.()'\"!\-:@]+")


def slug_of(name: str) -> str:
    """Return the slug of a name: lowercase, without accents or special characters, words joined by hyphens."""
    spelt = "".join(_WORDS.get(sign, sign) for sign in unicodedata.normalize("NFC", name.lower()))
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", spelt) if not unicodedata.combining(sign))
    return re.sub(r"[-\s]+", "-", _DROPPED.sub("", plain).strip())
