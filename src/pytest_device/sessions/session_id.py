"""A session's ID: a UUID that keeps the service's spelling."""

from typing import Self
from uuid import UUID

from pytest_device.sessions.partial import SPELLING, is_same


class SessionId(UUID):
    """A UUID whose text is spelled as the service spelled it, since services may be case-sensitive.

    Equal to every UUID with the same value. Raises ValueError for a text that is not a UUID.
    """

    text: str

    def __init__(self, text: str) -> None:
        if not SPELLING.fullmatch(text):
            raise ValueError("not a UUID")
        super().__init__(text)
        object.__setattr__(self, "text", text)  # UUIDs are immutable

    def __str__(self) -> str:
        return self.text

    def names(self, session_id: str) -> bool:
        """Return whether a text is this ID in any spelling."""
        return is_same(self.text, session_id)

    # UUID's own would pickle the number only, and lose the spelling.
    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.text,)
