"""What people read after a mistake or a failure: a sentence, the line of the test, and no source of ours."""

import importlib
import json
import os
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from pytest_device import auth, notifications, updates
from pytest_device.errors import hides_frames
from pytest_device.figures import MAX_SENTENCE, in_one_sentence
from pytest_device.testing import FaultyService

CONFTEST = """
import pytest
from pytest_device.auth.provider import Client, User

@pytest.fixture(scope="session")
def device_service_settings():
    users, clients = [User("ada"), User("bob")], [Client("app", ["myapp://redirect"])]
    return {"device_identity_provider": {"users": users, "clients": clients}}
"""
MISTAKES = {
    "user": (
        'device_identity_provider.sign_in("adda")',
        "unknown user 'adda': did you mean 'ada'?",
    ),
    "scope": (
        'device_identity_provider.sign_in("ada", ["openid", "profil"])',
        "the client 'app' has no scope 'profil': did you mean 'profile'?",
    ),
    "scopes": (
        'device_identity_provider.sign_in("ada", "openid profile")',
        "scopes 'openid profile' must be a list",
    ),
    "client": (
        'device_identity_provider.sign_in("ada", client_id="ap")',
        "unknown client 'ap': did you mean 'app'?",
    ),
    "endpoint": (
        'device_identity_provider.fail("tokens", "delay")',
        "unknown endpoint 'tokens': did you mean 'token'?",
    ),
    "kind": (
        'device_identity_provider.fail("token", "dealy")',
        "unknown failure 'dealy' for endpoint 'token': did you mean 'delay'?",
    ),
    "wait": (
        'device_identity_provider.wait_for_sign_in("ada", 0.01)',
        "TimeoutError: ada did not sign in within 0.01 s",
    ),
    "field": (
        'auth.AuthRequest({"clientId": "app", "redirectUrl": "a:b"})',
        "redirect_url: did you mean 'redirect_uri'?",
    ),
    "denied": (
        'device_identity_provider.fail("authorize", "deny"); device_identity_provider.sign_in("bob")',
        "the test denied the request",
    ),
    "unreachable": (
        'auth.fetch_discovery("http://127.0.0.1:1")',
        "no reply from http://127.0.0.1:1/",
    ),
    "export": (
        'device_update_service.publish("nowhere", "1.0")',
        "nowhere: has no metadata.json",
    ),
    "update": (
        'device_update_service.fail("sloow")',
        "unknown failure of the update service 'sloow': did you mean 'slow'?",
    ),
    "trigger": (
        'center().schedule({"content": {}, "trigger": {"type": "dialy"}})',
        "unknown trigger type 'dialy': did you mean 'daily'?",
    ),
    "content": (
        'center().push({"titel": "x"})',
        "content has an unknown name 'titel': did you mean 'title'?",
    ),
    "endpoint_of_push": (
        'device_push_endpoint.fail("server_eror")',
        "did you mean 'server_error'?",
    ),
}
"""A statement of a test and what its error says, by name."""
FIXTURES = {
    "device_identity_provider": ("user", "did you mean 'users'?"),
    "device_update_service": ("signin", "did you mean 'signing'?"),
    "device_notifications": (
        "handler_timeout",
        "did you mean 'handler_timeout_seconds'?",
    ),
}
"""A misspelled argument, and what the error says, by the fixture that it is for."""
MOST_LINES = 10
"""Lines of an error with its test of one statement, of which two name the fixtures; 34 to 56 with our own source."""


def suite() -> str:
    """Return a test for each mistake, and one for a mistake of the package itself."""
    tests = [
        """
import types
from datetime import UTC, datetime
from pytest_device import auth, notifications

def center():
    return notifications.NotificationCenter(
        platform="android", clock=lambda: datetime.now(UTC), handler_timeout_seconds=1
    )

def test_of_the_package():
    broken = types.ModuleType("pytest_device.broken")
    code = "from pytest_device.errors import hides_frames as __tracebackhide__\\ndef fails(): {}['x']"
    exec(compile(code, "broken.py", "exec"), vars(broken))
    broken.fails()
"""
    ]
    for name, (statement, _) in MISTAKES.items():
        fixtures = ", ".join(sorted(set(re.findall(r"device_\w+", statement))))
        tests.append(f"def test_{name}({fixtures}):\n    {statement}\n")
    return "\n".join(tests)


def errors_in(output: str) -> dict[str, str]:
    """Return what the terminal shows of each test, without its heading."""
    errors, _, _ = output.partition("= short test summary info =")
    parts = re.split(
        r"^_+ (?:ERROR at setup of )?test_(\w+) _+$", errors, flags=re.MULTILINE
    )
    return dict(zip(parts[1::2], parts[2::2], strict=False))


def test_a_mistake_is_shown_as_a_sentence_at_the_line_of_the_test(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it=suite())

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(failed=len(MISTAKES) + 1)
    errors = errors_in(result.stdout.str())
    own = errors.pop("of_the_package")
    assert "broken.py:2: KeyError" in own  # its frames explain it
    assert errors.keys() == MISTAKES.keys()
    for name, (statement, message) in MISTAKES.items():
        lines = errors[name].strip().splitlines()
        assert f">       {statement}" in lines, name
        assert any(line.startswith("E ") and message in line for line in lines), lines
        assert len(lines) <= MOST_LINES, lines
        assert "pytest_device/" not in errors[name]


def test_the_whole_traceback_is_shown_on_request(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        'def test_it(device_identity_provider): device_identity_provider.sign_in("adda")'
    )

    result = pytester.runpytest_subprocess("--full-trace", "-p", "no:cacheprovider")

    result.stdout.fnmatch_lines(["*auth/provider/server.py:*"])


