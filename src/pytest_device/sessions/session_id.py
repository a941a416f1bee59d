"""A session's id: a UUID that goes back to the service as it came."""

from typing import Self
from uuid import UUID

from pytest_device.sessions.partial import SPELLING, is_same


class SessionId(UUID):
    """A UUID whose text is as the service wrote it: a service may distinguish upper case from lower case.

    It equals every UUID of the same value. Raises ValueError for a text that is no UUID.
    """

    text: str

    def __init__(self, text: str) -> None:
        if not SPELLING.fullmatch(text):
            raise ValueError("not a UUID")
        super().__init__(text)
        object.__setattr__(self, "text", text)  # a UUID refuses the usual way

    def __str__(self) -> str:
        return self.text

    def names(self, session_id: str) -> bool:
        """Return whether a text is this id, however it is written."""
        return is_same(self.text, session_id)

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.text,)
