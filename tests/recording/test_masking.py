"""What a recorder leaves out: typed passwords, known secrets, paths and addresses."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_device.controllers.appium.drivers import driver
from pytest_device.redact import Redactor
from pytest_device.trace.masking import Masker
from pytest_device.trace.recorder import DeviceRecorder, Recorder
from pytest_device.trace.recording import Recording
from pytest_device.trace.screen_parsers import from_page_source
from pytest_device.trace.tree import without_typed_secrets
from pytest_device.trace.values import Device, Value
from tests.controllers.appium_servers import appium, session_on
from tests.fakes.http_server import Answer, ScriptedServer, says

ELEMENT = says({"value": {"element-6066-11e4-a52e-4f735466cecf": "e1"}})
SECRET = "token-0a1b2c3d"


class TextOfValues:
    """Keeps all values as text."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, value: Value, /) -> None:
        self.text += repr(value)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path, Redactor([SECRET]))


def typed(
    controller: ScriptedServer,
    recorder: Recorder,
    answers: Mapping[str, Answer],
    platform: str = "android",
    by: tuple[str, str] = ("id", "field"),
) -> tuple[str, Recording]:
    """Type a text into a field; return all that was recorded, as text and as values."""
    controller.answer = appium(None, element=ELEMENT, **answers)
    everything, recording = TextOfValues(), Recording()
    recorder.follow(everything)
    recorder.follow(recording)
    device = DeviceRecorder(recorder, Device("device-1", "", platform, "appium"))
    with driver(session_on(controller), {"app": None}, recorder=device) as started:
        started.find_element(*by).send_keys("hunter22")
    return everything.text, recording


@pytest.mark.parametrize(
    ("platform", "answers"),
    [
        ("android", {"password": says({"value": "true"})}),
        ("ios", {"type": says({"value": "XCUIElementTypeSecureTextField"})}),
        ("ios", {"name": says({"value": "XCUIElementTypeSecureTextField"})}),
        ("android", {"password": says({}, 500), "name": says({}, 500)}),
        (
            "android",
            {"password": says({"value": "false"}), "name": says({"value": "Password"})},
        ),
    ],
    ids=["attribute", "type", "tag", "a device that does not say", "description"],
)
def test_a_text_typed_into_a_password_field_is_not_recorded(
    controller: ScriptedServer,
    recorder: Recorder,
    platform: str,
    answers: dict[str, Answer],
) -> None:
    text, _ = typed(controller, recorder, answers, platform)

    assert "sendKeysToElement" in text
    assert "hunter22" not in text


@pytest.mark.parametrize(
    ("described", "is_recorded"), [("note", True), ("secure note", False)]
)
def test_a_field_found_by_its_description_is_not_asked_for_it(
    controller: ScriptedServer, recorder: Recorder, described: str, *, is_recorded: bool
) -> None:
    text, _ = typed(
        controller,
        recorder,
        {"password": says({"value": "false"})},
        by=("accessibility id", described),
    )

    assert ("hunter22" in text) is is_recorded
    assert not [path for path, _ in controller.asked if path.endswith("/name")]


def test_a_text_typed_into_another_field_is_recorded_unless_all_are_masked(
    controller: ScriptedServer, recorder: Recorder
) -> None:
    plain = {"password": says({"value": "false"})}
    text, recording = typed(controller, recorder, plain)
    assert "hunter22" in text
    assert [action.title for action in recording.actions] == [
        "Start driver",
        "Find {element}",
        "Type {text} into {element}",
        "Quit driver",
    ]

    recorder.typed_text = "all"
    text, _ = typed(controller, recorder, plain)
    assert "hunter22" not in text


def test_the_session_and_other_capabilities_are_not_recorded(
    controller: ScriptedServer, recorder: Recorder
) -> None:
    session = says(
        {
            "value": {
                "sessionId": "s-12345678",
                "capabilities": {"udid": "emulator-5554"},
            }
        }
    )
    text, _ = typed(controller, recorder, {"session": session})

    assert "newSession" in text
    for hidden in ("s-12345678", "emulator-5554", controller.url):
        assert hidden not in text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("{root}/tests/test_a.py", "tests/test_a.py"),
        ("cannot open /home/ada/app/build.apk", "cannot open …/build.apk"),
        ("file /Users/ada/x/y.app is gone", "file …/y.app is gone"),
        (r"C:\Users\ada\x.apk", r"…\x.apk"),
        ("https://example.org/tmp/a/b", "https://example.org/tmp/a/b"),
        ("notes://list/7 and /list/7", "notes://list/7 and /list/7"),
        ("//android.widget.Button/x", "//android.widget.Button/x"),
        (f"Bearer {SECRET}", "Bearer ***"),
    ],
)
def test_texts_have_no_secret_and_no_path_of_this_machine(
    tmp_path: Path, given: str, shown: str
) -> None:
    masker = Masker(Redactor([SECRET]), tmp_path)

    assert masker.text(given.replace("{root}", str(tmp_path))) == shown


