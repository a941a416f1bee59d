"""The rows of the table, grouped by the kind of fault."""

from collections.abc import Mapping
from typing import Final

from tests.faults.row import Row
from tests.faults.rows import (
    crashes,
    ends,
    evidence,
    hostile,
    interrupted,
    machines,
    networks,
    plugins,
    reapers,
    services,
    sharing,
    signals,
    sweeps,
    workers,
)

GROUPS: Final[Mapping[str, tuple[Row, ...]]] = {
    "Signals": signals.ROWS,
    "Signals during a call": interrupted.ROWS,
    "A test ends its process": crashes.ROWS,
    "How pytest ends": ends.ROWS,
    "pytest-xdist": workers.ROWS,
    "Shared sessions and several devices": sharing.ROWS,
    "Other plugins": plugins.ROWS,
    "The network": networks.ROWS,
    "The service": services.ROWS,
    "A hostile service": hostile.ROWS,
    "The machine": machines.ROWS,
    "Evidence and traces": evidence.ROWS,
    "One run after another": sweeps.ROWS,
    "The reaper": reapers.ROWS,
}
ROWS: Final = tuple(row for rows in GROUPS.values() for row in rows)
