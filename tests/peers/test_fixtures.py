"""Fixtures of suites that build on this plugin's, in each of pytest's ways."""

import pytest

from pytest_device.testing import FaultyService


def test_parametrized_fixtures_can_use_devices(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform=["android", "ios"])

        @pytest.fixture(params=["de", "fr"])
        def screen(request, device_session):
            return request.param, device_session.platform

        def test_screen(screen, device_platform):
            assert screen in [("de", device_platform), ("fr", device_platform)]

        @pytest.mark.parametrize("n", [1, 2])
        def test_counted(screen, n): pass
        """
    )

    pytester.runpytest().assert_outcomes(passed=12)

    assert service.statuses() == ["stopped", "stopped"]


def test_a_marked_test_can_request_its_device_at_run_time(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="android")

        @pytest.fixture
        def either(request): return request.getfixturevalue(request.node.name.removeprefix("test_"))

        def test_device_session(either, request):
            assert either is request.getfixturevalue("device_session")

        def test_device_environment(either):
            assert {"AGENT_DEVICE_DAEMON_BASE_URL", "AGENT_DEVICE_DAEMON_AUTH_TOKEN"} <= set(either)
        """
    )

    pytester.runpytest().assert_outcomes(passed=2)

    assert service.statuses() == ["stopped"]


@pytest.mark.parametrize("options", [[], ["-n2", "--dist=loadfile"]])
def test_fixtures_of_any_scope_can_lease_sessions(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def of_run(device_lease):
            with device_lease(platform="ios", name="run's own") as session: yield session

        @pytest.fixture(scope="module")
        def of_module(device_lease):
            with device_lease(platform="android", name="module's own") as session: yield session

        def pytest_device_stopping(item, device_session):
            with open("stopped.txt", "a") as file: print(item.path.name, device_session.name, file=file)
        """
    )
    suite = """
        import pytest
        ids = set()

        def test_one(of_module, of_run): ids.add(of_module.id); assert of_run.platform == "ios"
        def test_two(of_module): assert of_module.id in ids

        @pytest.mark.device(platform="android")
        def test_both(of_module, device_session): assert of_module.id != device_session.id
        """
    pytester.makepyfile(test_a=suite, test_b=suite)

    result = pytester.runpytest(*options)

    workers = 2 if options else 1
    result.assert_outcomes(passed=6)
    # What follows " · " tells sessions of one name apart.
    names = [session["name"].partition(" · ")[0] for session in service.sessions()]
    assert (names.count("run's own"), names.count("module's own")) == (workers, 2)

    stopped = (pytester.path / "stopped.txt").read_text().splitlines()
    owners = {line.partition(" · ")[0] for line in stopped}
    # Each at the end of its module.
    assert {"test_a.py module's own", "test_b.py module's own"} < owners
    assert service.statuses() == ["stopped"] * (2 * workers + 2)


def test_defaults_extend_outer_defaults(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    outer = """
        import pytest

        @pytest.fixture(scope="session")
        def build():
            return "https://builds.example/app.apk"

        @pytest.fixture
        def device_request_defaults(build):
            return {"application_archive_url": build, "max_duration_minutes": 20, "name": "outer"}
        """
    inner = """
        import pytest

        @pytest.fixture
        def device_request_defaults(device_request_defaults):
            return {**device_request_defaults, "name": "inner", "max_idle_time_minutes": 3}
        """
    test = """
        import pytest

        @pytest.mark.device(platform="android", max_duration_minutes=15, share="module")
        def test_limits(device_session):
            assert (device_session.max_duration_minutes, device_session.max_idle_time_minutes) == (15, {idle})
        """
    pytester.mkdir("inner")
    pytester.makeconftest(outer)
    pytester.makepyfile(
        **{"test_outer": test.format(idle=10), "inner/test_inner": test.format(idle=3)}
    )
    pytester.makepyfile(**{"inner/conftest": inner})

    pytester.runpytest().assert_outcomes(passed=2)

    assert sorted(session["name"] for session in service.sessions()) == [
        "inner",
        "outer",
    ]
    assert service.statuses() == ["stopped", "stopped"]


WAITS = """
    @pytest.fixture
    def device_wait_policy(SELF device_wait_policy):
        return replace(device_wait_policy, timeout_seconds=1)
"""
IN_MODULE = "import pytest\nfrom dataclasses import replace\nif True:" + WAITS.replace(
    "SELF", ""
)
IN_CLASS = WAITS.replace("SELF", "self,")
DRIVEN = """
import pytest
from dataclasses import replace

@pytest.mark.device(platform="ios")
class TestIt:
    def test_driven(self, device_session): pass
"""


@pytest.mark.parametrize(
    ("conftest", "module"),
    [(IN_MODULE, DRIVEN), ("", IN_MODULE + DRIVEN), ("", DRIVEN + IN_CLASS)],
    ids=["conftest", "module", "class"],
)
def test_a_fixture_can_set_the_wait_policy(
    pytester: pytest.Pytester, service: FaultyService, conftest: str, module: str
) -> None:
    service.add_fault("boot", "delay", seconds=3600)
    pytester.makeconftest(conftest)
    pytester.makepyfile(module)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["infrastructure: the session was not ready after * s*"]
    )
    assert service.statuses() == ["stopped"]