def test_a_secret_that_is_learned_later_is_masked_from_then_on(tmp_path: Path) -> None:
    known = Redactor()
    masker = Masker(known, tmp_path)
    assert masker.text(f"a {SECRET}") == f"a {SECRET}"

    known.add(SECRET)

    assert masker.text(f"a {SECRET}") == "a ***"


def test_a_short_password_is_masked_as_a_word_and_as_a_whole_text(
    tmp_path: Path,
) -> None:
    masker = Masker(Redactor(), tmp_path)
    masker.learn("4711", "42")

    assert masker.text("code 4711 of 14711") == "code *** of 14711"
    assert masker.value({"value": "42", "count": 42}) == {"value": "***", "count": 42}
    assert masker.value({"password": "x"}) == {"password": "***"}
    other: dict[str, object] = {"passcode": 4711, "password": True}
    assert masker.value(other) == {"passcode": "***", "password": True}


def test_the_content_of_password_fields_is_left_out_of_a_tree() -> None:
    source = (
        '<hierarchy><node class="android.widget.EditText" password="true" text="abc"/>'
        '<node class="android.widget.EditText" resource-id="a:id/name" text="ada"/></hierarchy>'
    )

    assert "abc" not in without_typed_secrets(source)
    damaged = source.removesuffix("</hierarchy>")
    assert without_typed_secrets(damaged) == damaged.replace("abc", "***")
    screen = from_page_source(source)
    assert [element.text for element in screen.elements] == ["***", "ada"]


@pytest.mark.parametrize(
    "field",
    [
        '<input class="wide" name="password" value="abc"/>',
        '<input class="[x>svg]:wide" name="password" value="abc">',
        "<input class=wide type=password value='abc'>",
        """<script>if (a<b) c = '"';</script><input type="password" value="abc">""",
        '<![x[section]]><input type="password" value="abc">',
    ],
    ids=["xhtml", "html", "quotes", "script", "section"],
)
def test_a_password_field_of_a_web_page_has_no_contents(field: str) -> None:
    page = f'<html><body>{field}<textarea id="secret">def</textarea></body></html>'

    source = without_typed_secrets(page)

    assert "abc" not in source
    assert source.startswith(page.partition("value=")[0])
    texts = [element.text for element in from_page_source(page).elements]
    assert texts[-2:] == ["***", "***"]


def test_a_connection_that_breaks_while_the_trace_reads_the_device_fails_no_command(
    controller: ScriptedServer, recorder: Recorder
) -> None:
    reply = appium(None, element=ELEMENT)

    def breaks(call: str) -> Answer:
        if call.endswith(("/rect", "/screenshot", "/source", "/attribute/password")):
            raise ConnectionResetError(call)
        return reply(call)

    controller.answer = breaks
    recording = Recording()
    recorder.follow(recording)
    device = DeviceRecorder(recorder, Device("device-1", "", "android", "appium"))
    device.takes_pictures = True

    with driver(session_on(controller), {"app": None}, recorder=device) as started:
        field = started.find_element("id", "field")
        field.click()
        field.send_keys("hunter22")

    assert any(path.endswith("/screenshot") for path, _ in controller.asked)
    assert [action.error for action in recording.actions] == [None] * 5
    assert "hunter22" not in repr(recording.actions)


def test_a_log_that_is_read_becomes_lines_with_levels(
    controller: ScriptedServer, recorder: Recorder
) -> None:
    entries = [
        {"level": "WARNING", "message": "note added", "timestamp": 1},
        {"level": "SEVERE", "message": f"no {SECRET}", "timestamp": 2},
    ]
    controller.answer = appium(log=says({"value": entries}))
    recording = Recording()
    recorder.follow(recording)
    device = DeviceRecorder(recorder, Device("device-1", "", "android", "appium"))

    with driver(session_on(controller), {"app": None}, recorder=device) as started:
        started.execute("getLog", {"type": "logcat"})

    assert [(line.level, line.text, line.source) for line in recording.lines] == [
        ("warning", "note added", "logcat"),
        ("error", "no ***", "logcat"),
    ]
