"""The app under test and the tags of the features."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_bdd_apply_tag(tag: str, function: Callable[..., object]) -> bool | None:
    """Map the tags ``@android`` and ``@ios`` to the device marker."""
    if tag not in {"android", "ios"}:
        return None  # pytest-bdd turns it into a marker
    pytest.mark.device(platform=tag, type="appium")(function)
    return True


@pytest.fixture
def device_appium_options() -> dict[str, str]:
    return {"appium:app": str(Path(__file__).with_name("app.xml"))}
