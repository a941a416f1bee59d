"""failure.json and failure.md: the same values for programs and for readers."""

import json
from dataclasses import replace

import pytest

from pytest_device.report.steps import MAX_STEPS, steps_of_phase
from pytest_device.trace.failure_report import (
    MAX_ACTIONS,
    MAX_ELEMENTS,
    VERSION,
    DeviceScreen,
    FailureReport,
    ReportedDevice,
    ReportedLine,
    Source,
    Step,
    Waited,
    failed_locator,
    last_actions,
    to_json,
    to_markdown,
)
from pytest_device.trace.screen import Dialect, Element, Screen
from pytest_device.trace.values import Action, Device, Failure, Frame, Locator
from tests.docs_pages import DOCS
from tests.trace.screens import SCREENS

SIGN_OUT = Locator("accessibility id", "sign-out")
PHONE = Device("device-1", "alice", "android", "appium")
REPORT = FailureReport(
    test="test_it.py::test_signs_out",
    attempt=2,
    when="call",
    error_type="NoSuchElementException",
    error_message="no such element",
    verdict="test",
    source=Source("test_it.py", 2, "test_signs_out", 1, ["def test():", "    tap()"]),
    waited=Waited("presence_of_element_located", 10, 10.2, SIGN_OUT, "no sign-out"),
    locator=SIGN_OUT,
    failed_on="alice",
    devices=[ReportedDevice("alice", "android", "appium", "Pixel 8", "id", "page")],
    screens=[
        DeviceScreen("alice", SCREENS["android"]),
        DeviceScreen("bob", SCREENS["ios"]),
    ],
    log=[ReportedLine("alice", "logcat", "crashed")],
    files=["alice/screenshot.png"],
    missing=["no logcat.txt of the device: gone"],
)


def action(key: str, method: str = "findElement", **more: object) -> Action:
    values: dict[str, object] = {
        "parent": "",
        "start": 1000.0,
        "kind": "command",
        "class_name": "Device",
        "title": "Find {element}",
        "params": {"element": "accessibility id 'x'"},
        "end": 1500.0,
    }
    return Action(key=key, method=method, **(values | more))  # type: ignore[arg-type]


def test_the_json_has_the_documented_fields() -> None:
    failure = json.loads(json.dumps(to_json(REPORT)))

    assert list(failure) == [
        "version",
        "test",
        "attempt",
        "when",
        "error",
        "verdict",
        "source",
        "waited",
        "nearest",
        "actions",
        "device",
        "tree",
        "log",
        "files",
        "missing",
    ]
    assert failure["version"] == VERSION == 1
    assert failure["nearest"]["summary"].endswith("no match; nearest 'sign-in'")
    assert failure["waited"]["locator"]["value"] == "sign-out"


def test_the_documentation_names_every_field() -> None:
    page = (DOCS / "failures.md").read_text()
    failure = to_json(REPORT)
    names = [
        *failure,
        *failure["waited"],
        *failure["source"],
        *failure["nearest"],
        *failure["device"][0],
        *failure["tree"][0],
        *failure["tree"][0]["elements"][0],
    ]

    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_text_begins_with_what_a_reader_needs_first() -> None:
    lines = [line for line in to_markdown(REPORT).splitlines() if line]

    assert lines[:9] == [
        "# test_it.py::test_signs_out",
        "```",
        "NoSuchElementException: no such element",
        "```",
        "- verdict: test, in call, attempt 2",
        "- waited 10.2 s (timeout 10 s) for presence_of_element_located of accessibility id 'sign-out': no sign-out",
        "- accessibility id 'sign-out': no match; nearest 'sign-in'",
        "- device: alice: android appium on Pixel 8, page",
        "## Source",
    ]


