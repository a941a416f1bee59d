"""The run that only says what it would do."""

import pytest

from pytest_device.plugin import dry_run, plan
from pytest_device.settings import Settings


class Telling:
    """Registered where no test is to run: ``--device-dry-run``, ``--device-plan``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Say what was asked for, in place of the tests."""
        if self._settings.dry_run:
            dry_run.show(session.items, session.config)
        if self._settings.plan:
            plan.show(session.items, session.config, self._settings)
        return True