def test_a_misspelled_argument_in_a_fixture_of_settings_is_named(
    pytester: pytest.Pytester,
) -> None:
    suites = {
        f"test_of_{name}": f"""
import pytest

@pytest.fixture(scope="session")
def device_service_settings(): return {{{name!r}: {{{argument!r}: 1}}}}

def test_{name}({name}): pass
"""
        for name, (argument, _) in FIXTURES.items()
    }
    pytester.makepyfile(**suites)

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(errors=len(FIXTURES))
    errors = errors_in(result.stdout.str())
    for name, (argument, meant) in FIXTURES.items():
        assert f"{name}: unknown argument {argument!r}: {meant}" in errors[name]
        assert "pytest_device/" not in errors[name]
        assert len(errors[name].strip().splitlines()) <= MOST_LINES


def test_a_wrong_value_of_the_overridden_settings_is_named(
    pytester: pytest.Pytester,
) -> None:
    returned = {
        "shape": {"device_update_service": ["signing"]},
        "name": {"device_updates": {}},
        "wrong": {"device_update_service": {"public_url": "nowhere"}},
    }
    suites = {
        f"test_of_{name}": f"""
import pytest

@pytest.fixture(scope="session")
def device_service_settings(): return {settings!r}

def test_{name}(device_update_service): pass
"""
        for name, settings in returned.items()
    }
    pytester.makepyfile(**suites)

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    errors = errors_in(result.stdout.str())
    assert (
        "device_service_settings must return a mapping of services" in errors["shape"]
    )
    assert "unknown service 'device_updates': did you mean" in errors["name"]
    assert "ConfigError: public_url 'nowhere' must be a URL" in errors["wrong"]
    for error in errors.values():
        assert ".py" not in error
        assert len(error.strip().splitlines()) <= MOST_LINES


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


@pytest.mark.parametrize("package", [auth, notifications, updates])
def test_every_module_that_a_suite_calls_hides_its_frames(package: ModuleType) -> None:
    without = [
        module.__name__
        for module in modules(package)
        if not hasattr(module, "__path__")
        and getattr(module, "__tracebackhide__", None) is not hides_frames
    ]

    assert without == []


@pytest.mark.parametrize(
    ("explanation", "sentence"),
    [
        ("", ""),
        ("no booted device", "no booted device"),
        ("it exited: -9\nThe end of its log:\n  {", "it exited: -9"),
        ("\n  it exited:\n  no memory\n  at x.js:1", "it exited: no memory"),
        (f"It exited. Capabilities: {'x' * 300}", "It exited"),
        (f"it exited; {'its log ' * 50}", "it exited"),
        ("word " * 100, f"{'word ' * 39}word…"),
        ("x" * 300, f"{'x' * MAX_SENTENCE}…"),
    ],
)
def test_a_reason_is_its_first_line_or_sentence(
    explanation: str, sentence: str
) -> None:
    assert in_one_sentence(explanation) == sentence


def test_what_a_failing_service_says_at_length_is_a_file_of_the_test(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    said = f"The queue is down. {'at line 4 of queue.js ' * 20}"
    body = json.dumps({"message": said})
    service.add_fault("create", "reply", status=500, body=body)
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.device(platform="android")
        def test_one(device_session): pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "infrastructure: create: the service failed (status 500): The queue is down",
            "*artifacts: device-artifacts/*test_one*",
            "infrastructure: test_it.py::test_one",
        ]
    )
    (file,) = pytester.path.glob("device-artifacts/*test_one*/reason.txt")
    assert file.read_text().startswith(said[:400])
    # The error and pytest's summary; a reference elsewhere.
    output = result.stdout.str()
    assert output.count("The queue is down") == 1 + ("CI" in os.environ)


@pytest.mark.parametrize("options", ["--tb=no", "--no-summary"])
def test_the_devices_section_has_the_cause_if_no_error_is_shown(
    pytester: pytest.Pytester, service: FaultyService, options: str
) -> None:
    service.add_fault("create", "reply", status=500, body="a bug")
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.device(platform="android")
        def test_one(device_session): pass
        """
    )

    result = pytester.runpytest(options)

    result.stdout.fnmatch_lines(
        ["infrastructure: test_it.py::test_one: create: the service failed * a bug"]
    )


@pytest.mark.usefixtures("service")
def test_a_lost_controller_is_shown_with_the_line_of_the_test(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest, pytest_device

        @pytest.mark.device(platform="android")
        def test_one(device_session):
            raise pytest_device.ControllerLostError("the controller does not respond")
        """
    )

    result = pytester.runpytest()

    result.stdout.fnmatch_lines(
        [
            "infrastructure: the controller does not respond",
            "test_it.py:5: ControllerLostError",
        ],
        consecutive=True,
    )


def test_errors_that_refuse_attributes_and_comparisons_fail_only_their_tests(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import dataclasses, os, pytest

        pytestmark = pytest.mark.device(platform="android", share="run")

        @dataclasses.dataclass(frozen=True)
        class Frozen(Exception):
            text: str

        class Incomparable(Exception):
            __hash__ = None

            def __eq__(self, other):
                raise RuntimeError

        def test_frozen(device_session):
            raise Frozen("plain")

        def test_frozen_secret(device_session):
            raise Frozen(os.environ["DEVICE_TOKEN"])

        def test_incomparable(device_session):
            try:
                raise Incomparable("first")
            except Incomparable as error:
                raise Incomparable("second") from error
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*Frozen: *plain*", "*Incomparable: second"])
    result.stdout.no_fnmatch_line(f"*{service.token}*")
