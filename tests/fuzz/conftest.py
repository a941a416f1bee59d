"""How many examples are tried: a fixed set, or far more and new ones each time.

More with ``--hypothesis-profile=long``, and at night: ``tox -e nightly``.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
TOOLS: Final = ("hypothesis", "jsonschema_rs", "schemathesis")

if all(map(find_spec, TOOLS)):
    from hypothesis import HealthCheck, settings

    # How long an example takes depends on the machine, and so would the outcome.
    SLOWNESS = (HealthCheck.too_slow, HealthCheck.filter_too_much)
    settings.register_profile(
        "bounded",
        max_examples=60,
        derandomize=True,
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=SLOWNESS,
    )
    settings.register_profile(
        "long", max_examples=10_000, deadline=None, suppress_health_check=SLOWNESS
    )
    settings.load_profile("bounded")
else:
    collect_ignore_glob = ["test_*.py"]  # the other environments do without these tools


def pytest_configure(config: pytest.Config) -> None:
    """Choose the long profile at night.

    Hypothesis reads its option before this file is loaded, unless the run is of this directory alone.
    """
    if "nightly" in config.option.markexpr and all(map(find_spec, TOOLS)):
        from hypothesis import settings

        settings.load_profile("long")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark these tests for the night as well."""
    if "nightly" not in config.option.markexpr:
        return
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.nightly)
