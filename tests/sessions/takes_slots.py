"""A program that takes slots, reports it by a line, and keeps them until its input ends.

Its arguments are the directory or the URL of the slots, their key on a Redis server, the seconds after which that gives
a slot to others, the limit, and how many to take. With ``fork`` after them, a child releases the slots, which are its
parent's, before the line.
"""

import os
import sys
from pathlib import Path

from pytest_device.sessions.quota import FileStore, Slots, Store
from pytest_device.sessions.reporter import SilentReporter


def main() -> None:
    """Take the slots."""
    address, key, slot_seconds, limit, count, *fork = sys.argv[1:]
    slots = Slots(
        place_at(address, key, float(slot_seconds)),
        int(limit),
        holder="run other",
        timeout_seconds=60,
        reporter=SilentReporter(),
    ).acquire(int(count))

    is_child = bool(fork) and os.fork() == 0
    if is_child:
        for slot in slots:
            slot.release()
        assert not any(slot.is_held for slot in slots)

    if is_child or not fork:
        sys.stdout.write("taken\n")
        sys.stdout.flush()

    sys.stdin.read()
    # Without the cleanup of the interpreter, which would wait for the threads that a child does not have.
    os._exit(0)


def place_at(address: str, key: str, slot_seconds: float) -> Store:
    """Return the slots of a directory, or of a server, as one process sees them."""
    if not address.startswith("redis:"):
        return FileStore(Path(address))

    # Heavy: not for those that need a directory.
    from pytest_device.sessions.quota.redis_store import RedisConfig, RedisStore

    config = RedisConfig(
        address,
        "DEVICE_SLOTS_URL",
        key,
        SilentReporter(),
        slot_seconds=slot_seconds,
        settle_seconds=0,
    )
    return RedisStore(config)


if __name__ == "__main__":
    main()
