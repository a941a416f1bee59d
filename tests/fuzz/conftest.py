"""How many examples are tried: a fixed set, or with ``--hypothesis-profile=long`` far more, and new ones each time."""

from importlib.util import find_spec

TOOLS = ("hypothesis", "jsonschema_rs", "schemathesis")

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
