"""Sessions for tests: taken from the pool before one, given back after it, looked after in between."""

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import pytest

from pytest_device.errors import ConfigError, ControllerError, DeviceError, StopFailedError, UnauthorizedError
from pytest_device.plugin.markers import Names, devices_of, need_of, platforms_of
from pytest_device.plugin.provider.backend import Access
from pytest_device.plugin.provider.factory import Factory
from pytest_device.plugin.provider.lookahead import Lookahead
from pytest_device.plugin.provider.warm import WarmDevices
from pytest_device.plugin.state import (
    ARGUMENTS,
    FAILED,
    NEEDS,
    NOT_LEFT,
    USES,
    WAITED,
    is_fresh,
    needs_of,
    providing,
)
from pytest_device.redact import Redactor
from pytest_device.scheduling.sizing import needed_minutes
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.events import Report
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.relay import Relay
from pytest_device.sessions.request import SHARING, SessionRequest
from pytest_device.sessions.requirement import DeviceRequirement
from pytest_device.settings import Settings
from pytest_device.spec import DURATION_MAX_MINUTES, SessionType, Share

if TYPE_CHECKING:
    from pytest_device.plugin.provider.cleanup import Tidier

_TAKEN: Final = pytest.StashKey[dict[str, DeviceSession]]()
_DECIDED: Final = frozenset({"platform", "type", *SHARING})
"""Arguments that are needed before the first test runs."""
_SAYING_MORE: Final = ("device_request_defaults", "device_wait_policy")
"""Fixtures that a suite may override."""
_CLIENTS: Final = frozenset({"appium", "selenium", "urllib3", "httpx", "httpcore", "requests", "subprocess"})
"""Packages whose errors may mean that a controller is gone."""


