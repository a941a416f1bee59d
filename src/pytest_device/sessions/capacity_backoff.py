"""The wait of one session that the service has no capacity for: when to ask again, and when no longer."""

from typing import Final

from pytest_device.errors import LeaseTimeoutError, NoCapacityError
from pytest_device.options import Options
from pytest_device.sessions.lifecycle import WaitPolicy

RETRY_AFTER_MOST_SECONDS: Final = 300.0
"""The longest delay, whatever the service says: capacity is back when a session ends, which it cannot foresee."""

_LEAST_SECONDS: Final = 1.0
"""The shortest delay, where polls are not closer to each other: ``Retry-After: 0`` is no invitation."""
_DOUBLED_AT_MOST: Final = 3
"""Beyond eight poll intervals, 40 s by default, a freed device would lie idle for longer than many sessions last."""
_SPREAD: Final = 0.5
"""Those who were refused together should not come back together, which would have most of them refused again."""
_SOON_SECONDS: Final = 0.001
"""What is due now is still waited for: a delay of 0 would mean that the session is ready."""


class CapacityBackoff:
    """How often a session was refused for now; all times are seconds since it was first asked for.

    It is asked for again when the service says, but at least every five minutes; where it does not say, after the usual
    poll interval, doubled each time up to eight of them and spread by half, since others wait, too.
    """

    def __init__(self, policy: WaitPolicy) -> None:
        self._policy = policy
        self.refusals = 0
        """How often it was refused."""
        self._due = 0.0

    def note(self, refusal: NoCapacityError, waited_seconds: float) -> str:
        """Count a refusal; return the text to report."""
        delay = self._delay_after(refusal)
        self._due, self.refusals = waited_seconds + delay, self.refusals + 1
        self._last = str(refusal)
        return f"the service has no capacity ({refusal.status}), retrying in {delay:.0f} s"

    def pass_over(self, seconds: float) -> None:
        """Start the count later without moving the next request."""
        self._due -= seconds

    def is_due(self, waited_seconds: float) -> bool:
        """Return whether to retry now; never after the time-out, when a new session would be of no use."""
        return self._due <= waited_seconds < self._policy.timeout_seconds

    def delay(self, waited_seconds: float) -> float:
        """Return after how many seconds to retry, never 0; raises LeaseTimeoutError to give up."""
        left = self._policy.timeout_seconds - waited_seconds
        if left <= 0:
            raise LeaseTimeoutError(
                f"the service had no capacity for {waited_seconds:.0f} s. Last answer: {self._last}. Increase "
                f"{Options.wait_timeout_seconds.flag}, or lower {Options.max_sessions.flag}"
            )
        return max(min(self._due - waited_seconds, left), _SOON_SECONDS)

    def _delay_after(self, refusal: NoCapacityError) -> float:
        interval = self._policy.poll_interval_seconds
        if refusal.retry_after_seconds is None:
            return float(interval * 2 ** min(self.refusals, _DOUBLED_AT_MOST)) * self._policy.spread(_SPREAD)
        least = min(interval, _LEAST_SECONDS)
        later = self._policy.spread(self._policy.jitter) + self._policy.jitter  # never before it said
        return min(max(refusal.retry_after_seconds, least) * later, RETRY_AFTER_MOST_SECONDS)
