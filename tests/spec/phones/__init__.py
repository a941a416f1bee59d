"""What the public Appium drivers of phones do: rules with examples and sources, as data.

``tests/service/appium_driver/test_phones.py`` holds the local drivers to each row, and
docs/local-appium.md to the rows on which the local drivers differ. A file of rows has a
list ``ROWS``; ``FILES`` names the files.
"""

from typing import Final

from tests.spec.phones import (
    alerts,
    browser_commands,
    css,
    gestures,
    locators,
    views,
    windows,
)
from tests.spec.phones.row import Row

FILES: Final = (locators, views, alerts, gestures, browser_commands, css, windows)
ROWS: Final[tuple[Row, ...]] = tuple(row for file in FILES for row in file.ROWS)
