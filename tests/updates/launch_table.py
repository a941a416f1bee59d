"""What can happen to an app with updates, and which invariants must hold; independent of the code under test."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from operator import methodcaller
from typing import Any, Final

from pytest_device.updates import (
    Asset,
    Build,
    Cleaned,
    EmergencyFallback,
    Launched,
    LaunchModel,
    NotSpecified,
    Offer,
    Rejected,
    Signature,
    Update,
    UpdateSettings,
)
from tests.updates.rows import reference_signing

SCOPE: Final = "https://u.example/manifest"
GOOD: Final = (Asset("bundle", "h", "h", True),)
CERTIFICATE: Final = reference_signing().certificate
VALID: Final = Signature.valid(CERTIFICATE)


def day(month: int) -> datetime:
    return datetime(2026, month, 1, tzinfo=UTC)


def update(name: str, month: int, **facts: Any) -> Update:
    known = {
        "runtime_version": "1",
        "platform": "ios",
        "scope": SCOPE,
        "assets": GOOD,
        "signature": VALID,
    }
    return Update(name, created_at=day(month), **{**known, **facts})


UPDATES: Final = {
    one.id: one
    for one in (
        update("v1", 3),
        update("v2", 5),
        update("old", 1),  # older than what the build has
        update("for 2", 6, runtime_version="2"),
        update("unsigned", 7, signature=Signature.missing()),
        update("forged", 7, signature=Signature.invalid(CERTIFICATE)),
        update("damaged", 7, assets=(Asset("bundle", "h", "i", True),)),
        update("foreign", 4, scope="https://other.example"),
        update("android", 7, platform="android"),
    )
}
BUILDS: Final = {
    "build 1": Build(
        "ios",
        "1",
        None,
        update("embedded 1", 2, signature=Signature.missing()),
        SCOPE,
        CERTIFICATE,
    ),
    "build 2": Build(
        "ios",
        "2",
        None,
        update("embedded 2", 4, runtime_version="2"),
        SCOPE,
        CERTIFICATE,
    ),
}
LOADS: Final = {"1": {"old", "v1", "v2", "embedded 1"}, "2": {"for 2", "embedded 2"}}
"""What may run, by the runtime version of the build."""
CREATED: Final = {one.id: one.created_at for one in (*UPDATES.values(), *(build.running for build in BUILDS.values()))
                  if one and one.created_at}  # fmt: skip

CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "on load, waits": {"fallbackToCacheTimeout": 5000, "maxUpdatesToKeep": 3},
    "on load": {},
    "never": {"checkAutomatically": "NEVER"},
    "without the embedded one": {
        "useEmbeddedUpdate": False,
        "fallbackToCacheTimeout": 5000,
    },
    "disabled": {"enabled": False},
}


def settings_of(config: str) -> UpdateSettings:
    updates = {
        "url": SCOPE,
        "codeSigningCertificate": "certificate.pem",
        **CONFIGS[config],
    }
    return UpdateSettings.from_config({"updates": updates})


ASKED: Final = (
    "nothing",
    "v1, fast",
    "v2, fast",
    "for 2, fast",
    "unsigned, fast",
    "damaged, fast",
    "half of v2",
    "a time-out",
)
"""What a check or fetch sees; a launch sees all offers."""
Result = tuple[LaunchModel, tuple[object, ...]]


def letters(config: str) -> dict[str, Callable[[LaunchModel], Result]]:
    """Return what can happen, by name."""
    offers = {
        "nothing": Offer(),
        **{f"{name}, fast": Offer(one, seconds=1) for name, one in UPDATES.items()},
        "v2, slow": Offer(UPDATES["v2"], seconds=60),
        "half of v2": Offer(UPDATES["v2"], complete=False),
        "a roll-back": Offer(roll_back_at=day(4)),
        "a time-out": Offer(UPDATES["v2"], error="time-out"),
    }
    settings = settings_of(config)
    builds = {name: replace(build, settings=settings) for name, build in BUILDS.items()}
    return {
        **{
            f"launch: {name}": methodcaller("launch", offer)
            for name, offer in offers.items()
        },
        **{f"check: {name}": methodcaller("check", offers[name]) for name in ASKED},
        **{f"fetch: {name}": methodcaller("fetch", offers[name]) for name in ASKED},
        "launch: storage error": methodcaller("launch", storage_error=True),
        "reload": methodcaller("reload"),
        "emergency": methodcaller("emergency", "boom"),
        **{
            f"install: {name}": methodcaller("install", build)
            for name, build in builds.items()
        },
    }


@dataclass(frozen=True)
class Step:
    """One transition."""

    before: LaunchModel
    letter: str
    after: LaunchModel
    events: tuple[object, ...]

    def launched(self) -> Iterable[str]:
        return (one.update_id for one in self.events if isinstance(one, Launched))

    def fell_back(self) -> list[str]:
        return [
            one.update_id for one in self.events if isinstance(one, EmergencyFallback)
        ]

    def has(self, kind: type) -> bool:
        return any(isinstance(one, kind) for one in self.events)

    def runs(self) -> str | None:
        return self.after.running.id if self.after.running else None

    def embedded(self) -> str:
        assert self.after.build.running
        return self.after.build.running.id

    def is_on(self) -> bool:
        return self.after.settings.enabled and not self.after.storage_error

    def may_run(self) -> set[str]:
        """Return which stored updates can run, by the table."""
        since = self.after.rolled_back_at
        fit = {one.id for one in self.after.stored} & LOADS[
            self.after.build.runtime_version or ""
        ] - self.after.failed
        return {one for one in fit if since is None or CREATED[one] > since}


def launches_only_what_fits(step: Step) -> bool:
    return all(
        one in LOADS[step.after.build.runtime_version or ""] for one in step.launched()
    )


def can_always_launch_the_embedded_one(step: Step) -> bool:
    return _launches_the_embedded_one(step.after)


@cache  # many transitions end in the same state
def _launches_the_embedded_one(state: LaunchModel) -> bool:
    step = Step(state, "", *state.launch(storage_error=True))
    return step.embedded() in step.launched()


def keeps_the_running_one(step: Step) -> bool:
    return step.runs() in (
        None,
        step.embedded(),
        *(one.id for one in step.after.stored),
    )


def falls_back_once_for_each_failing_update(step: Step) -> bool:
    new = [
        one
        for one in step.fell_back()
        if one not in step.before.failed and one in step.after.failed
    ]
    downloaded = (
        step.before.running is not None and step.before.running.id != step.embedded()
    )
    return new == step.fell_back() and len(new) == int(
        step.letter == "emergency" and downloaded
    )


def never_forgets_a_failing_update(step: Step) -> bool:
    return step.before.failed <= step.after.failed


def never_launches_a_failing_update_again(step: Step) -> bool:
    return not step.before.failed & set(step.launched())


def an_emergency_runs_the_embedded_one_and_names_its_reason(step: Step) -> bool:
    in_emergency = step.after.emergency_reason is not None
    return (not in_emergency or step.runs() == step.embedded()) and (
        not step.fell_back() or in_emergency
    )


def a_check_downloads_nothing(step: Step) -> bool:
    return (
        not step.letter.startswith("check") or step.after.stored == step.before.stored
    )


def a_download_changes_nothing_that_runs(step: Step) -> bool:
    return (
        not step.letter.startswith(("check", "fetch"))
        or step.after.running == step.before.running
    )


def a_start_takes_the_newest_that_may_run(step: Step) -> bool:
    if step.letter not in ("reload", "launch: nothing") or not step.is_on():
        return True
    best = max(step.may_run(), key=CREATED.__getitem__, default=step.embedded())
    if step.after.settings.use_embedded_update:
        best = max(best, step.embedded(), key=CREATED.__getitem__)
    return step.runs() == best


def nothing_newer_is_available_after_a_reload(step: Step) -> bool:
    return step.letter != "reload" or not step.after.is_update_available


def a_slow_download_waits_for_the_next_launch(step: Step) -> bool:
    known = [one.id for one in step.before.stored]
    return step.letter != "launch: v2, slow" or "v2" in known or step.runs() != "v2"


def a_fast_download_is_launched_if_the_launch_may_wait(step: Step) -> bool:
    is_due = (
        step.is_on()
        and step.after.settings.fallback_to_cache_timeout
        and "v2" in step.may_run()
    )
    return step.letter != "launch: v2, fast" or not is_due or step.runs() == "v2"


def what_is_downloaded_is_complete(step: Step) -> bool:
    new = {one.id for one in step.after.stored} - {one.id for one in step.before.stored}
    return not new or not any(
        word in step.letter
        for word in ("half", "damaged", "time-out", "roll-back", "nothing")
    )


def what_is_fetched_is_newer_than_what_runs(step: Step) -> bool:
    new = {one.id for one in step.after.stored} - {one.id for one in step.before.stored}
    runs = step.runs()
    return (
        not step.letter.startswith("fetch")
        or runs is None
        or all(CREATED[one] > CREATED[runs] for one in new)
    )


def only_the_policy_on_load_downloads_at_a_launch(step: Step) -> bool:
    new = {one.id for one in step.after.stored} - {one.id for one in step.before.stored}
    return (
        not step.letter.startswith("launch")
        or not new
        or step.after.settings.check_automatically == "ON_LOAD"
    )


def a_roll_back_that_is_newer_than_what_runs_is_kept(step: Step) -> bool:
    checks = (
        step.letter == "launch: a roll-back"
        and step.is_on()
        and not step.has(NotSpecified)
    )
    is_due = (
        checks
        and step.after.settings.check_automatically == "ON_LOAD"
        and CREATED[step.runs() or ""] < day(4)
    )
    return not is_due or step.after.rolled_back_at == day(4)


def disabled_updates_refuse_to_check_and_to_fetch(step: Step) -> bool:
    return (
        step.is_on()
        or not step.letter.startswith(("check", "fetch"))
        or step.has(Rejected)
    )


def disabled_updates_run_the_embedded_one_only(step: Step) -> bool:
    return step.is_on() or step.runs() in (None, step.embedded())


def a_roll_back_ends_what_is_older(step: Step) -> bool:
    since = step.before.rolled_back_at
    return since is None or all(
        CREATED[one] > since or one == step.embedded() for one in step.launched()
    )


def cleaning_spares_the_running_and_all_newer_ones(step: Step) -> bool:
    gone = [
        one
        for event in step.events
        if isinstance(event, Cleaned)
        for one in event.update_ids
    ]
    runs = step.runs()
    return all(runs is not None and CREATED[one] < CREATED[runs] for one in gone)


def cleaning_leaves_as_many_as_are_to_be_kept(step: Step) -> bool:
    if not any(step.launched()) or not step.is_on():
        return True
    older = [
        one for one in step.after.stored if CREATED[one.id] < CREATED[step.runs() or ""]
    ]
    return len(older) < step.after.settings.max_updates_to_keep


INVARIANTS: Final[tuple[Callable[[Step], bool], ...]] = (
    launches_only_what_fits,
    can_always_launch_the_embedded_one,
    keeps_the_running_one,
    falls_back_once_for_each_failing_update,
    never_forgets_a_failing_update,
    never_launches_a_failing_update_again,
    an_emergency_runs_the_embedded_one_and_names_its_reason,
    a_check_downloads_nothing,
    a_download_changes_nothing_that_runs,
    a_start_takes_the_newest_that_may_run,
    nothing_newer_is_available_after_a_reload,
    a_slow_download_waits_for_the_next_launch,
    a_fast_download_is_launched_if_the_launch_may_wait,
    what_is_downloaded_is_complete,
    what_is_fetched_is_newer_than_what_runs,
    only_the_policy_on_load_downloads_at_a_launch,
    a_roll_back_that_is_newer_than_what_runs_is_kept,
    disabled_updates_refuse_to_check_and_to_fetch,
    disabled_updates_run_the_embedded_one_only,
    a_roll_back_ends_what_is_older,
    cleaning_spares_the_running_and_all_newer_ones,
    cleaning_leaves_as_many_as_are_to_be_kept,
)