def test_the_text_has_a_section_for_each_value_that_there_is() -> None:
    def titles(report: FailureReport) -> list[str]:
        lines = to_markdown(report).splitlines()
        return [line[3:] for line in lines if line.startswith("## ")]

    assert titles(REPORT) == [
        "Source",
        "Nearest elements",
        "Screen of alice",
        "Screen of bob",
        "Log since the last action",
        "Files",
        "Not collected",
    ]
    bare = replace(REPORT, source=None, screens=(), log=(), files=(), missing=())
    assert titles(bare) == []


def test_a_text_with_code_fences_stays_one_block() -> None:
    text = to_markdown(replace(REPORT, error_message="```\nend\n```"))

    assert "````\nNoSuchElementException: ```\nend\n```\n````" in text


def test_a_typed_text_of_several_lines_stays_in_its_item() -> None:
    typed = Step("Type 'milk\n\n## Files' into id 'note'")

    lines = to_markdown(replace(REPORT, actions=[typed])).splitlines()

    assert r"- -0.0 s Type 'milk\n\n## Files' into id 'note'" in lines


def test_a_long_message_is_cut_in_the_text_and_whole_in_json() -> None:
    long = replace(REPORT, error_message="\n".join(map(str, range(100))))

    assert "… 60 more lines" in to_markdown(long)
    assert to_json(long)["error"]["message"].endswith("\n99")


def test_a_long_tree_is_cut() -> None:
    elements = tuple(Element("b", id=f"row-{number}") for number in range(2000))
    screen = DeviceScreen("alice", Screen(Dialect.ANDROID, elements))

    (tree,) = to_json(replace(REPORT, screens=[screen]))["tree"]

    assert (len(tree["elements"]), tree["is_truncated"]) == (MAX_ELEMENTS, True)


def test_the_nearest_elements_are_of_the_device_on_which_it_failed() -> None:
    on_bob = replace(REPORT, failed_on="bob")

    assert to_json(on_bob)["nearest"]["elements"][0]["type"] == "XCUIElementTypeButton"
    assert to_json(replace(REPORT, failed_on="nobody"))["nearest"] is None
    # Its screen could not be read.
    only_alice = replace(on_bob, screens=REPORT.screens[:1])
    assert to_json(only_alice)["nearest"] is None


def test_the_last_ten_actions_of_the_suite_are_kept() -> None:
    actions = [
        action(f"call@{number}", title=f"Find {number}", start=number * 100.0)
        for number in range(20)
    ]
    noise = [
        action("step@1", "hook", kind="step"),
        action("call@99", "newSession", group="configuration"),
    ]

    steps = last_actions([*actions, *noise], 2000.0)

    assert len(steps) == MAX_ACTIONS == 10
    assert [step.seconds_before for step in steps][::9] == [1.0, 0.1]


def test_a_step_of_the_suite_is_an_action_with_its_line_and_device() -> None:
    frames = (Frame("pages.py", 7), Frame("test_it.py", 3))
    made = [action("step@1", "step", kind="step", stack=frames, device=PHONE, end=None)]

    (step,) = last_actions(made, 1500.0)

    assert (step.title, step.at) == ("Find accessibility id 'x'", "pages.py:7")
    assert (step.device, step.seconds, step.seconds_before) == ("alice", None, 0.5)


def test_a_wait_stands_for_its_commands() -> None:
    error = Failure("no such element", "nothing\nat all")
    made = [
        action("wait@1", "waitFor", kind="wait"),
        action("call@1", parent="wait@1", error=error),
        action("call@2", parent="wait@1", error=replace(error, message="gone")),
    ]

    (step,) = last_actions(made, 2000.0)

    assert step.error == "gone"