class Devices:
    """What the tests of this process have of devices; ``lookahead`` knows what those to come need."""

    def __init__(
        self,
        settings: Settings,
        access: Access,
        names: Names,
        *,
        redactor: Redactor,
        report: Report,
        sleep: Callable[[float], None],
        tell: Callable[[str], None],
        lookahead: Lookahead,
    ) -> None:
        self.settings, self.access, self._names = settings, access, names
        self._redactor, self._sleep, self._tell = redactor, sleep, tell
        self._relay = Relay(report)
        self._pid = os.getpid()
        self._is_forked = False
        self._lookahead = lookahead
        self._planned: dict[DeviceRequirement, DeviceRequirement] = {}
        """Of each need what it was before fixtures added to it."""
        self.item: pytest.Item | None = None
        """The test at hand, or the last one."""
        self._refusal: UnauthorizedError | None = None
        self._tidier: Tidier | None = None
        self.warm = WarmDevices.of(settings, access, report=self._relay)
        self._factory = Factory(
            access, self.warm, lookahead.history, self._relay, attempts=settings.start_attempts.value
        )
        self._pool = self._new_pool()

    def policy(self) -> WaitPolicy:
        """Return how to wait where the suite does not say otherwise."""
        timeout, interval = self.settings.wait_timeout_seconds.value, self.settings.poll_interval_seconds.value
        return WaitPolicy(timeout, interval, learned=self.settings.polling.value == "learned")

    def take(self, item: pytest.Item, defaults: Mapping[str, Any], policy: WaitPolicy) -> Mapping[str, Session]:
        """Return the test's sessions by its devices' names, the same ones until ``release``."""
        if not _taken_by(item):
            with providing(item):
                needs = self._needs(item, defaults)
                lasting = self._lasting(item, needs.values())
                self._boot_ahead(item, lasting, policy)
                held = self._taken(item, lasting, policy)
            item.stash[_TAKEN] = dict(zip(needs, held, strict=True))
            for one in held:
                if one.is_new:
                    self._meet(one)
                    item.ihook.pytest_device_ready(item=item, device_session=one.session)
        return {name: held.session for name, held in item.stash[_TAKEN].items()}

    def look_ahead(self, item: pytest.Item) -> None:
        """Let what tests to come need boot beside a test; one with a device does so when it takes its own."""
        if not (needs_of(item) or _is_forked(item)):
            self._boot_ahead(item, (), self.policy())

    def _boot_ahead(self, item: pytest.Item, own: Sequence[DeviceRequirement], policy: WaitPolicy) -> None:
        if os.getpid() != self._pid or self._refusal:
            return
        wanted = Counter(own)
        known = len(wanted)
        for following in self._lookahead.upcoming(item):
            if not _may_be_skipped(following) and not _says_more(following):
                wanted |= Counter(self._lasting(following, needs_of(following).values()))
        if len(wanted) > known:
            with suppress(DeviceError):  # which is met again when it is taken
                self._pool.expect(own, policy)
                self._pool.expect(list(wanted.elements()), self.policy())

    @contextmanager
    def lease(self, arguments: Mapping[str, Any]) -> Generator[Session]:
        """Provide a session of one's own, for as long as the block lasts."""
        item = self.item
        if item is None:
            raise RuntimeError("device_lease() is used outside of tests and their fixtures")
        with providing(item):
            need = self._need_of_ones_own(item, arguments)
            (held,) = self._taken(item, self._lasting(item, [need]), self.policy())
        try:
            yield held.session
        finally:
            held.unusable = True  # so that nobody else gets it
            self._pool.release([held], lambda _need: True)

    def release(self, item: pytest.Item, nextitem: pytest.Item | None, *, keep: bool) -> None:
        """Take the test's sessions back: stop those that no test will need, or leave them running to ``keep`` them."""
        taken = _taken_by(item)
        item.stash[_TAKEN] = {}
        self._lookahead.done(item)
        for held in [held for held in taken.values() if keep and not held.unusable]:
            self.access.keep(str(held.session.id))
            self._pool.keep(held)
        if taken and not keep:
            self._tidy(item, taken, nextitem)
        if taken or self._pool.has_any:  # a test without a device, or skipped, may be the last before the end of one
            kept: Counter[DeviceRequirement] = Counter()
            again = (
                Counter(held.requirement for held in taken.values())
                if _runs_again(item)
                else Counter[DeviceRequirement]()
            )

            def is_needed(need: DeviceRequirement) -> bool:
                kept[need] += 1
                return kept[need] <= max(self._needed_at_once(need, nextitem), again[need])

            self._pool.release(taken.values(), is_needed)

    def _meet(self, held: DeviceSession) -> None:
        """Note how the device of a new session is found, if it may be shared."""
        if held.session.type == SessionType.ARGENT and not held.requirement.sharing_key.startswith(Share.TEST):
            self._tidier_of_all().meet(held.session)

    def _tidy(self, item: pytest.Item, taken: Mapping[str, DeviceSession], nextitem: pytest.Item | None) -> None:
        """Let the devices that other tests will get forget what the test did there by the controller's own tools."""
        uses = item.stash.setdefault(USES, {})
        for name, held in taken.items():
            is_left = (
                self._needed_at_once(held.requirement, nextitem)
                or _runs_again(item)
                or self.warm.may_stay(held.requirement)
            )
            if name in uses and not held.unusable and is_left:
                held.unusable = not self._tidier_of_all().tidy(held.session, uses[name])
        uses.clear()

    def _tidier_of_all(self) -> "Tidier":
        from pytest_device.plugin.provider.cleanup import Tidier

        self._tidier = self._tidier or Tidier()
        return self._tidier

    def taken(self, item: pytest.Item) -> Mapping[str, Session]:
        """Return the sessions that a test has now."""
        return {name: held.session for name, held in _taken_by(item).items()}

    def requests(self, item: pytest.Item) -> Mapping[str, SessionRequest]:
        """Return what the sessions that a test has now were asked to be."""
        return {name: held.requirement.request for name, held in _taken_by(item).items()}

    def spend(self, item: pytest.Item) -> None:
        """Let no other test have the sessions of this one."""
        for held in _taken_by(item).values():
            held.unusable = True

    def loss(self, item: pytest.Item, error: BaseException) -> DeviceError | None:
        """Look once at the sessions of a test that failed; return what is wrong with one.

        No other test gets that one. The controller is asked where the test's error may come from its client.
        """
        if isinstance(
            error, MemoryError
        ):  # a call needs a thread, and one that finds no memory never tells that it began
            return None
        for held in _taken_by(item).values():
            problem = held.check_alive() or (_dead_controller(held.session) if _of_client(error) else None)
            if problem:
                held.unusable = True
                return problem
        return None

    def close(self, *, broken_off: bool = False) -> None:
        """Stop all sessions but those that are left up for the next run, which none is where this one is broken off."""
        if os.getpid() != self._pid:
            return
        if broken_off:
            self.warm.end()
        with suppress(StopFailedError):  # its event tells it
            self._pool.release([], lambda _need: False)
        self._pool.close()

    def _needs(self, item: pytest.Item, defaults: Mapping[str, Any]) -> dict[str, DeviceRequirement]:
        planned = item.stash.get(NEEDS, None)
        if planned is None:  # asked for while it runs, by a test that did not say so before
            item.stash[ARGUMENTS] = devices_of(item, self.settings)
            one = item.stash[ARGUMENTS].items()
            planned = {name: need_of(item, arguments, self.settings, self._names) for name, arguments in one}
            item.stash[NEEDS] = planned
            item.stash[NOT_LEFT] = True
        if not isinstance(cast("object", defaults), Mapping):  # a suite's fixture may return anything
            raise ConfigError(f"device_request_defaults gives {defaults!r}, which is no mapping of arguments")
        if not defaults:
            return planned
        if wrong := sorted(_DECIDED.intersection(defaults)):
            raise ConfigError(
                f"device_request_defaults gives {', '.join(wrong)}, which is needed before tests run: use the marker, "
                "an option or the hook pytest_device_request"
            )
        arguments = item.stash[ARGUMENTS]
        needs = {
            name: need_of(item, arguments[name], self.settings, self._names, _sized(need, defaults))
            for name, need in planned.items()
        }
        self._planned |= {needs[name]: planned[name] for name in needs}
        # What an earlier test added to the same plan is not expected to come again.
        plans, wanted = set(planned.values()), set(needs.values())
        self._pool.release([], lambda need: need in wanted or self._planned.get(need) not in plans)
        return needs

    def _need_of_ones_own(self, item: pytest.Item, arguments: Mapping[str, Any]) -> DeviceRequirement:
        if wrong := sorted(set(SHARING).intersection(arguments)):
            raise ConfigError(f"device_lease() gives a session of one's own: leave out {' and '.join(wrong)}")
        platforms = platforms_of(arguments, self.settings)
        if len(platforms) > 1:
            raise ConfigError(f"device_lease() gives one session: name one platform, not {' and '.join(platforms)}")
        chosen = dict(zip(["platform"], platforms, strict=False))
        return need_of(item, {"share": Share.TEST, **arguments, **chosen}, self.settings, self._names)

    def _taken(self, item: pytest.Item, needs: Sequence[DeviceRequirement], policy: WaitPolicy) -> list[DeviceSession]:
        if self._refusal is not None:  # nothing has changed since: the token comes from the environment
            raise UnauthorizedError(str(self._refusal), status=self._refusal.status, detail=self._refusal.detail)
        if os.getpid() != self._pid:  # a forked child: its parent's sessions are not its own
            self._pid, self._pool, self._is_forked = os.getpid(), self._new_pool(), True
        since = time.monotonic()
        try:
            held = self._pool.acquire(needs, policy)
        except UnauthorizedError as error:
            self._refusal = error
            raise
        finally:
            item.stash[WAITED] = item.stash.get(WAITED, 0.0) + time.monotonic() - since
        for one in held:
            one.user = item
            self._hide(one.session)
            if not one.is_new:
                item.user_properties += [
                    ("device_session", str(one.session.id)),
                    ("device_session_url", one.session.url),
                ]
        return held

    def _lasting(self, item: pytest.Item, needs: Iterable[DeviceRequirement]) -> list[DeviceRequirement]:
        """Return needs whose sessions are not to end before a test does that is known to take long."""
        seconds = self._lookahead.history.test_seconds(item.nodeid)
        limits = ((need, need.request.max_duration_minutes or DURATION_MAX_MINUTES) for need in needs)
        return [replace(need, minutes=needed_minutes(seconds, need.minutes, limit)) for need, limit in limits]

    def _hide(self, session: Session) -> None:
        if session.remote_config is not None:
            public = {urlsplit(url).hostname for url in (session.url, self.access.service.url)}
            self._redactor.add(*(secret for secret in session.remote_config.secrets() if secret not in public))

    def _needed_at_once(self, need: DeviceRequirement, nextitem: pytest.Item | None) -> float:
        """Return how many sessions of a need one of the tests to come has at once."""
        if self._is_forked:  # for this test alone
            return 0
        return self._lookahead.needed_at_once(self._planned.get(need, need), nextitem)

    def _new_pool(self) -> Pool:
        return Pool(
            self._factory,
            self._factory,
            clock=time.monotonic,
            sleep=self._sleep,
            relay=self._relay,
            slots=self.access.slots(self._names.holder(), self._tell),
        )


