// Keys of an Android device, and buttons and keys of an iPhone.

import { errors } from 'appium/driver.js';
import { LONG_PRESS_MS } from './gestures.js';
import { Keyboard, nameOfKey } from './keyboard.js';

/** WebDriver's code points of special keys, and its key that releases the modifiers. */
const [NULL_KEY, SHIFT, CONTROL, ALT, META] = ['\uE000', '\uE008', '\uE009', '\uE00A', '\uE03D'];
const TAB = '\uE004';
export const ENTER = '\uE006';

/** Android's key codes (KeyEvent) that are no key of a page. */
const [BACK, HOME] = [4, 3];

/** Android's key codes that are not in a row: the keys that a page receives. */
const ANDROID_KEYS = {
  17: '*', 18: '#', 19: '\uE013', 20: '\uE015', 21: '\uE012', 22: '\uE014', 23: '\uE006', 55: ',', 56: '.', 61: '\uE004',
  62: ' ', 66: '\uE006', 67: '\uE003', 68: '`', 69: '-', 70: '=', 71: '[', 72: ']', 73: '\\', 74: ';', 75: "'", 76: '/',
  77: '@', 81: '+', 84: '\uE006', 92: '\uE00E', 93: '\uE00F', 111: '\uE00C', 112: '\uE017', 122: '\uE011', 123: '\uE010',
  160: '\uE007',
};
/** The bits of Android's meta state, each for either key, the left one and the right one. */
const ANDROID_MODIFIERS = [[0x1 | 0x40 | 0x80, SHIFT], [0x1000 | 0x2000 | 0x4000, CONTROL], [0x2 | 0x10 | 0x20, ALT]];

/** The keys that XCTest has names for: XCUIKeyboardKey. */
const IOS_KEYS = {
  Delete: '\uE003', Return: '\uE006', Enter: '\uE007', Tab: '\uE004', Space: ' ', Escape: '\uE00C', UpArrow: '\uE013',
  DownArrow: '\uE015', LeftArrow: '\uE012', RightArrow: '\uE014', ForwardDelete: '\uE017', Home: '\uE011', End: '\uE010',
  PageUp: '\uE00E', PageDown: '\uE00F', Clear: '\uE005', Help: '\uE002', F1: '\uE031', F2: '\uE032', F3: '\uE033',
  F4: '\uE034', F5: '\uE035', F6: '\uE036', F7: '\uE037', F8: '\uE038', F9: '\uE039', F10: '\uE03A', F11: '\uE03B',
  F12: '\uE03C',
};
const IOS_KEY_NAME = /^XCUIKeyboardKey(\w+)$/;
/** The bits of XCUIKeyModifierFlags. */
const IOS_MODIFIERS = [[1 << 1, SHIFT], [1 << 2, CONTROL], [1 << 3, ALT], [1 << 4, META]];

/** The special keys that XCUITest types as parts of a text. UiAutomator2, which sets the text of a field, has none. */
const IN_TEXTS_OF_IOS = { '\uE006': '\n', '\uE007': '\n', '\uE003': '\b', '\uE017': '\b' };
const SPECIAL_KEY = /[\uE000-\uE05D]/g;

/** With these two characters at its end, a text is followed by the Enter key on Android. They stay in the text. */
const ENTER_MARK = '\\n';

/** What the action key of Android's keyboard does, in the order of the numbers of EditorInfo. */
const EDITOR_ACTIONS = ['normal', 'unspecified', 'none', 'go', 'search', 'send', 'next', 'done', 'previous'];

/**
 * Press a key of an Android device.
 *
 * @param args keycode and metastate: those of Android's KeyEvent; isLongPress: whether it is held
 *
 * Throws InvalidArgument for a key that a page cannot receive.
 */
export async function pressKeyCode(driver, { keycode, metastate = 0, isLongPress = false }) {
  const code = Number(keycode);
  if (isLongPress && [BACK, HOME].includes(code)) {
    throw new errors.InvalidArgumentError(`a long press of the key code ${code} has no equivalent in a web page`);
  }
  if (code === BACK) return await driver.back();
  if (code === HOME) return await driver.backgroundApp(-1);

  const key = androidKey(code);
  if (key === undefined) throw new errors.InvalidArgumentError(`the key code ${keycode} has no equivalent in a web page`);

  await pressKey(driver, key, modifiersIn(metastate, ANDROID_MODIFIERS), isLongPress ? LONG_PRESS_MS : 0);
}

/** Press a button of an iPhone by its name. Throws InvalidArgument for any other than home. */
export async function pressButton(driver, { name }) {
  if (String(name).toLowerCase() !== 'home') {
    throw new errors.InvalidArgumentError(`the local device has only the button home, not ${name}`);
  }

  await driver.backgroundApp(-1);
}