LINE = (Frame("test_it.py", 3),)
OTHER_LINE = (Frame("test_it.py", 4),)
OTHER_PHONE = replace(PHONE, key="device-2", name="bob")


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        ([("find", LINE)] * 3, ["find × 3 in 2.5 s"]),
        (
            [("Tap", LINE), *[("find", LINE), ("text", LINE)] * 12],
            ["Tap", "find × 12 in 22.5 s", "text × 12 in 22.5 s"],
        ),
        (
            [*[("find", LINE)] * 2, *[("find", LINE), ("text", LINE)] * 2],
            ["find × 4 in 4.5 s", "text × 2 in 2.5 s"],
        ),
        ([("find", LINE), ("find", OTHER_LINE)], ["find", "find"]),
        (
            [("find", LINE), ("Tap", LINE)] * 2,
            ["find", "Tap", "find", "Tap"],
        ),
        ([("Tap", LINE)] * 3, ["Tap × 3 in 2.5 s"]),
        ([("find", LINE), *[(str(n), LINE) for n in range(8)]] * 2, [str(n) for n in range(8)]),
    ],
    ids=[
        "a look-up",
        "a round of two after an action",
        "a round that grows",
        "from two lines",
        "with an action in between",
        "the same action",
        "too many different ones",
    ],
)  # fmt: skip
def test_what_a_loop_repeats_is_one_action(
    made: list[tuple[str, tuple[Frame, ...]]], shown: list[str]
) -> None:
    actions = [
        action(
            f"call@{number}",
            title=title,
            start=number * 1000.0,
            end=number * 1000.0 + 500.0,
            stack=stack,
            is_acting=title == "Tap",
            device=PHONE,
        )
        for number, (title, stack) in enumerate(made)
    ]

    steps = last_actions(actions, 30_000.0)

    assert [step.title for step in steps][-len(shown) :] == shown


def test_the_steps_of_the_report_have_what_a_loop_repeats_once() -> None:
    phase = action("step@1", "hook", title="Test", kind="step", end=60_000.0)
    wait = action("wait@1", "waitFor", title="Wait", kind="wait", parent="step@1")
    polls = [
        action(f"call@{whole}{n}", parent=whole, start=n * 100.0, end=n * 100.0 + 50)
        for whole in ("wait@1", "step@1")
        for n in range(2 * MAX_STEPS)
    ]
    tap = action("call@1", "click", title="Tap", parent="step@1", is_acting=True)

    steps = steps_of_phase([phase, tap, wait, *polls], "Test", lambda time: time / 1000)

    repeated = f"Find accessibility id 'x' × {2 * MAX_STEPS} in 40.0 s"
    assert [step.title for step in steps] == ["Tap", "Wait", repeated]
    assert [part.title for part in steps[1].steps] == [repeated]


def test_a_repeated_look_up_has_the_last_error_and_is_not_ended_by_another_device() -> (
    None
):
    error = Failure("no such element", "not yet")
    made = [
        action("call@1", device=PHONE, error=error),
        action("call@2", "clickElement", device=OTHER_PHONE, is_acting=True),
        action(
            "call@3", device=PHONE, error=replace(error, message="gone"), end=2000.0
        ),
    ]

    first, other = last_actions(made, 3000.0)

    assert (first.title, first.error) == (
        "Find accessibility id 'x' × 2 in 1.0 s",
        "gone",
    )
    assert (first.seconds, other.device) == (1.0, "bob")


@pytest.mark.parametrize(
    ("actions", "found"),
    [
        ([], (None, "")),
        ([action("a", locator=SIGN_OUT)], (None, "")),
        (
            [
                action("a", locator=SIGN_OUT, error=Failure("stale", ""), device=PHONE),
                action("b"),
            ],
            (SIGN_OUT, "alice"),
        ),
    ],
)
def test_the_failed_locator_is_that_of_the_last_action_that_failed(
    actions: list[Action], found: tuple[Locator | None, str]
) -> None:
    assert failed_locator(actions) == found


def test_the_terminal_shows_the_first_missing_piece_unless_the_verdict_says_it() -> (
    None
):
    missing = ["no screenshot.png of the device: status 502", "no screen.txt"]
    report = replace(REPORT, missing=missing)

    assert (
        report.missing_line()
        == "no screenshot.png of the device: status 502 (and 1 more)"
    )
    assert replace(report, missing=missing[:1]).missing_line() == missing[0]
    assert replace(report, verdict="infrastructure").missing_line() == ""
