"""The reference cases of the notifications library."""

import json
from pathlib import Path
from typing import Any, Final

CASES: Final[list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("data").joinpath("cases.json").read_text("utf-8")
)


def cases(op: str | None) -> list[dict[str, Any]]:
    return [case for case in CASES if case.get("op") == op]