/** Perform what the action key of a keyboard does: go to another field, or send the Enter key. Throws InvalidArgument. */
export async function performEditorAction(driver, { action }) {
  const name = EDITOR_ACTIONS[Number(action)] ?? String(action).toLowerCase();
  if (!EDITOR_ACTIONS.includes(name)) {
    throw new errors.InvalidArgumentError(`action must be one of ${EDITOR_ACTIONS.join(', ')}, not ${action}`);
  }

  if (name === 'next') await pressKey(driver, TAB);
  else if (name === 'previous') await pressKey(driver, TAB, [SHIFT]);
  else if (name !== 'none') await pressKey(driver, ENTER);
}

/**
 * Type keys one by one to the focused element: `mobile: keys` of XCUITest.
 *
 * @param keys characters, names such as XCUIKeyboardKeyReturn, and { key, modifierFlags }, the bits of XCUIKeyModifierFlags
 *
 * Throws InvalidArgument for keys of another form, and for those that a page cannot receive.
 */
export async function typeKeys(driver, keys) {
  if (!Array.isArray(keys)) throw new errors.InvalidArgumentError(`keys must be a list, not ${JSON.stringify(keys)}`);

  await typeText(driver, keys.map(textOfKey).join(''));
}

/**
 * Return the text of `send_keys` as the platform's driver types it.
 *
 * Throws InvalidArgument for a special key that the driver would type as a character, which no suite means.
 */
export function textToType(text, platform) {
  const isOnIos = platform === 'iOS';
  return text.replace(SPECIAL_KEY, (key) => {
    if (isOnIos && Object.hasOwn(IN_TEXTS_OF_IOS, key)) return IN_TEXTS_OF_IOS[key];

    const [driver, script] = isOnIos ? ['XCUITest', 'keys'] : ['UiAutomator2', 'pressKey'];
    const instead = `press it with 'mobile: ${script}' or W3C actions`;
    throw new errors.InvalidArgumentError(`${driver} would type the key ${nameOfKey(key)} as a character: ${instead}`);
  });
}

/** Set the text of a field of Android: with UiAutomator2, a line break in it is not the Enter key, and `ENTER_MARK` is. */
export async function writeText(driver, text) {
  const [first, ...more] = text.split('\n');
  await typeText(driver, first);
  for (const line of more) {
    await driver.onPage((page) => page.input([['Input.insertText', { text: '\n' }]]));
    await typeText(driver, line);
  }

  if (text.endsWith(ENTER_MARK)) await typeText(driver, ENTER);
}

/** Type a text to the focused element. */
export async function typeText(driver, text) {
  await driver.onPage((page) => page.input(new Keyboard().typed(String(text))));
}

/** Return the key of a page for an Android key code, undefined without one. */
function androidKey(code) {
  if (code >= 7 && code <= 16) return String(code - 7);
  if (code >= 144 && code <= 153) return String(code - 144);
  if (code >= 29 && code <= 54) return String.fromCharCode('a'.charCodeAt(0) + code - 29);

  return ANDROID_KEYS[code];
}

/** Return a key of `mobile: keys` as a text that is typed: with its modifiers, which are then released. */
function textOfKey(item) {
  const { key, modifierFlags = 0 } = typeof item === 'string' ? { key: item } : item ?? {};
  if (typeof key !== 'string') {
    throw new errors.InvalidArgumentError(`each of the keys must be a text, or have a text as its key, not ${JSON.stringify(item)}`);
  }

  const [, name] = IOS_KEY_NAME.exec(key) ?? [];
  if (name !== undefined && !Object.hasOwn(IOS_KEYS, name)) {
    throw new errors.InvalidArgumentError(`the key ${key} has no equivalent in a web page`);
  }

  const modifiers = modifiersIn(modifierFlags, IOS_MODIFIERS);
  const end = modifiers.length > 0 ? NULL_KEY : '';
  return `${modifiers.join('')}${name === undefined ? key : IOS_KEYS[name]}${end}`;
}

/** Return the keys for the bits of modifiers. */
function modifiersIn(bits, table) {
  return table.filter(([mask]) => Number(bits) & mask).map(([, key]) => key);
}

/** Press a key for some milliseconds while modifiers are held. */
async function pressKey(driver, key, modifiers = [], ms = 0) {
  const actions = [
    ...modifiers.map((value) => ({ type: 'keyDown', value })),
    { type: 'keyDown', value: key },
    { type: 'pause', duration: ms },
    { type: 'keyUp', value: key },
    ...modifiers.map((value) => ({ type: 'keyUp', value })),
  ];

  await driver.performActions([{ type: 'key', id: 'keyboard', actions }]);
}
