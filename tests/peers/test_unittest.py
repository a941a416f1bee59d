"""Classes: of ``unittest``, whose tests take no fixtures as arguments, and of pytest."""

import pytest

from pytest_device.testing import FaultyService

CASES = """
import unittest, pytest

@pytest.mark.device(platform="android", name="marker only")
class MarkerOnly(unittest.TestCase):
    def test_one(self): pass
    @pytest.mark.device(platform="ios")
    def test_two(self): pass

@pytest.mark.device(platform="android")
@pytest.mark.usefixtures("device_session")
class UsesFixtures(unittest.TestCase):
    def test_one(self): pass

class Base(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _device(self, device_session):
        self.session = device_session

@pytest.mark.device(platform="android")
class OnSelf(Base):
    def setUp(self): self.platform = self.session.platform
    def tearDown(self): assert self.session.status == "in-progress"
    def test_one(self): self.assertEqual(self.platform, "android")
    @unittest.skip("not today")
    def test_skipped(self): pass
    @pytest.mark.device(platform="ios")
    def test_two(self):
        for n in range(2):
            with self.subTest(n=n): self.assertEqual(self.platform, "ios")

@pytest.mark.device(platform="android")
class Asynchronous(unittest.IsolatedAsyncioTestCase):
    @pytest.fixture(autouse=True)
    def _device(self, device_session):
        self.session = device_session
    async def asyncSetUp(self): self.platform = self.session.platform
    async def test_one(self): self.assertEqual(self.platform, "android")
"""


def test_unittest_cases_get_devices(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(CASES)

    result = pytester.runpytest("-v")

    result.assert_outcomes(passed=6, skipped=1)
    result.stdout.fnmatch_lines(["devices: 4 created, 4 stopped (confirmed); *"])
    assert service.statuses() == ["stopped"] * 4


def test_a_case_that_fails_in_any_method_leaves_nothing(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import unittest, pytest
        pytestmark = pytest.mark.device(platform="android", share="test")

        class SetUp(unittest.TestCase):
            def setUp(self): self.fail("no")
            def test_one(self): pass

        class TearDown(unittest.TestCase):
            def tearDown(self): self.fail("no")
            def test_one(self): pass

        class CleanUp(unittest.TestCase):
            def test_one(self): self.addCleanup(self.fail, "no")

        class Test(unittest.TestCase):
            def test_one(self): self.fail("no")
        """
    )

    pytester.runpytest().assert_outcomes(failed=4)

    assert service.statuses() == ["stopped"] * 4


@pytest.mark.usefixtures("service")
def test_a_case_with_several_platforms_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        CASES.replace('platform="android"', 'platform=["android", "ios"]')
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: *: test_one: platform=[[]'android', 'ios'[]]: this test can't be parametrized*"
        ]
    )


def test_pytest_classes_get_devices(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        class Base:
            @pytest.fixture(autouse=True)
            def open(self, device_session, device_platform):
                self.session, self.platform = device_session, device_platform

        @pytest.mark.device(platform=["android", "ios"])
        class TestBoth(Base):
            def setup_method(self): self.seen = []
            def test_it(self): assert self.session.platform is self.platform

        @pytest.mark.device(platform="ios", share="class")
        class TestOne(Base):
            ids = set()

            def test_one(self): self.ids.add(self.session.id)
            def test_two(self): assert self.session.id in self.ids

            class TestInner(Base):
                def test_three(self, device_session): assert device_session.id not in TestOne.ids
        """
    )

    pytester.runpytest().assert_outcomes(passed=5)

    assert service.statuses() == ["stopped"] * 4
