"""The local service, for runs in an environment where suites have many other plugins: `tox -e peers`."""

from importlib.util import find_spec

import pytest

from pytest_device.testing import FaultyService
from tests.plugin import conftest as plugin

PEERS = (
    "allure_pytest",
    "flaky",
    "pyfakefs",
    "pytest_assume",
    "pytest_asyncio",
    "pytest_bdd",
    "pytest_check",
    "pytest_github_actions_annotate_failures",
    "pytest_httpx",
    "pytest_playwright",
    "pytest_rerunfailures",
    "pytest_selenium",
    "pytest_socket",
    "respx",
)

collect_ignore_glob = [] if all(map(find_spec, PEERS)) else ["test_*.py"]
configured_service = plugin.service


@pytest.fixture
def service(
    configured_service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    pytester: pytest.Pytester,
) -> FaultyService:
    """The service, for a suite with the default sharing of sessions."""
    monkeypatch.delenv("DEVICE_SHARE")
    # Every plugin takes part here but the one that runs each test itself, so that pytest-rerunfailures never does.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:flaky")
    # Else pytest-asyncio warns.
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return configured_service
