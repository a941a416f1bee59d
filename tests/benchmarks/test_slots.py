"""What waiting claims cost, how soon they are granted, and what killed processes block: the bars of benchmarks/slots.py.

The gate has few claims and no bar on time; the nightly tests have the numbers of a fleet.
"""

import shutil

import pytest
from benchmarks.slots import (
    CPU_BAR,
    GRANT_BAR,
    KILLED_BAR,
    RedisPlace,
    RedisPlaceBefore,
    blocked_on_server,
    measure_directory,
    measure_server,
)

from tests.sessions.redis_server import valkey_program

SERVERS = [
    pytest.param(valkey_program(), id="valkey"),
    pytest.param(
        shutil.which("redis-server"),
        id="redis",
        marks=pytest.mark.skipif(
            shutil.which("redis-server") is None,
            reason="install Debian's redis-server",
        ),
    ),
]


def test_waiting_claims_cost_a_fraction_of_what_they_cost_before() -> None:
    now, before = (
        measure_server(
            None, place, name=name, claims=60, limit=6, seconds=1.5, grants=10
        )
        for name, place in (("now", RedisPlace), ("before", RedisPlaceBefore))
    )

    assert now.core_share < before.core_share / 3


@pytest.mark.nightly
@pytest.mark.parametrize("program", SERVERS)
def test_five_thousand_waiting_claims_leave_a_server_idle(program: str) -> None:
    figures = measure_server(
        program,
        RedisPlace,
        name="now",
        claims=5000,
        limit=50,
        seconds=30,
        grants=300,
    )

    assert (figures.core_share <= CPU_BAR, figures.p95 <= GRANT_BAR) == (True, True), (
        str(figures)
    )


@pytest.mark.nightly
@pytest.mark.parametrize("program", SERVERS)
def test_fifty_killed_processes_block_a_server_for_half_a_minute_at_most(
    program: str,
) -> None:
    assert blocked_on_server(program, processes=50, limit=10) <= KILLED_BAR


@pytest.mark.nightly
def test_sixty_four_processes_that_wait_for_a_directory_leave_a_machine_idle() -> None:
    figures = measure_directory(claims=64, limit=4, seconds=30, grants=50)

    assert list(figures.missed()) == [], str(figures)
