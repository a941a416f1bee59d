from collections.abc import Iterator
from contextlib import closing

import pytest

from pytest_device.service.store import Store
from tests.service.world import World, memory_store


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(memory_store()) as store:
        yield store


@pytest.fixture
def world(store: Store) -> World:
    return World(store)
