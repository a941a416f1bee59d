"""The running service follows its own document, whatever it receives."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import example, given, settings
from hypothesis.strategies import characters, text

from pytest_device.service.openapi import DOCUMENT
from pytest_device.service.rules import is_uuid
from pytest_device.spec import UNAUTHORIZED_ERROR
from tests.fakes.local_service import APP_ID, TOKEN, InProcessService, error
from tests.service.process import ServiceProcess, config, running
from tests.service.test_api import OPERATIONS, VALID

Case = schemathesis.Case[Any]
AUTHORIZATION = {"Authorization": f"Bearer {TOKEN}"}
CONFIG = schemathesis.Config.from_dict(
    {
        "seed": 0,
        "checks": {
            # These know 401 and 403 only; without a header it is a 400 here, which a test below looks at.
            "ignored_auth": {"enabled": False},
            "missing_required_header": {"enabled": False},
            # A schema cannot say all rules; the tests of the rules hold the two together.
            "positive_data_acceptance": {"enabled": False},
        },
    }
)

schema = schemathesis.openapi.from_dict(dict(DOCUMENT), config=CONFIG)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with running(config(tmp_path_factory.mktemp("service"), testing=False)) as service:
        yield service


def with_a_known_project(case: Case) -> Case:
    """Make most valid requests name the existing project, which no schema can express."""
    body: Any = case.body
    if (
        isinstance(body, dict)
        and is_uuid(str(body.get("appId")))
        and not str(body["appId"]).startswith("f")
    ):
        body["appId"] = APP_ID
    return case


def test_the_document_is_served_without_a_token(service: ServiceProcess) -> None:
    assert httpx.get(f"{service.url}/openapi.json").json() == DOCUMENT


@schema.parametrize()
def test_every_response_matches_the_document(
    case: Case, service: ServiceProcess
) -> None:
    with_a_known_project(case).call_and_validate(
        base_url=service.url, headers=AUTHORIZATION
    )


@schema.parametrize()
@settings(max_examples=settings().max_examples // 3)
def test_nothing_is_done_without_a_token(case: Case, service: ServiceProcess) -> None:
    case.headers.pop("Authorization", None)
    reply = with_a_known_project(case).call_and_validate(base_url=service.url)

    assert reply.status_code in {400, 404, 405}
    assert reply.status_code != 400 or UNAUTHORIZED_ERROR in reply.text


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@given(header=text(characters(max_codepoint=255)))
@example(header=f"Bearer {TOKEN}é")
@example(header=f"Bearer {TOKEN[:-1]}")
@example(header=f"Basic {TOKEN}")
def test_nothing_is_done_with_any_other_authorization(
    method: str, path: str, header: str
) -> None:
    with closing(InProcessService(testing=False)) as fresh:
        reply = fresh.send(
            method,
            path,
            token=None,
            headers={"Authorization": header.encode("latin-1")},
            json=VALID,
        )

        assert (reply.status_code, error(reply)["code"]) == (401, "INVALID_TOKEN")
        assert not list(fresh.sessions)


def test_every_response_about_an_own_session_matches_the_document(
    service: ServiceProcess,
) -> None:
    class Lives(schema.as_state_machine()):  # type: ignore[misc]  # made from the document
        def get_call_kwargs(self, case: Case) -> dict[str, Any]:
            del case
            return {"base_url": service.url, "headers": AUTHORIZATION}

        def before_call(self, case: Case) -> None:
            with_a_known_project(case)

    Lives.run(
        settings=settings(
            max_examples=settings().max_examples // 10, stateful_step_count=8
        )
    )
