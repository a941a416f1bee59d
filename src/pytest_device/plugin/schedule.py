"""The order of tests: those that share a session next to each other. Pure."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def grouped(tests: Sequence[T], key: Callable[[T], Hashable | None]) -> list[T]:
    """Return tests of equal key together, in the order in which keys first appear and otherwise in their own.

    A test without a key (None) stays behind the test it followed; those before the first key stay first.
    """
    groups: dict[Hashable, list[T]] = {None: []}
    current: Hashable = None
    for test in tests:
        if (of_test := key(test)) is not None:
            current = of_test
        groups.setdefault(current, []).append(test)
    return [test for group in groups.values() for test in group]
