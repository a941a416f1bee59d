"""Any markers produce a request that the service accepts, or a ConfigError that names the mistake."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis.strategies import (
    characters,
    dictionaries,
    fixed_dictionaries,
    lists,
    sampled_from,
    text,
)

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.plugin.markers import (
    CI_RUN_VARIABLES,
    SINGLE,
    SessionNaming,
    devices_of,
    requirement_of,
)
from pytest_device.service.rules import InvalidBodyError, check
from pytest_device.sessions.request import SessionRequest
from pytest_device.settings import Settings, resolve
from pytest_device.spec import NAME_MAX_LENGTH
from tests.contract.document import arguments, snake_case
from tests.fuzz.values import NEAR, any_json, bodies

ID = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"
GOOD = {"platform": "ios", "app_id": ID}

argument_names = sampled_from(
    [snake_case(option) for option in NEAR if option != "appId"]
)
marks = lists(
    bodies().map(arguments) | dictionaries(argument_names, any_json, max_size=2),
    max_size=2,
)
limits = fixed_dictionaries(
    {
        Options.max_duration_minutes.ini: sampled_from(["1", "2", "30", "115"]),
        Options.max_idle_time_minutes.ini: sampled_from(["1", "10", "114"]),
        Options.app_id.ini: sampled_from([ID]),
    }
)
names_of_tests = text(characters(codec=None), min_size=1) | sampled_from(
    ["test[" + "x" * 300 + "]", "\udcff", " "]
)


class Item(pytest.Item):
    def runtest(self) -> None:
        """Do nothing: only its name and markers matter."""


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest) -> pytest.Session:
    return request.session


def item(
    session: pytest.Session, name: str, marked: list[dict[str, Any]]
) -> pytest.Item:
    test: pytest.Item = Item.from_parent(session, name=name)
    for given_arguments in marked:
        test.add_marker(pytest.mark.device(**given_arguments), append=False)
    return test


def is_accepted(body: object) -> bool:
    try:
        check(json.loads(json.dumps(body, ensure_ascii=False).encode()))
    except InvalidBodyError:
        return False
    return True


def request_of(
    test: pytest.Item, settings: Settings, environ: Mapping[str, str]
) -> SessionRequest:
    ((name, arguments),) = devices_of(test, settings).items()
    assert name == SINGLE
    return requirement_of(test, arguments, settings, SessionNaming(environ)).request


def outcome(
    test: pytest.Item, settings: Settings
) -> tuple[SessionRequest | None, Sequence[str]]:
    try:
        return request_of(test, settings, {}), ()
    except ConfigError as error:
        return None, error.problems


@given(marks, limits)
def test_any_markers_produce_a_valid_request_or_an_error(
    session: pytest.Session, marked: list[dict[str, Any]], given_limits: dict[str, str]
) -> None:
    settings = resolve({}, {}, given_limits)

    request, problems = outcome(item(session, "test_it", [GOOD, *marked]), settings)

    given_names = tuple(name for given_arguments in marked for name in given_arguments)
    assert [
        problem for problem in problems if not problem.startswith(given_names)
    ] == []
    assert request is None or is_accepted(request.to_wire())


@given(
    names_of_tests,
    dictionaries(
        sampled_from([*CI_RUN_VARIABLES, "PYTEST_XDIST_WORKER"]),
        text(characters(codec=None)),
    ),
    limits,
)
@example("test_\udcff", {}, {})
def test_a_valid_marker_produces_a_request_whatever_the_names_of_test_and_run(
    session: pytest.Session,
    name: str,
    environ: dict[str, str],
    given_limits: dict[str, str],
) -> None:
    request = request_of(
        item(session, name, [GOOD]), resolve({}, {}, given_limits), environ
    )

    assert request.name
    assert len(request.name) <= NAME_MAX_LENGTH
    assert is_accepted(request.to_wire())
