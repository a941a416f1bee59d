"""Sessions for tests: taken from the pool before one, given back after it, looked after in between."""

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import pytest

from pytest_device.errors import ConfigError, ControllerError, DeviceError, UnauthorizedError
from pytest_device.plugin.access import Access
from pytest_device.plugin.collection import ARGUMENTS, NEEDS, needs_of
from pytest_device.plugin.markers import ONLY, Names, devices_of, need_of, platforms_of
from pytest_device.redact import Redactor
from pytest_device.sessions.events import Emit
from pytest_device.sessions.life import Life
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.pool import Held, Need, Pool, World
from pytest_device.sessions.request import SHARING, SessionRequest
from pytest_device.settings import Settings
from pytest_device.spec import SessionType, Share

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.agent_device import AgentDevice
    from pytest_device.controllers.argent import Argent
    from pytest_device.controllers.environment import ControllerEnvironment
    from pytest_device.plugin.tidier import Tidier

_TAKEN: Final = pytest.StashKey[dict[str, Held]]()
_DONE: Final = pytest.StashKey[bool]()
DRIVERS: Final = pytest.StashKey[dict[str, "WebDriver"]]()
"""The Appium drivers that a test has, by its devices' names."""
USES: Final = pytest.StashKey[dict[str, "Use"]]()
"""What a test was given of agent-device or argent, by its devices' names."""
PROVIDING: Final = pytest.StashKey[DeviceError]()
"""The error that was met last while a device or a driver was provided to a test."""
_DECIDED: Final = frozenset({"platform", "type", *SHARING})
"""Arguments that are needed before the first test runs."""
_CLIENTS: Final = frozenset({"appium", "selenium", "urllib3", "httpx", "httpcore", "requests", "subprocess"})
"""Packages whose errors may mean that a controller is gone."""


@dataclass(slots=True)
class Use:
    """What a test was given of one device; ``client`` is None where it has the variables alone."""

    environment: "ControllerEnvironment"
    client: "AgentDevice | Argent | None" = None


