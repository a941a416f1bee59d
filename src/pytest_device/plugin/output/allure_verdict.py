"""Shows verdicts in the results of Allure; its modules are imported only if a run writes them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pytest_device.plugin.output.allure import LISTENER

if TYPE_CHECKING:
    import pytest

LABEL: Final = "device_verdict"
BROKEN: Final = "broken"
"""Allure's status of a test that could not show whether the app works."""


def follow_verdicts(config: "pytest.Config") -> None:
    """Give results with a verdict the status ``broken`` from now on, if the run writes results of Allure."""
    if not config.pluginmanager.has_plugin(LISTENER):
        return

    commons = import_module("allure_commons")

    class Results:
        """A plugin of Allure itself, whose hooks have its own mark."""

        @commons.hookimpl(tryfirst=True)  # type: ignore[untyped-decorator]
        def report_result(self, result: Any) -> None:
            """Change the status before Allure writes the result."""
            if any(label.name == LABEL for label in result.labels):
                result.status = BROKEN

    results = Results()
    commons.plugin_manager.register(results)
    config.add_cleanup(lambda: commons.plugin_manager.unregister(results))


def add_verdict(config: "pytest.Config", verdict: str) -> None:
    """Add a label with the verdict to the result of the current test, if the run writes results of Allure."""
    if config.pluginmanager.has_plugin(LISTENER):
        import_module("allure").dynamic.label(LABEL, verdict)
