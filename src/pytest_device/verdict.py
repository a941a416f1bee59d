"""The cause of an error that is not the test's own. Standard library only."""

from enum import StrEnum
from typing import assert_never


class Verdict(StrEnum):
    """What broke: the app, the configuration, or the infrastructure; or what ran out: the budget."""

    APP = "app"
    BUDGET = "budget"
    CONFIG = "config"
    INFRASTRUCTURE = "infrastructure"

    @property
    def is_temporary(self) -> bool:
        """Whether the same attempt may succeed later, without a change by the user."""
        match self:
            case Verdict.INFRASTRUCTURE:
                return True
            case Verdict.APP | Verdict.BUDGET | Verdict.CONFIG:
                return False
            case _:
                assert_never(self)
