"""What an app reports about its updates."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_device.updates import (
    Constants,
    LaunchModel,
    Mode,
    Offer,
    UpdateSettings,
    UpdatesState,
    broken_rules,
    constants_of,
    differences,
    state_of,
)
from pytest_device.updates.values import UpdateError
from tests.updates.rows import BUILD, EMBEDDED, SETTINGS, UPDATE

ID = "0f6f5a3e-9d2c-4c0b-8c9d-2b1f6d3c5a11"
MODEL = LaunchModel(
    replace(
        BUILD, running=replace(EMBEDDED, id=ID, manifest={"id": ID, "new field": 1})
    )
)
REPORTED: Mapping[str, Any] = {
    "channel": "production",
    "checkAutomatically": "ON_LOAD",
    "createdAt": "2026-01-01T00:00:00.000Z",
    "emergencyLaunchReason": None,
    "isEmbeddedLaunch": True,
    "isEmergencyLaunch": False,
    "isEnabled": True,
    "latestContext": {"isStartupProcedureRunning": False},
    "launchDuration": 12.5,
    "manifest": {"id": ID, "new field": 1},
    "runtimeVersion": "1.0",
    "updateId": ID,
    "newConstant": [1],
}


def test_constants_are_read_as_an_app_reports_them() -> None:
    constants = Constants.read(REPORTED)

    assert constants.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert constants.manifest["new field"] == 1
    assert constants.extra == {"newConstant": [1]}
    assert (
        Constants.read({"createdAt": 1767225600000}).created_at == constants.created_at
    )
    assert (
        Constants.read({"createdAt": datetime(2026, 1, 1)}).created_at  # noqa: DTZ001
        == constants.created_at
    )
    assert broken_rules(constants) == []
    assert differences(constants_of(MODEL), constants) == []


def test_differences_from_the_model_are_named() -> None:
    observed = Constants.read({**REPORTED, "isEmbeddedLaunch": False})

    assert differences(constants_of(MODEL), observed) == [
        "is_embedded_launch: False, expected True"
    ]
    assert (
        differences(constants_of(MODEL, channel="production"), Constants.read(REPORTED))
        == []
    )
    assert differences(
        constants_of(MODEL, channel="beta"), Constants.read(REPORTED)
    ) == ["channel: 'production', expected 'beta'"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"isEnabled": "yes"},
        {"isEnabled": None},
        {"channel": 1},
        {"launchDuration": True},
        {"createdAt": "yesterday"},
        {"createdAt": 1e300},
        {"manifest": None},
        {"manifest": []},
    ],
)
def test_a_constant_of_the_wrong_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UpdateError, match=next(iter(wrong))) as caught:
        Constants.read({**REPORTED, **wrong})
    assert caught.value.code == "malformed"


DISABLED: Mapping[str, Any] = {
    "isEnabled": False,
    "createdAt": None,
    "updateId": None,
    "manifest": {},
}
BREAKING: Mapping[str, tuple[Mapping[str, Any], Mode]] = {
    "channel is null in the development client and in development builds": (
        {"createdAt": None},
        Mode.DEVELOPMENT_CLIENT,
    ),
    "createdAt is null when updates are disabled": (
        {**DISABLED, "createdAt": 0},
        Mode.RELEASE,
    ),
    "createdAt is null in development mode": ({"channel": None}, Mode.DEVELOPMENT),
    "emergencyLaunchReason is null unless isEmergencyLaunch is true": (
        {"emergencyLaunchReason": "boom"},
        Mode.RELEASE,
    ),
    "manifest is empty when updates are disabled": (
        {**DISABLED, "manifest": {"id": ID}},
        Mode.RELEASE,
    ),
    "updateId is null when updates are disabled": (
        {**DISABLED, "updateId": ID},
        Mode.RELEASE,
    ),
    "updateId is a lowercase canonical UUID": ({"updateId": ID.upper()}, Mode.RELEASE),
    "isEmbeddedLaunch is true when updates are disabled": (
        {**DISABLED, "isEmbeddedLaunch": False},
        Mode.RELEASE,
    ),
    "isEmergencyLaunch runs the embedded update": (
        {"isEmergencyLaunch": True, "isEmbeddedLaunch": False},
        Mode.RELEASE,
    ),
}


@pytest.mark.parametrize("rule", BREAKING)
def test_a_violated_rule_of_the_constants_is_reported(rule: str) -> None:
    change, mode = BREAKING[rule]

    assert broken_rules(Constants.read({**REPORTED, **change}), mode) == [rule]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "settings",
    [SETTINGS, replace(SETTINGS, enabled=False)],
    ids=["enabled", "disabled"],
)
def test_the_model_follows_the_rules_of_the_constants(
    mode: Mode, settings: UpdateSettings
) -> None:
    model, _ = replace(
        MODEL, mode=mode, build=replace(MODEL.build, settings=settings)
    ).launch(Offer(replace(UPDATE, id=ID)))
    for state in (model, model.launch()[0], model.launch()[0].emergency("boom")[0]):
        assert broken_rules(constants_of(state, channel="main"), mode) == []


def test_the_hooks_state_matches_the_model() -> None:
    model, _ = MODEL.launch(Offer(UPDATE))

    assert state_of(model) == UpdatesState({"isEmbeddedLaunch": True}, True, True)
    read = UpdatesState.read(
        {
            "currentlyRunning": {"isEmbeddedLaunch": True, "x": 1},
            "isUpdatePending": True,
            "y": 2,
        }
    )
    assert (read.is_embedded_launch, read.is_update_pending, read.extra) == (
        True,
        True,
        {"y": 2},
    )
    assert state_of(model.launch()[0]).is_embedded_launch is False
    with pytest.raises(UpdateError):
        UpdatesState.read({"isUpdatePending": 1})
