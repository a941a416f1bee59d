"""The breaker of a run that also limits what the whole run may use: retries and device minutes."""

import threading
from collections.abc import Callable
from typing import Final

from pytest_device.options import Options
from pytest_device.sessions.breaker import (
    CREATE,
    Answer,
    AttemptId,
    Cause,
    LocalBreaker,
    Turn,
)
from pytest_device.sessions.budget import Budget
from pytest_device.verdict import Verdict

RETRY: Final = "retry"
"""Key that asks for one more run of a test whose device failed."""


class RunBreaker(LocalBreaker):
    """Decides for all processes of a run, in the process that has the terminal.

    ``retry_quota`` is the number of retries that the run has, ``budget`` its device minutes, None without a limit.
    """

    def __init__(
        self,
        limit: int,
        clock: Callable[[], float],
        *,
        interval_seconds: float,
        retry_quota: int,
        budget: Budget | None,
    ) -> None:
        super().__init__(limit, clock, interval_seconds=interval_seconds)
        self._quota = retry_quota
        self._retries_left = retry_quota
        self._budget = budget
        self._quota_lock = threading.Lock()

    def ask(self, key: str, attempt: AttemptId) -> Answer:
        """Return whether to make an attempt, which the run's limits may forbid."""
        if key == RETRY:
            return self._take_retry()
        if key == CREATE and self._budget and (text := self._budget.refusal()):
            return Cause(Verdict.BUDGET, text)
        return super().ask(key, attempt)

    def ready(self, key: str, attempt: AttemptId) -> None:
        """Record a successful attempt; that of a create call uses the budget from now on."""
        if key == CREATE and self._budget:
            self._budget.begin()
        super().ready(key, attempt)

    def _take_retry(self) -> Answer:
        with self._quota_lock:
            if self._retries_left == 0:
                return Cause(
                    Verdict.INFRASTRUCTURE,
                    f"the run's {self._quota} retries are used up ({Options.retry_quota.flag})",
                )

            self._retries_left -= 1

        return Turn.GO
