"""The reference has every public name, and its examples run; those of controllers in ``controllers/test_examples``."""

import doctest
import importlib
import json
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import pytest_device
from pytest_device import DeviceClient, SessionRequest, events
from pytest_device.controllers.snapshot import Rect
from pytest_device.figures import in_one_sentence, shortened
from pytest_device.http_status import is_temporary_status
from pytest_device.platforms.addresses import canonical
from pytest_device.plugin.markers import arguments_by_name, variants
from pytest_device.plugin.output.artifacts import file_name
from pytest_device.plugin.output.ci_report import is_github
from pytest_device.plugin.output.device_report import run_of_ci
from pytest_device.plugin.output.plan import at_once
from pytest_device.plugin.shard import weighed
from pytest_device.redact import is_secret_name
from pytest_device.report.bill import cost_of
from pytest_device.report.lines import normalize
from pytest_device.report.phase import sessions_of
from pytest_device.scheduling.estimates import (
    end_of,
    finish_time_divisible,
    next_piece_for,
)
from pytest_device.scheduling.sharding import split
from pytest_device.scheduling.sizing import needed_minutes
from pytest_device.service.programs.processes import how_ended
from pytest_device.settings import as_given, resolve
from pytest_device.spelling import closest, in_camel_case
from pytest_device.testing import FaultyService
from pytest_device.trace.recorder import level_of, masked_typed
from pytest_device.trace.tree import without_typed_secrets
from pytest_device.trace.values import filled_in
from pytest_device.verdict import Verdict
from tests.docs_pages import DOCS

PUBLIC = sorted(pytest_device._MODULE_OF)  # noqa: SLF001  # what `from pytest_device import` finds
CONTROLLERS = {"AgentDevice", "Argent", "Tool"}
"""Their examples need a device."""
WITHOUT_EXAMPLE = {
    "AppError",
    "AuthConfigError",
    "ControllerError",
    "ControllerLostError",
    "CreateDelayedError",
    "LeaseTimeoutError",
    "SessionGoneError",
    "StopDelayedError",
    "StopFailedError",
    "UnexpectedReplyError",
}
"""Errors that need an app or a controller that fails, a full service, or minutes of waiting."""
STANDALONE_PACKAGES = ["app", "auth", "notifications", "updates"]
"""Packages that know neither sessions nor options, whose names are imported from them."""
PAGES = "\n".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))


def examples_of(name: str) -> Iterator[doctest.DocTest]:
    """Yield the examples of a name and of its members."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for example in finder.find(getattr(pytest_device, name), name):
        if example.examples:
            yield example


FUNCTIONS = (
    arguments_by_name,
    as_given,
    at_once,
    canonical,
    closest,
    cost_of,
    end_of,
    file_name,
    filled_in,
    finish_time_divisible,
    how_ended,
    in_camel_case,
    in_one_sentence,
    is_secret_name,
    is_temporary_status,
    level_of,
    masked_typed,
    needed_minutes,
    next_piece_for,
    normalize,
    resolve,
    run_of_ci,
    is_github,
    sessions_of,
    shortened,
    split,
    variants,
    weighed,
    without_typed_secrets,
)
"""Functions of this package's own modules whose examples say more than their sentences."""
EXAMPLES = [
    pytest.param(example, id=example.name)
    for name in PUBLIC
    if name not in CONTROLLERS
    for example in examples_of(name)
]


@pytest.fixture
def names(service: FaultyService) -> Generator[dict[str, Any]]:
    """What the examples use without an import."""
    request = SessionRequest.from_arguments(
        app_id=service.app_id, platform="ios", type="appium"
    )
    with DeviceClient(service.url, service.token) as client:
        yield {
            **{name: getattr(pytest_device, name) for name in PUBLIC},
            "Path": Path,
            "Rect": Rect,
            "Verdict": Verdict,
            "service": service,
            "client": client,
            "request": request,
            "app_id": service.app_id,
        }
    assert set(service.statuses()) <= {"stopped", "errored", "new"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_of_a_name_runs(
    example: doctest.DocTest, names: dict[str, Any]
) -> None:
    example.globs.update(names)

    doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(example)


@pytest.mark.parametrize("package", STANDALONE_PACKAGES)
def test_the_examples_of_a_package_that_stands_alone_run(package: str) -> None:
    public_names = vars(importlib.import_module(f"pytest_device.{package}"))
    finder = doctest.DocTestFinder(exclude_empty=True)
    source = Path(pytest_device.__file__).parent
    count = 0

    for path in sorted((source / package).rglob("*.py")):
        if ">>> " not in path.read_text("utf-8"):
            continue
        name = ".".join(path.relative_to(source.parent).with_suffix("").parts)
        for example in finder.find(importlib.import_module(name), name):
            example.globs.update(public_names)
            doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(example)
            count += len(example.examples)

    assert count


def test_the_examples_of_events_run() -> None:
    names = vars(events) | {"json": json}
    example = doctest.DocTestParser().get_doctest(
        events.__doc__ or "", names, "events", None, None
    )
    assert example.examples

    doctest.DebugRunner().run(example)


def test_every_event_is_public_and_in_the_reference() -> None:
    public = set(events.__all__) - {"Event"}

    assert {kind.__name__ for kind in get_args(events.Event)} <= public
    assert {
        name
        for name in public
        if not re.search(rf"^\.\. auto\w+:: {name}\b", PAGES, re.MULTILINE)
    } == set()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_example_of_a_function_runs(function: Callable[..., object]) -> None:
    (example,) = doctest.DocTestFinder().find(function, function.__name__)
    assert example.examples

    doctest.DebugRunner().run(example)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_in_the_reference(name: str) -> None:
    assert re.search(rf"^\.\. auto\w+:: {name}\b", PAGES, re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [name for name in PUBLIC if name not in WITHOUT_EXAMPLE],
)
def test_a_public_name_has_an_example(name: str) -> None:
    assert list(examples_of(name))


@pytest.mark.parametrize("name", sorted(CONTROLLERS - {"Tool"}))
def test_every_method_of_a_controller_has_an_example(name: str) -> None:
    kind = getattr(pytest_device, name)
    methods = {
        member
        for member in dir(kind)
        if member[0] != "_" and callable(getattr(kind, member))
    }

    shown = {
        example.name.rpartition(".")[2]
        for base in kind.__mro__
        for example in doctest.DocTestFinder().find(base, base.__name__)
        if example.examples
    }

    assert methods - shown == set()