class Devices:
    """What the tests of this process have of devices.

    ``tests`` are those that will run, None where this process does not know which of them it will be given.
    """

    def __init__(
        self,
        settings: Settings,
        access: Access,
        names: Names,
        *,
        redactor: Redactor,
        emit: Emit,
        sleep: Callable[[float], None],
        tell: Callable[[str], None],
        tests: Sequence[pytest.Item] | None,
    ) -> None:
        self.settings, self.access, self._names = settings, access, names
        self._redactor, self._emit, self._sleep, self._tell = redactor, emit, sleep, tell
        self._pid = os.getpid()
        self._left: Counter[tuple[Need, int]] | None = None
        """How many tests that are left have each need, with how often they have it."""
        if tests is not None:
            self._left = Counter(one for test in tests for one in _planned(test).items())
        self._planned: dict[Need, Need] = {}
        """Of each need what it was before fixtures added to it."""
        self.item: pytest.Item | None = None
        """The test at hand, or the last one."""
        self._refusal: UnauthorizedError | None = None
        self._tidier: Tidier | None = None
        self._pool = self._new_pool()

    def policy(self) -> WaitPolicy:
        """Return how to wait where the suite does not say otherwise."""
        return WaitPolicy(self.settings.wait_timeout_seconds.value, self.settings.poll_interval_seconds.value)

    def take(self, item: pytest.Item, defaults: Mapping[str, Any], policy: WaitPolicy) -> Mapping[str, Session]:
        """Return the test's sessions by its devices' names, the same ones until ``release``."""
        if not _taken_by(item):
            with providing(item):
                needs = self._needs(item, defaults)
                held = self._taken(item, list(needs.values()), policy)
            item.stash[_TAKEN] = dict(zip(needs, held, strict=True))
            for one in held:
                if one.is_new:
                    self._meet(one)
                    item.ihook.pytest_device_ready(item=item, device_session=one.session)
        return {name: held.session for name, held in item.stash[_TAKEN].items()}

    @contextmanager
    def lease(self, arguments: Mapping[str, Any]) -> Generator[Session]:
        """Provide a session of one's own, for as long as the block lasts."""
        item = self.item
        if item is None:
            raise RuntimeError("device_lease() is used outside of tests and their fixtures")
        with providing(item):
            need = self._need_of_ones_own(item, arguments)
            (held,) = self._taken(item, [need], self.policy())
        try:
            yield held.session
        finally:
            held.is_lost = True  # so that nobody else gets it
            self._pool.give_back([held], lambda _need: True)

    def release(self, item: pytest.Item, nextitem: pytest.Item | None, *, keep: bool) -> None:
        """Take the test's sessions back: stop those that no test will need, or leave them running to ``keep`` them."""
        taken = _taken_by(item)
        item.stash[_TAKEN] = {}
        if self._left is not None and not item.stash.get(_DONE, False):  # a plugin may run a test again
            item.stash[_DONE] = True
            self._left.subtract(_planned(item).items())
        for held in [held for held in taken.values() if keep and not held.is_lost]:
            self.access.keep(str(held.session.id))
            self._pool.leave(held)
        if taken and not keep:
            self._tidy(item, taken, nextitem)
        if taken:
            kept: Counter[Need] = Counter()

            def is_needed(need: Need) -> bool:
                kept[need] += 1
                return kept[need] <= self._needed_at_once(need, nextitem)

            self._pool.give_back(taken.values(), is_needed)

    def _meet(self, held: Held) -> None:
        """Note how the device of a new session is found, if it may be shared."""
        if held.session.type == SessionType.ARGENT and not held.need.among.startswith(Share.TEST):
            self._tidier_of_all().meet(held.session)

    def _tidy(self, item: pytest.Item, taken: Mapping[str, Held], nextitem: pytest.Item | None) -> None:
        """Let the devices that other tests will get forget what the test did there by the controller's own tools."""
        uses = item.stash.setdefault(USES, {})
        for name, held in taken.items():
            if name in uses and not held.is_lost and self._needed_at_once(held.need, nextitem):
                held.is_lost = not self._tidier_of_all().tidy(held.session, uses[name])
        uses.clear()

    def _tidier_of_all(self) -> "Tidier":
        from pytest_device.plugin.tidier import Tidier

        self._tidier = self._tidier or Tidier()
        return self._tidier

    def taken(self, item: pytest.Item) -> Mapping[str, Session]:
        """Return the sessions that a test has now."""
        return {name: held.session for name, held in _taken_by(item).items()}

    def requests(self, item: pytest.Item) -> Mapping[str, SessionRequest]:
        """Return what the sessions that a test has now were asked to be."""
        return {name: held.need.request for name, held in _taken_by(item).items()}

    def spend(self, item: pytest.Item) -> None:
        """Let no other test have the sessions of this one."""
        for held in _taken_by(item).values():
            held.is_lost = True

    def loss(self, item: pytest.Item, error: BaseException) -> DeviceError | None:
        """Look once at the sessions of a test that failed; return what is wrong with one.

        No other test gets that one. The controller is asked where the test's error may come from its client.
        """
        for held in _taken_by(item).values():
            problem = held.life.loss() or (_dead_controller(held.session) if _of_client(error) else None)
            if problem:
                held.is_lost = True
                return problem
        return None

    def close(self) -> None:
        """Stop all sessions."""
        if os.getpid() == self._pid:
            self._pool.close()

    def _needs(self, item: pytest.Item, defaults: Mapping[str, Any]) -> dict[str, Need]:
        planned = item.stash.get(NEEDS, None)
        if planned is None:  # asked for while it runs, by a test that did not say so before
            item.stash[ARGUMENTS] = devices_of(item, self.settings)
            one = item.stash[ARGUMENTS].items()
            planned = {name: need_of(item, arguments, self.settings, self._names) for name, arguments in one}
            item.stash[NEEDS] = planned
            item.stash[_DONE] = True  # it was not counted among those that are left
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
        needs = {name: need_of(item, arguments[name], self.settings, self._names, defaults) for name in planned}
        self._planned |= {needs[name]: planned[name] for name in needs}
        # What an earlier test added to the same plan is not expected to come again.
        plans, wanted = set(planned.values()), set(needs.values())
        self._pool.give_back([], lambda need: need in wanted or self._planned.get(need) not in plans)
        return needs

    def _need_of_ones_own(self, item: pytest.Item, arguments: Mapping[str, Any]) -> Need:
        if wrong := sorted(set(SHARING).intersection(arguments)):
            raise ConfigError(f"device_lease() gives a session of one's own: leave out {' and '.join(wrong)}")
        platforms = platforms_of(arguments, self.settings)
        if len(platforms) > 1:
            raise ConfigError(f"device_lease() gives one session: name one platform, not {' and '.join(platforms)}")
        chosen = dict(zip(["platform"], platforms, strict=False))
        return need_of(item, {"share": Share.TEST, **arguments, **chosen}, self.settings, self._names)

    def _taken(self, item: pytest.Item, needs: Sequence[Need], policy: WaitPolicy) -> list[Held]:
        if self._refusal is not None:  # nothing has changed since: the token comes from the environment
            raise UnauthorizedError(str(self._refusal), status=self._refusal.status, detail=self._refusal.detail)
        if os.getpid() != self._pid:  # a forked child: its parent's sessions are not its own
            self._pid, self._pool, self._left = os.getpid(), self._new_pool(), Counter()
        try:
            held = self._pool.take(needs, policy)
        except UnauthorizedError as error:
            self._refusal = error
            raise
        for one in held:
            one.user = item
            self._hide(one.session)
            if not one.is_new:
                item.user_properties += [
                    ("device_session", str(one.session.id)),
                    ("device_session_url", one.session.url),
                ]
        return held

    def _hide(self, session: Session) -> None:
        if session.remote_config is not None:
            public = {urlsplit(url).hostname for url in (session.url, self.access.service.url)}
            self._redactor.add(*(secret for secret in session.remote_config.secrets() if secret not in public))

    def _needed_at_once(self, need: Need, nextitem: pytest.Item | None) -> float:
        """Return how many sessions of a need one of the tests to come has at once."""
        planned = self._planned.get(need, need)
        if self._left is not None:
            return max((count for (one, count), tests in self._left.items() if one == planned and tests > 0), default=0)
        if nextitem is None:
            return 0
        if planned.among == Share.RUN and self.settings.max_sessions.value is None:
            return inf  # with few sessions for many workers, none is held on the chance of a test
        return _planned(nextitem)[planned]

    def _new_pool(self) -> Pool:
        return Pool(
            World(
                begin=self._begin,
                clock=time.monotonic,
                sleep=self._sleep,
                leaves_unknown=self.access.leaves_unknown,
                stopping=self._stopping,
                start_attempts=self.settings.start_attempts.value,
                slots=self.access.slots(self._names.holder(), self._tell),
            )
        )

    def _begin(self, request: SessionRequest, policy: WaitPolicy) -> Life:
        from pytest_device.controllers.health import problem_of

        return Life(
            self.access.sessions(),
            request,
            policy=policy,
            clock=time.monotonic,
            emit=self._emit,
            problem_of=problem_of,
        )

    def _stopping(self, held: Held) -> None:
        if isinstance(held.user, pytest.Item):
            held.user.ihook.pytest_device_stopping(item=held.user, device_session=held.session)


