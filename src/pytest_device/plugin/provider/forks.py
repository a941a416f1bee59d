"""What forked children learn of failed attempts, for their parent and its later children."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pytest_device.sessions.breaker import Answer, Breaker, Cause, Ticket

LEARNED: Final = "device_learned"
"""Key of a report from a child."""
_OF_A_CHILD: Final[Ticket] = ("", -1)


class ForkedJudge:
    """Decides in a child by what its parent knew when it forked; ``learned`` is what the parent does not know yet."""

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker
        self.learned: list[Sequence[Any]] = []

    def ask(self, key: str, ticket: Ticket) -> Answer:
        return self._breaker.ask(key, ticket)

    def ready(self, key: str, ticket: Ticket) -> None:
        self._breaker.ready(key, ticket)
        self.learned.append(("ready", key))

    def failed(self, key: str, ticket: Ticket, cause: Cause, *, is_final: bool) -> None:
        self._breaker.failed(key, ticket, cause, is_final=is_final)
        self.learned.append(("failed", key, *cause, is_final))

    def released(self, key: str, ticket: Ticket) -> None:
        self._breaker.released(key, ticket)

    def met(self, key: str, test: str) -> None:
        self._breaker.met(key, test)
        self.learned.append(("met", key, test))


def learn(breaker: Breaker, learned: Iterable[Sequence[Any]]) -> None:
    """Note what a child has learned."""
    for message in learned:
        match message:
            case ("ready", key):
                breaker.ready(key, _OF_A_CHILD)
            case ("failed", key, *cause, is_final):
                breaker.failed(key, _OF_A_CHILD, Cause(*cause), is_final=is_final)
            case ("met", key, test):
                breaker.met(key, test)
            case _:
                raise ValueError(f"a message {message[0]!r} of a child")
