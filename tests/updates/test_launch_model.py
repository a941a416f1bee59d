"""The model of launches: explored whole, and held to a table of invariants."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from pytest_device.updates import (
    NOT_SPECIFIED,
    Build,
    Checked,
    Cleaned,
    Downloaded,
    EmergencyFallback,
    Launched,
    LaunchModel,
    Mode,
    NotSpecified,
    Offer,
    Rejected,
    UpdateSettings,
    play,
)
from tests.updates.launch_table import (
    BUILDS,
    CONFIGS,
    INVARIANTS,
    SCOPE,
    UPDATES,
    Step,
    day,
    letters,
    settings_of,
)

DEPTH: Final = 5
"""Maximum length of a path: on shorter ones, everything happens that can."""


def steps(config: str, of: type[LaunchModel], depth: int = DEPTH) -> Iterator[Step]:
    """Yield each transition on any path of the given length; what happens depends on the state alone."""
    alphabet = letters(config)
    start = of(replace(BUILDS["build 1"], settings=settings_of(config)))
    seen, edge = {start}, [start]
    for _ in range(depth):
        reached: list[LaunchModel] = []
        for state in edge:
            for letter, happen in alphabet.items():
                after, events = happen(state)
                yield Step(state, letter, after, events)
                if after not in seen:
                    seen.add(after)
                    reached.append(after)
        edge = reached


def broken(step: Step) -> list[str]:
    return [invariant.__name__ for invariant in INVARIANTS if not invariant(step)]


@pytest.mark.parametrize("depth", [DEPTH, pytest.param(9, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("config", CONFIGS)
def test_the_invariants_hold_on_every_path(config: str, depth: int) -> None:
    letters_seen = set[str]()
    for step in steps(config, LaunchModel, depth):
        letters_seen.add(step.letter)
        assert not broken(step), (step.letter, broken(step), step.before)
    assert letters_seen == letters(config).keys()


V1, V2 = UPDATES["v1"], UPDATES["v2"]


def fresh(config: str = "on load", **changes: Any) -> LaunchModel:
    return LaunchModel(
        replace(BUILDS["build 1"], settings=settings_of(config)), **changes
    )


def test_a_downloaded_update_is_pending_until_the_next_launch() -> None:
    model, events = fresh().launch(Offer(V1))

    assert events == (Downloaded("v1"), Launched("embedded 1", True))
    assert model.pending == V1
    model, events = model.launch()
    assert events == (Checked(False), Launched("v1", False))
    assert model.pending is None


def test_a_check_downloads_nothing_and_a_reload_uses_what_was_fetched() -> None:
    model, _ = fresh().launch()
    model, events = model.check(Offer(V1))
    assert (events, model.stored, model.is_update_available) == (
        (Checked(True),),
        (),
        True,
    )

    model, events = model.fetch(Offer(V1))
    assert events == (Downloaded("v1"),)
    assert model.running == model.embedded
    model, events = model.show_reload_screen()
    assert model.reload_screen
    assert model.hide_reload_screen()[0].reload_screen is False
    model, events = model.reload()
    assert events == (Launched("v1", False),)
    assert model.reload_screen is False


def test_a_failing_update_falls_back_once() -> None:
    model, _ = fresh().launch(Offer(V1))
    model, _ = model.launch()
    model, events = model.emergency("no such function")

    assert events == (EmergencyFallback("v1", "no such function"),)
    assert model.running == model.embedded
    for _ in range(3):
        model, events = model.launch(Offer(V1))
        assert events[-1] == Launched("embedded 1", True)
    assert model.emergency("again")[1] == (NotSpecified(NOT_SPECIFIED[2]),)


def test_unspecified_policies_are_reported_as_such() -> None:
    for policy in ("WIFI_ONLY", "ON_ERROR_RECOVERY"):
        settings = UpdateSettings.from_config(
            {"updates": {"url": SCOPE, "checkAutomatically": policy}}
        )
        _, events = LaunchModel(replace(BUILDS["build 1"], settings=settings)).launch(
            Offer(V1)
        )

        assert events == (NotSpecified(NOT_SPECIFIED[0]), Launched("embedded 1", True))
    _, events = fresh("without the embedded one").launch()
    assert events == (
        Checked(False),
        NotSpecified(NOT_SPECIFIED[1]),
        Launched("embedded 1", True),
    )


REFUSED = {
    "the development client": (fresh(mode=Mode.DEVELOPMENT_CLIENT), Offer(V1)),
    "development mode": (fresh(mode=Mode.DEVELOPMENT), Offer(V1)),
    "disabled: by_configuration": (fresh("disabled"), Offer(V1)),
    "disabled: url_missing": (LaunchModel(Build("ios", "1")), Offer(V1)),
    "disabled: storage_error": (fresh(storage_error=True), Offer(V1)),
    "time-out": (fresh(), Offer(V1, error="time-out")),
    "unexpected": (fresh(), Offer(V1, error="unexpected error")),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_check_and_fetch_are_refused(reason: str) -> None:
    model, offer = REFUSED[reason]

    for after, (event,) in (model.check(offer), model.fetch(offer)):
        assert isinstance(event, Rejected)
        assert reason in event.reason
        assert after == model


def test_a_check_sees_no_files_and_a_fetch_refuses_damaged_ones() -> None:
    damaged = Offer(UPDATES["damaged"])
    model, _ = fresh().launch()

    assert model.check(damaged)[1] == (Checked(True),)
    assert model.check(Offer(replace(V1, assets=None)))[1] == (Checked(True),)
    assert model.fetch(damaged) == (
        model,
        (Rejected("fetch", "asset 'bundle' has the hash i, expected h"),),
    )
    assert model.fetch(Offer(replace(V1, assets=None)))[0] == model


def test_cleaning_keeps_other_scopes_and_equally_new_or_newer_updates() -> None:
    same_time, foreign = (
        replace(V2, id="twin"),
        replace(V1, id="foreign", scope="https://other.example"),
    )
    older = tuple(
        replace(V1, id=f"v1.{n}", created_at=day(3) + timedelta(hours=n))
        for n in range(3)
    )
    model = fresh(stored=(*older, foreign, V2, same_time), failed=frozenset({"twin"}))

    model, events = model.launch()

    assert events == (Checked(False), Launched("v2", False), Cleaned(("v1.1", "v1.0")))
    assert [one.id for one in model.stored] == ["v1.2", "foreign", "v2", "twin"]


def test_cleaning_uses_the_builds_scope_if_the_running_update_has_none() -> None:
    embedded = replace(UPDATES["v2"], id="embedded", scope=None)
    model = replace(
        fresh(stored=(UPDATES["old"], V1)),
        build=replace(fresh().build, running=embedded),
    )

    assert model.launch()[1][-1] == Cleaned(("old",))


def test_a_new_build_ignores_updates_of_the_old_one() -> None:
    model, _ = fresh().launch(Offer(V2))
    model, _ = model.install(
        replace(BUILDS["build 2"], settings=settings_of("on load"))
    )
    model, events = model.launch(Offer(V2))

    assert Launched("embedded 2", True) in events
    assert isinstance(events[0], Checked)
    assert [one.code for one in events[0].reasons] == ["runtime_version"]


def test_overrides_are_refused_unless_a_setting_allows_them() -> None:
    model = fresh()
    for after, (event,) in (
        model.set_request_headers_override({"x-a": "1"}),
        model.set_url_and_request_headers_override("https://v.example", None),
    ):
        assert event == Rejected("override", "disableAntiBrickingMeasures is false")
        assert (after.url, dict(after.headers)) == (SCOPE, {})


def test_overrides_change_what_the_next_check_sends() -> None:
    updates = {
        "url": SCOPE,
        "disableAntiBrickingMeasures": True,
        "requestHeaders": {"x-a": "0"},
    }
    model = LaunchModel(
        replace(
            BUILDS["build 1"], settings=UpdateSettings.from_config({"updates": updates})
        )
    )
    assert model.set_url_and_request_headers_override("nowhere", None)[1]

    changed, events = model.set_url_and_request_headers_override(
        "https://v.example", {"x-a": "1"}
    )
    assert (changed.url, changed.headers, events) == (
        "https://v.example",
        {"x-a": "1"},
        (),
    )
    changed, _ = changed.set_request_headers_override(None)
    assert (changed.url, changed.headers) == ("https://v.example", {"x-a": "0"})
    changed, _ = changed.set_url_and_request_headers_override(None, None)
    assert changed == model


def test_a_month_of_launches_runs_without_waiting() -> None:
    launches = [day(4) + timedelta(hours=hours) for hours in range(30 * 24)]

    ran = [one.running.id for one, _ in play(fresh(), launches, lambda _, now: Offer(V1 if now.day < 15 else V2))
           if one.running]  # fmt: skip

    assert list(dict.fromkeys(ran)) == ["embedded 1", "v1", "v2"]
    assert ran.index("v1") == 1