def _sized(need: DeviceRequirement, defaults: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a suite's defaults over the duration that the plan gave to a need."""
    return {"max_duration_minutes": need.request.max_duration_minutes, **defaults}


def _is_forked(item: pytest.Item) -> bool:
    """Tell whether a test is run in a process of its own (pytest-forked), which has no use for what boots here."""
    return bool(item.config.getoption("forked", default=False)) or item.get_closest_marker("forked") is not None


def _may_be_skipped(item: pytest.Item) -> bool:
    return any(item.iter_markers("skip")) or any(item.iter_markers("skipif"))


def _says_more(item: pytest.Item) -> bool:
    """Tell whether fixtures of the suite say more of its devices, or of the wait for them, when it runs."""
    info = getattr(item, "_fixtureinfo", None)
    definitions: Mapping[str, Sequence[object]] = info.name2fixturedefs if info else {}
    return any(len(definitions.get(name, ())) > 1 for name in _SAYING_MORE)


def _taken_by(item: pytest.Item) -> dict[str, DeviceSession]:
    return item.stash.get(_TAKEN, None) or {}


def _runs_again(item: pytest.Item) -> bool:
    """Tell whether pytest-rerunfailures may run a test again, on the devices that it shares."""
    plugin = item.config.pluginmanager.get_plugin("rerunfailures")
    attempt: int = getattr(item, "execution_count", 0)
    if not (plugin and attempt and item.stash.get(FAILED, False)) or is_fresh(item):
        return False
    return bool(attempt <= (plugin.get_reruns_count(item) or 0))


def _dead_controller(session: Session) -> ControllerError | None:
    from pytest_device.controllers.health import problem_of

    problem = problem_of(session)
    if problem is None:
        return None
    return ControllerError(f"the session is in progress, but {problem} ({session.url})")


def _of_client(error: BaseException) -> bool:
    return isinstance(error, OSError | ControllerError) or type(error).__module__.partition(".")[0] in _CLIENTS
