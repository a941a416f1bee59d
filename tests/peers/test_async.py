"""Asynchronous tests under pytest-asyncio and anyio."""

import pytest

from pytest_device.testing import FaultyService

TESTS = """
import asyncio, pytest
pytestmark = [MARK pytest.mark.device(platform="android")]

async def test_one(device_session):
    await asyncio.sleep(0)
    assert device_session.status == "in-progress"

@pytest.mark.device("alice", platform="android")
@pytest.mark.device("bob", platform="ios")
async def test_several(device_sessions):
    await asyncio.sleep(0)
    assert [session.platform for session in device_sessions.values()] == ["android", "ios"]

@pytest.mark.device(name="marker only")
async def test_with_the_marker_only():
    await asyncio.sleep(0)

class TestMethods:
    async def test_method(self, device_session):
        await asyncio.sleep(0)

@pytest.mark.device(platform=["android", "ios"])
async def test_both(device_session, device_platform):
    await asyncio.sleep(0)
    assert device_session.platform is device_platform

def test_that_is_none(device_session): pass
"""
FIXTURES = """
import asyncio, pytest, pytest_asyncio
pytestmark = [pytest.mark.asyncio, pytest.mark.device(platform="ios")]

@pytest_asyncio.fixture
async def app(device_session):
    await asyncio.sleep(0)
    yield device_session
    await asyncio.sleep(0)

@pytest_asyncio.fixture
async def found(request):
    await asyncio.sleep(0)
    return request.getfixturevalue("device_session")

@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own(device_lease):
    with device_lease(platform="android") as session:
        yield session

async def test_fixture(app, device_session): assert app is device_session
async def test_found(found): assert found.platform == "ios"
async def test_own(own, device_session): assert (own.platform, device_session.platform) == ("android", "ios")
"""


@pytest.mark.parametrize(
    ("mode", "mark"), [("strict", "pytest.mark.asyncio,"), ("auto", "")]
)
def test_pytest_asyncio_tests_get_devices(
    pytester: pytest.Pytester, service: FaultyService, mode: str, mark: str
) -> None:
    tests = (
        TESTS
        if mode == "auto"
        else TESTS.replace("def test_that_is_none", "async def test_that_is_none")
    )
    pytester.makepyfile(tests.replace("MARK", mark))

    result = pytester.runpytest(
        f"--asyncio-mode={mode}", "-W", "error::pytest.PytestWarning"
    )

    result.assert_outcomes(passed=7)
    assert service.statuses() == ["stopped"] * 3


def test_async_fixtures_can_use_devices(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(FIXTURES)

    result = pytester.runpytest()

    result.assert_outcomes(passed=3)
    assert service.statuses() == ["stopped", "stopped"]


def test_anyio_tests_get_devices_on_each_backend(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        TESTS.replace("MARK", "pytest.mark.anyio,")
        .replace("import asyncio", "import anyio")
        .replace("asyncio.", "anyio.")
    )

    result = pytester.runpytest("-v")

    result.assert_outcomes(passed=13)
    result.stdout.fnmatch_lines_random(
        ["*::test_both*asyncio*ios* PASSED *", "*::test_both*trio*android* PASSED *"]
    )
    assert service.statuses() == ["stopped"] * 3


def test_a_failed_or_cancelled_async_test_leaves_nothing(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import asyncio, pytest
        pytestmark = [pytest.mark.asyncio, pytest.mark.device(platform="android", share="test")]

        async def test_fails(device_session): assert device_session is None
        async def test_is_cancelled(device_session): raise asyncio.CancelledError
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(failed=2)
    assert service.statuses() == ["stopped", "stopped"]
