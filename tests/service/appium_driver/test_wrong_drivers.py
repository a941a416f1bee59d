"""Each row of tests/spec/phones fails with a driver that breaks its rule: no row holds whatever a driver does."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import pytest_device
from pytest_device.local import LocalService
from pytest_device.spec import Platform
from tests.service.appium_driver.conftest import booted, driven, with_own_driver
from tests.service.appium_driver.test_phones import APP, check
from tests.spec.phones import ROWS
from tests.spec.phones.row import ANDROID, APP_ID, IOS

DRIVER: Final = Path(pytest_device.__file__).parent / "service/appium_driver"


@dataclass(frozen=True)
class Change:
    """A change of a file of the driver: a text that it has once, and another one."""

    file: str
    old: str
    new: str


WRONG: Final[dict[str, tuple[Change, ...]]] = {
    "sends commands for web pages to the page": (
        Change("browser-commands.js", "Object.hasOwn(ANSWERS, command)", "false"),
        Change(
            "mobile.js",
            "throw new errors.UnknownCommandError(`the local",
            "return { result: 1, logs: {} }; void (`the local",
        ),
        Change(
            "elements.js",
            "const rect = { x: 0, y: 0, width,",
            "const rect = { x: 0, y: 0, width: 0,",
        ),
    ),
    "finds by any attribute": (
        Change(
            "page-find.js",
            "default: return compared(condition, node.attributes"
            "[condition.attribute] ?? '');",
            "default: return Object.values(node.attributes).some((is) =>"
            " TESTS.contains(is, String(condition.expected).split('/').at(-1)));",
        ),
        Change(
            "selectors.js",
            "return NATIVE[app.platform][strategy](selector, app);",
            "return (NATIVE[app.platform][strategy] ?? NATIVE[app.platform].id)"
            "(selector, app);",
        ),
        Change("selectors.js", "if (strategies.includes(strategy)) return;", "return;"),
    ),
    "takes each invalid locator for one of all views": (
        Change(
            "selectors.js",
            "if (error instanceof SyntaxError) {",
            "if (error instanceof Error) return anywhere(); else {",
        ),
        Change(
            "selectors.js",
            "if (!SCROLL_STRATEGIES.includes(strategy)) {",
            "if (false) {",
        ),
        Change(
            "page-find.js",
            "if (variable) throw",
            "if (variable) return descendants(from); if (false) throw",
        ),
        Change(
            "page-find.js",
            "throw new Refusal('selector', `${xpath} is not a valid XPath for"
            " elements: ${error",
            "return descendants(from); void (`${xpath} is not a valid XPath for"
            " elements: ${error",
        ),
        Change(
            "page-find.js",
            "throw new Refusal('selector', 'Last method",
            "return [document.body]; void ('Last method",
        ),
        Change(
            "elements.js",
            "const part = !many && query.any ? query.any[0] : query;",
            "const part = query.any ? query.any.at(-1) : query;",
        ),
    ),
    "finds all views": (
        Change(
            "page-find.js",
            "const nodes = 'xpath' in query ?",
            "return descendants(root).map((node) => node.element);"
            " const nodes = 'xpath' in query ?",
        ),
    ),
    "finds nothing": (
        Change(
            "page-find.js",
            "const nodes = 'xpath' in query ?",
            "return []; const nodes = 'xpath' in query ?",
        ),
    ),
    "describes each view alike": (
        Change("page-tree.js", "class: androidClass(facts),", "class: 'x',"),
        Change("page-tree.js", "type: iosType(facts, element),", "type: 'x',"),
        Change("elements.js", "attributes.selected === 'true'", "true"),
        Change(
            "elements.js", "String(attributes[attribute] ?? null)", "attributes[lower]"
        ),
        Change(
            "elements.js",
            "throw unknownAttribute(name, IOS_ATTRIBUTES)",
            "return name",
        ),
        Change(
            "elements.js",
            "throw unknownAttribute(name, ANDROID_ATTRIBUTES)",
            "return name",
        ),
        Change("page-tree.js", "facts.range !== null", "false"),
        Change("mobile.js", "const locale = localeOf(", "const locale = String("),
        Change(
            "page.js",
            "answer.isStale) throw stale(element)",
            "answer.isStale) return {}",
        ),
        Change(
            "page-tree.js", "&& keyboardShown(target))", "&& !keyboardShown(target))"
        ),
        # The answers of iOS to these are those of a driver without the command, too.
        Change("browser-commands.js", "getCookie: {", "getCookie: {}, x: {"),
        Change(
            "browser-commands.js", "createNewWindow: {", "createNewWindow: {}, y: {"
        ),
        Change("page-fields.js", "factsOf(element).kind !== 'wheel'", "false"),
    ),
    "presses other buttons": (
        Change(
            "alerts.js",
            "isAccepted || buttons.length === 1 ? first : first + 1",
            "isAccepted ? 3 : first",
        ),
        Change(
            "alerts.js", "isAccepted ? buttons.length - 1 : 0),", "isAccepted ? 0 : 1),"
        ),
        Change(
            "alerts.js", "isAccepted ? 0 : buttons.length - 1),", "isAccepted ? 1 : 0),"
        ),
        Change(
            "alerts.js",
            "if (index < 0) throw missing(",
            "if (index < 0) return; if (false) throw (",
        ),
        Change("alerts.js", "if (this.platform === 'Android') {", "if (false) {"),
        Change(
            "alerts.js",
            "if (fields !== 1) throw noField(fields);",
            "if (fields !== 1) return;",
        ),
        Change(
            "alerts.js",
            "if (!alert) throw new errors.NoAlertOpenError();",
            "if (!alert) return { text: '' };",
        ),
        Change(
            "page-alert.js",
            ".join('\\n'),\n    buttons: buttons",
            ".at(0),\n    buttons: buttons",
        ),
        Change(
            "page-alert.js",
            ".join('\\n'),\n    buttons: inner",
            ".at(0),\n    buttons: inner.slice(0, -1)",
        ),
        Change("page-tree.js", "isolateWindow(body);", ";"),
        Change(
            "page-tree.js",
            "return 'android:id/alertTitle'",
            "return 'android:id/custom'",
        ),
        Change("page-tree.js", "return 'android:id/message'", "return ''"),
        Change(
            "page-tree.js", "element.dataset?.testid) return '';", "false) return '';"
        ),
        Change(
            "page-press.js", "if (type !== `${IOS_PREFIX}PickerWheel`)", "if (false)"
        ),
        Change(
            "actions.js",
            "'Input.dispatchTouchEvent', { type, touchPoints,",
            "'Input.dispatchMouseEvent', { ...this.#pointers.values().next().value,"
            " button: 'left', clickCount: 1, type: { touchStart: 'mousePressed',"
            " touchEnd: 'mouseReleased' }[type],",
        ),
        Change(
            "mobile.js", "if (!['next', 'previous'].includes(direction))", "if (false)"
        ),
        Change("mobile.js", "if (!(offset > 0 && offset <= 0.5))", "if (false)"),
    ),
    "has what phones lack": (
        Change(
            "apps.js",
            "if (x !== 0 || y !== 0 || !ROTATIONS.includes(z)) {",
            "if (false) {",
        ),
        Change(
            "driver.js",
            "if (!this.inApp || this.platform === 'iOS') return;",
            "return;",
        ),
        Change(
            "driver.js", "this.inApp ? await super.getTimeouts() : this.#timeouts", "{}"
        ),
        Change(
            "driver.js",
            "if (this.platform === 'iOS' && ONLY_ON_ANDROID.has(command)) {",
            "if (false) {",
        ),
        Change("scripts.js", " bearing? accuracy?'),", "'),"),
        Change(
            "scripts.js",
            "throw new errors.UnknownMethodError(`${shown(name)} is not",
            "throw new errors.InvalidArgumentError(`${shown(name)} is not",
        ),
        Change(
            "actions.js",
            "['pointer', 'key', 'none'], iOS: ['pointer', 'key'] }",
            "['pointer', 'key', 'wheel'], iOS: ['pointer', 'key', 'wheel'] }",
        ),
        Change("recording.js", "return video ? video.toString", "return false ? ''.at"),
        Change("elements.js", "if (isHome(before)) {", "if (false) {"),
        Change("actions.js", "if (source.type !== 'pointer') return;", "return;"),
        Change("actions.js", "if (this.inputs?.areHeld)", "if (false)"),
        Change("page.js", "!ENDS.has(params.type)", "true"),
        Change("actions.js", "this.inputs = new", "this.inputs ??= new"),
        Change(
            "mobile.js",
            "{ packageName: id, versionCode",
            "{ packageName: '', versionCode",
        ),
        Change("mobile.js", "askPage('source', { excluded })", "askPage('source', {})"),
        Change(
            "page-answer.js",
            "const tree = target.platform === 'iOS'",
            "const tree = false",
        ),
    ),
    "types and hides the keyboard in another way": (
        Change("keys.js", r"'\uE017': '\b' }", r"'\uE017': 'x' }"),
        Change(
            "keys.js",
            r"page.input([['Input.insertText', { text: '\n' }]])",
            "page.input(new Keyboard().typed(ENTER))",
        ),
        Change("keys.js", "if (text.endsWith(ENTER_MARK))", "if (false)"),
        Change("mobile.js", "![...keys, 'done'].some(", "[...keys, 'done'].some("),
        Change("page-tree.js", "PADS.has(field.inputMode || field.type)", "false"),
        Change("elements.js", "if (isReplaced) await driver.clear(element);", ";"),
        Change(
            "elements.js",
            "const wasKeyboard = await this.askPage('blur');",
            "const wasKeyboard = true;",
        ),
        Change(
            "selectors.js", "equals('focused', 'true')", "equals('focused', 'false')"
        ),
    ),
    "shows views as they are in HTML": (
        Change(
            "page-tree.js",
            "return element.matches('span, a') && outer !== null",
            "return false && outer !== null",
        ),
        Change("page-tree.js", "&& style.opacity === '0'", "&& false"),
        Change(
            "page-tree.js",
            "return `${Math.round((100 * (position - min)) / (max - min))}%`;",
            "return String(position);",
        ),
        Change(
            "page-tree.js", "return shown(child.data, style);", "return child.data;"
        ),
        Change(
            "page-tree.js",
            ".includes(style.whiteSpace) ? text : tidy(text)",
            ".includes(style.whiteSpace) ? tidy(text) : text",
        ),
    ),
    "leaves out what an app draws itself": (
        Change("page-tree.js", " && !element.matches(DRAWN_BY_APP)", ""),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_change_applies_to_the_driver(name: str) -> None:
    assert changed(DRIVER, WRONG[name])


@pytest.mark.nightly
def test_each_row_fails_with_a_wrong_driver(tmp_path: Path) -> None:
    left = {(platform, row.name) for row in ROWS for platform in row.platforms}
    with with_own_driver(tmp_path) as (service, source):
        for changes in WRONG.values():
            left -= failures(service, source, changes)
    assert sorted(left) == []


def failures(
    service: LocalService, source: Path, changes: tuple[Change, ...]
) -> set[tuple[Platform, str]]:
    after = changed(source, changes)
    before = {file: (source / file).read_text() for file in after}
    try:
        for file, text in after.items():
            (source / file).write_text(text)
        return rows_that_fail(service, ANDROID) | rows_that_fail(service, IOS)
    finally:
        for file, text in before.items():
            (source / file).write_text(text)


def changed(source: Path, changes: tuple[Change, ...]) -> dict[str, str]:
    """Return the files of a driver with these changes, each of which must apply."""
    texts = {change.file: (source / change.file).read_text() for change in changes}
    for change in changes:
        assert texts[change.file].count(change.old) == 1, change
        texts[change.file] = texts[change.file].replace(change.old, change.new)

    return texts


def rows_that_fail(
    service: LocalService, platform: Platform
) -> set[tuple[Platform, str]]:
    named = "appium:appPackage" if platform == ANDROID else "appium:bundleId"
    failed = set()
    with (
        booted(service, platform) as session,
        driven(session, {"app": str(APP), named: APP_ID}) as driver,
    ):
        for row in ROWS:
            if platform not in row.platforms:
                continue
            try:
                check(driver, row)
            except AssertionError:
                failed.add((platform, row.name))
    return failed
