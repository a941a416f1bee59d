"""The app under test, and what the tags of the features mean."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_bdd_apply_tag(tag: str, function: Callable[..., object]) -> bool | None:
    """Let ``@android`` and ``@ios`` say which device a scenario runs on."""
    if tag not in {"android", "ios"}:
        return None  # pytest-bdd makes a marker of it
    pytest.mark.device(platform=tag, type="appium")(function)
    return True


@pytest.fixture
def device_appium_options() -> dict[str, str]:
    return {"appium:app": str(Path(__file__).with_name("app.xml"))}
