"""The local service, for runs in an environment where suites have many other plugins: `tox -e peers`."""

from importlib.util import find_spec

import pytest

from tests.plugin.conftest import running_service, service

__all__ = ["running_service", "service"]

PEERS = ("pytest_asyncio", "pytest_bdd", "pytest_playwright", "pytest_rerunfailures", "pytest_selenium")

collect_ignore_glob = [] if all(map(find_spec, PEERS)) else ["test_*.py"]


@pytest.fixture(autouse=True)
def _runs_are_like_a_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs share sessions as they do by default."""
    monkeypatch.delenv("DEVICE_SHARE", raising=False)
