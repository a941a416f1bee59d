"""W3C commands and ``mobile:`` scripts in the native context."""

from typing import Final

from tests.spec.phones.row import Row

ROWS: Final[tuple[Row, ...]] = ()
