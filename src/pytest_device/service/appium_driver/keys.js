// Keys of an Android device and buttons of an iPhone.

import { errors } from 'appium/driver.js';
import { Keyboard } from './keyboard.js';

const SHIFT = '\uE008';
const SHIFT_MASK = 0x41;
const CONTROL = '\uE009';
const CONTROL_MASK = 0x1000;
const TAB = '\uE004';
const ENTER = '\uE006';
const BACK = 4;
const HOME = 3;
const LONG_MS = 500;

const SPECIAL = {
  19: '\uE013', 20: '\uE015', 21: '\uE012', 22: '\uE014', 23: '\uE006', 55: ',', 56: '.', 61: '\uE004', 62: ' ',
  66: '\uE006', 67: '\uE003', 68: '`', 69: '-', 70: '=', 71: '[', 72: ']', 73: '\\', 74: ';', 75: "'", 76: '/', 77: '@',
  81: '+', 84: '\uE006', 92: '\uE00E', 93: '\uE00F', 111: '\uE00C', 112: '\uE017', 122: '\uE011', 123: '\uE010',
  160: '\uE007',
};

function keyOf(code) {
  if (code >= 7 && code <= 16) return String(code - 7);
  if (code >= 29 && code <= 54) return String.fromCharCode(97 + code - 29);
  return SPECIAL[code];
}

/** Press a key by its Android code. Throws InvalidArgument for one that a page cannot receive. */
export async function pressKeyCode(driver, { keycode, metastate = 0, isLongPress = false }) {
  const code = Number(keycode);
  if (isLongPress && [BACK, HOME].includes(code)) {
    throw new errors.InvalidArgumentError(`a long press of the key code ${code} has no equivalent in a web page`);
  }
  if (code === BACK) return await goBack(driver);
  if (code === HOME) return await driver.backgroundApp(-1);
  const key = keyOf(code);
  if (key === undefined) throw new errors.InvalidArgumentError(`the key code ${keycode} has no equivalent in a web page`);
  const held = [...(metastate & SHIFT_MASK ? [SHIFT] : []), ...(metastate & CONTROL_MASK ? [CONTROL] : [])];
  return await pressKeys(driver, held, [key], isLongPress ? LONG_MS : 0);
}

/** Press a button of an iPhone by its name. */
export async function pressButton(driver, { name }) {
  if (String(name).toLowerCase() !== 'home') {
    throw new errors.InvalidArgumentError(`the local device has only the button home, not ${name}`);
  }
  await driver.backgroundApp(-1);
}

/** Perform what the action key of a keyboard does: go to another field, or send the Enter key. */
export async function performEditorAction(driver, { action }) {
  const names = ['normal', 'unspecified', 'none', 'go', 'search', 'send', 'next', 'done', 'previous'];
  const name = names[Number(action)] ?? String(action).toLowerCase();
  if (!names.includes(name)) {
    throw new errors.InvalidArgumentError(`action must be one of ${names.join(', ')}, not ${action}`);
  }

  if (name === 'next' || name === 'previous') await pressKeys(driver, name === 'next' ? [] : [SHIFT], [TAB]);
  else if (name !== 'none') await pressKeys(driver, [], [ENTER]);
}

/** Type keys one by one to the focused element. */
export async function typeKeys(driver, keys) {
  const text = keys.map((key) => (typeof key === 'string' ? key : key.key)).join('');
  await driver.onPage((page) => page.input(new Keyboard().typed(text)));
}

/** Close the keyboard if it is shown, else go back. */
async function goBack(driver) {
  if (driver.overlay.view || !(await driver.askPage('blur'))) await driver.back();
}

async function pressKeys(driver, held, keys, ms = 0) {
  const press = (type) => (value) => ({ type, value });
  const pause = ms ? [{ type: 'pause', duration: ms }] : [];
  const typed = keys.flatMap((value) => [{ type: 'keyDown', value }, ...pause, { type: 'keyUp', value }]);
  const actions = [...held.map(press('keyDown')), ...typed, ...held.map(press('keyUp'))];
  await driver.performActions([{ type: 'key', id: 'keyboard', actions }]);
}
