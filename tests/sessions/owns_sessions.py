"""A program that owns sessions, prints their IDs, and waits to be killed.

Its arguments are the state directory and how many to create; with ``fork`` after them, a child keeps its files open.
The first line of its input has the connection settings of the service. When the input ends, it creates one more.
"""

import json
import os
import sys
from pathlib import Path

from tests.sessions.reaper_clients import Served, reaper_client_at, request_at


def main() -> None:
    """Create the sessions."""
    state_dir, count, *fork = sys.argv[1:]
    served = Served(**json.loads(sys.stdin.readline()))
    client = reaper_client_at(served, Path(state_dir))
    created = [str(client.create(request_at(served)).id) for _ in range(int(count))]

    if fork and not os.fork():
        sys.stdin.read()
        os._exit(0)

    sys.stdout.write(json.dumps(created) + "\n")
    sys.stdout.flush()

    sys.stdin.read()
    client.create(request_at(served))
    sys.stdin.read()


if __name__ == "__main__":
    main()