def session_of(sessions: Mapping[str, Session]) -> Session:
    """Return the session of a test with one device."""
    if ONLY in sessions:
        return sessions[ONLY]
    raise ConfigError(f"this test has the devices {', '.join(sessions)}: use device_sessions, by name")


def check_type(session: Session, fixture: str, needed: SessionType) -> None:
    """Raise ConfigError when a fixture does not go with a session's type."""
    if session.type != needed:
        raise ConfigError(f"{fixture} needs type={needed.value!r}, the marker says type={str(session.type)!r}")


@contextmanager
def providing(item: pytest.Item) -> Generator[None]:
    """Note an error that is met while providing something to a test: it is not the test's, whenever it strikes."""
    try:
        yield
    except DeviceError as error:
        item.stash[PROVIDING] = error
        raise


def _planned(item: pytest.Item) -> Counter[Need]:
    return Counter(needs_of(item).values())


def _taken_by(item: pytest.Item) -> dict[str, Held]:
    return item.stash.get(_TAKEN, None) or {}


def _dead_controller(session: Session) -> ControllerError | None:
    from pytest_device.controllers.health import problem_of

    problem = problem_of(session)
    if problem is None:
        return None
    return ControllerError(f"the session is in progress, but {problem} ({session.url})")


def _of_client(error: BaseException) -> bool:
    return isinstance(error, OSError | ControllerError) or type(error).__module__.partition(".")[0] in _CLIENTS
