from collections.abc import Iterator
from contextlib import closing

import pytest

from pytest_device.service.store import Store
from tests.service.world import World


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(Store.in_memory()) as store:
        yield store


@pytest.fixture
def world(store: Store) -> World:
    return World(store)
