"""Where the pinned browser can be tested."""

from typing import Final

import pytest

from pytest_device.service.devices.browsers import BUILT_FOR, hardware

needs_pinned_browser: Final = pytest.mark.skipif(
    hardware() != BUILT_FOR, reason=f"the pinned browser is for {BUILT_FOR} only"
)
