"""Sessions that last as long as their tests took in earlier runs."""

import json

import pytest

from pytest_device.testing import FaultyService

SUITE = """
import pytest

@pytest.fixture
def device_request_defaults(request):
    return {{"launch_args": ["--fresh"]}} if {defaults} else {{}}

@pytest.mark.device(platform="android", vendor_go=True)
@pytest.mark.parametrize("n", range(3))
def test_many(device_session, n):
    assert device_session.max_duration_minutes == 10

@pytest.mark.device(platform="ios", vendor_go=True, max_duration_minutes=20)
def test_fixed(device_session):
    assert device_session.max_duration_minutes == 20

@pytest.mark.device(platform="ios", vendor_go=True)
def test_unknown(device_session):
    assert device_session.max_duration_minutes == 30
"""


@pytest.fixture
def known(
    service: FaultyService, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> FaultyService:
    monkeypatch.delenv("DEVICE_SHARE")
    monkeypatch.setenv("DEVICE_SIZE_DURATIONS", "true")
    cache = pytester.mkdir(".pytest_cache") / "v" / "device"
    cache.mkdir(parents=True)
    seconds = {f"test_it.py::test_many[{n}]": 90.0 for n in range(3)} | {
        "test_it.py::test_fixed": 90.0
    }
    (cache / "test_seconds").write_text(json.dumps(seconds))
    return service


@pytest.mark.parametrize(
    ("distributed", "defaults"),
    [
        ([], True),
        (["-n2"], False),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (([], False), (["-n2"], True))
        ),
    ],
)
def test_a_run_requests_durations_from_its_history(
    pytester: pytest.Pytester,
    known: FaultyService,
    distributed: list[str],
    *,
    defaults: bool,
) -> None:
    pytester.makepyfile(test_it=SUITE.format(defaults=defaults))

    pytester.runpytest(*distributed).assert_outcomes(passed=5)

    assert set(known.statuses()) == {"stopped"}
