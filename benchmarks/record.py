"""Write the output of a benchmark to the results page: `python warm.py | python record.py warm`."""

import sys
from pathlib import Path

# Its own modules, however it is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.parallel import results


def main() -> int:
    """Show what comes in as it comes, then write it to the part of the page that the only argument names."""
    (part,) = sys.argv[1:]
    lines: list[str] = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        lines.append(line)
    results.write(part, f"```text\n{''.join(lines).rstrip()}\n```")
    return 0


if __name__ == "__main__":
    sys.exit(main())
