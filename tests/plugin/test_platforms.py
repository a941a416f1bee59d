"""Tests marked for several platforms, and runs for only some of them."""

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER

BOTH = """
import pytest

@pytest.mark.device(platform=["android", "ios"])
def test_both(device_session, device_platform):
    assert device_session.platform is device_platform

@pytest.mark.device(platform="android")
def test_android(device_session): pass

@pytest.mark.device(platform="ios")
def test_ios(device_session): pass

def test_plain(): pass
"""


def ran(result: pytest.RunResult) -> list[str]:
    """Return the names of the tests that passed, as they are shown under -v."""
    lines = [line.strip() for line in result.outlines]
    return sorted(
        line.partition("::")[2].partition(" ")[0]
        for line in lines
        if "::" in line and "PASSED" in line
    )


@pytest.fixture(autouse=True)
def platforms(service: FaultyService) -> FaultyService:
    return service


def test_a_test_marked_for_several_platforms_runs_on_each(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(BOTH)

    result = pytester.runpytest("-v")

    assert ran(result) == [
        "test_android",
        "test_both[android]",
        "test_both[ios]",
        "test_ios",
        "test_plain",
    ]


def test_it_combines_with_other_parameters_and_tests_without_fixtures(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform=("ios", "android"))

        @pytest.mark.parametrize("n", [1, 2])
        def test_counted(n): pass

        class TestIt:
            def test_method(self, device_session): pass
        """
    )

    result = pytester.runpytest("-v")

    result.assert_outcomes(passed=6)
    assert "test_counted[ios-1]" in ran(result)


def test_the_closest_marker_wins_including_that_of_a_parameter_set(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform=["ios", "android"], type="argent")

        @pytest.mark.device(platform="ios")
        def test_one(device_session): assert device_session.type == "argent"

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("platform", [
            "android", pytest.param("ios", marks=pytest.mark.device(platform="ios", max_duration_minutes=7)),
        ])
        def test_given(platform, device_session):
            assert device_session.platform == platform
            assert device_session.max_duration_minutes == (7 if platform == "ios" else 30)
        """
    )

    pytester.runpytest().assert_outcomes(passed=3)


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_run_for_one_platform_deselects_tests_for_others(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(BOTH)

    result = pytester.runpytest("--device-platform=ios", *options)

    result.assert_outcomes(passed=3, deselected=0 if options else 2)
    result.stdout.fnmatch_lines(["devices: 2 created, *"])


def test_the_option_can_be_repeated(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(BOTH)

    pytester.runpytest(
        "--device-platform=ios", "--device-platform=android"
    ).assert_outcomes(passed=5)


def test_the_ini_file_applies_only_where_markers_name_no_platform(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\ndevice_platform = ios\ndevice_type = argent\n")
    pytester.makepyfile(
        BOTH
        + "\ndef test_unmarked(device_session): assert device_session.type == 'argent'\n"
    )

    result = pytester.runpytest("-v")

    result.assert_outcomes(passed=6)
    assert "test_unmarked" in ran(result)


def test_a_project_for_both_platforms_runs_unmarked_tests_on_each(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\ndevice_platform = ios, android\n")
    pytester.makepyfile("def test_unmarked(device_platform): pass")

    assert ran(pytester.runpytest("-v")) == [
        "test_unmarked[android]",
        "test_unmarked[ios]",
    ]


def test_tests_can_be_spread_over_the_platforms_the_same_way_in_every_run(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform=["android", "ios"])
        @pytest.mark.parametrize("n", range(3))
        def test_a(n): pass

        @pytest.mark.device(platform=["android", "ios"])
        def test_b(): pass

        @pytest.mark.device(platform=["android", "ios"])
        class TestMore:
            def test_c(self): pass
            def test_d(self): pass
            def test_e(self): pass
            def test_f(self): pass
        """
    )

    together = ran(pytester.runpytest("-v", "--device-spread"))
    alone = ran(pytester.runpytest("-v", "--device-spread", "-k", "test_c"))

    assert len(together) == 8
    assert alone[0] in together
    assert {"[android]", "[ios]"} == {
        name[name.index("[") :] for name in together if "test_a" not in name
    }


def test_a_package_can_have_markers_for_its_tests(pytester: pytest.Pytester) -> None:
    for place, platform in (("outer", "android"), ("outer/inner", "ios")):
        pytester.mkpydir(place)
        (pytester.path / place / "__init__.py").write_text(
            f"import pytest\npytestmark = [pytest.mark.device(platform={platform!r}, max_duration_minutes=9)]\n"
        )
    body = (
        "def test_it(device_session): assert device_session.max_duration_minutes == 9\n"
    )
    (pytester.path / "outer" / "test_outer.py").write_text(body)
    (pytester.path / "outer" / "inner" / "test_inner.py").write_text(
        "import unittest\n"
        "def test_it(device_platform): assert device_platform == 'ios'\n"
        "class Old(unittest.TestCase):\n    def test_old(self): pass\n"
    )

    pytester.runpytest("-m", "device").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("platform=[]", "platform=[] must be android or ios"),
        (
            "platform=['android', 'windows']",
            "platform=['android', 'windows']: 'windows' must be android or ios",
        ),
        ("platform=7", "platform='7' must be android or ios"),
    ],
)
def test_an_invalid_list_of_platforms_is_refused(
    pytester: pytest.Pytester, arguments: str, problem: str
) -> None:
    pytester.makepyfile(
        test_it=f"import pytest\n@pytest.mark.device({arguments})\ndef test_driven(): pass\n"
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: test_it.py:2: test_driven: {problem}".replace("[", "[[]")]
    )


def test_a_unittest_class_has_one_platform(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest, unittest

        @pytest.mark.device(platform=["android", "ios"])
        class Old(unittest.TestCase):
            def test_old(self): pass
        """
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*test_old: platform=[[]'android', 'ios'[]]: this test can't be parametrized*"]
    )


def test_other_marks_of_a_package_stay_ignored_as_in_pytest(
    pytester: pytest.Pytester,
) -> None:
    pytester.mkpydir("package")
    (pytester.path / "package" / "__init__.py").write_text(
        "import pytest\npytestmark = pytest.mark.skip('not read')\n"
    )
    (pytester.path / "package" / "test_it.py").write_text("def test_it(): pass\n")
    # An item of a module that is none.
    (pytester.path / "test_notes.txt").write_text(">>> 1 + 1\n2\n")

    pytester.runpytest("--doctest-glob=*.txt").assert_outcomes(passed=2)


def test_a_class_is_closer_than_its_bases_and_later_marks_are_closer_than_earlier_ones(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = [pytest.mark.device(type="argent"), pytest.mark.device(type="agent-device")]

        @pytest.mark.device(platform="ios", max_duration_minutes=10)
        class Base:
            def test_it(self, device_session):
                assert device_session.max_duration_minutes == self.minutes
                assert device_session.type == "argent"

        class TestBase(Base):
            minutes = 10

        @pytest.mark.device(max_duration_minutes=20)
        class TestDerived(Base):
            minutes = 20

        class TestWritten(Base):
            pytestmark = pytest.mark.device(max_duration_minutes=21)
            minutes = 21

        class TestListed(TestWritten):
            pytestmark = [pytest.mark.device(max_duration_minutes=22)]
            minutes = 22
        """
    )

    pytester.runpytest().assert_outcomes(passed=4)


def test_a_closer_marker_drops_outer_arguments_that_conflict_with_its_own(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(
            platform="ios", build_id="11111111-2222-4333-8444-555555555555", max_idle_time_minutes=5
        )

        @pytest.mark.device(application_archive_url="https://builds.example/app.zip")
        def test_archive(device_session): assert device_session.build_id is None

        @pytest.mark.device(type="web-preview-only")
        def test_preview(device_session): assert device_session.max_idle_time_minutes is None
        """
    )

    pytester.runpytest().assert_outcomes(passed=2)


def test_a_parameter_set_has_no_own_platform_if_the_test_runs_on_several(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.device(platform=["android", "ios"])
        @pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.device(platform="ios"))])
        def test_it(n): pass
        """
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: test_it.py:3: test_it: platform='ios' of a parameter set conflicts with*"
        ]
    )


def test_tests_are_spread_over_the_selected_platforms(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        "import pytest\npytestmark = pytest.mark.device(platform={'android', 'ios'})\n"
        + "".join(f"def test_{letter}(): pass\n" for letter in "abc")
    )

    pytester.runpytest("--device-spread", "--device-platform=ios").assert_outcomes(
        passed=3
    )
    # Workers agree on the order of a set.
    pytester.runpytest("-n2").assert_outcomes(passed=6)


def test_tests_without_a_device_run_when_all_others_are_deselected(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_android(device_session): pass

        @pytest.mark.parametrize("n", range(8))
        def test_plain(n): pass
        """
    )

    result = pytester.runpytest("--device-platform=ios")

    result.assert_outcomes(passed=8, deselected=1)
    assert service.sessions() == []
