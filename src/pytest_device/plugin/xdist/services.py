"""Services shared by all pytest-xdist workers, hosted by the coordinator."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.options import settings_of, usage_error
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.state import SERVICES
from pytest_device.plugin.xdist.coordinator import Worker, is_here

if TYPE_CHECKING:
    from pytest_device.sharing import ServiceHost


class SharedServices:
    """Plugin that hosts shared services; registered only if pytest-xdist distributes tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._host: ServiceHost | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Worker) -> None:
        """Give a worker on this machine access to the services if any is shared by the whole run."""
        try:
            is_for_run = settings_of(self._config).identity_scope == "run"
        except ConfigError as error:
            raise usage_error(error.problems) from None
        if is_for_run and is_here(node) and find_spec("uvicorn"):  # without it, the worker reports the missing extra
            node.workerinput[SERVICES] = self._opened().ticket

    def pytest_unconfigure(self) -> None:
        """Stop the services after the workers."""
        if self._host:
            self._host.close()

    def _opened(self) -> "ServiceHost":
        if self._host is None:
            from pytest_device.sharing import ServiceHost

            self._host = ServiceHost(redactor_of(self._config).add)
        return self._host
