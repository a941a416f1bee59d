// Keys as the browser's input events: characters of a US keyboard, any other text, and WebDriver's special keys.

const MODIFIERS = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };
const NULL_KEY = '\uE000';
const RIGHT = 2;
const NUMPAD = 3;

/** WebDriver's keys: [key, code, key code, location]. */
const SPECIAL = {
  '\uE001': ['Cancel', '', 3], '\uE002': ['Help', 'Help', 47], '\uE003': ['Backspace', 'Backspace', 8],
  '\uE004': ['Tab', 'Tab', 9], '\uE005': ['Clear', '', 12], '\uE006': ['Enter', 'Enter', 13],
  '\uE007': ['Enter', 'NumpadEnter', 13, NUMPAD], '\uE008': ['Shift', 'ShiftLeft', 16, 1],
  '\uE009': ['Control', 'ControlLeft', 17, 1], '\uE00A': ['Alt', 'AltLeft', 18, 1], '\uE00B': ['Pause', 'Pause', 19],
  '\uE00C': ['Escape', 'Escape', 27], '\uE00D': [' ', 'Space', 32], '\uE00E': ['PageUp', 'PageUp', 33],
  '\uE00F': ['PageDown', 'PageDown', 34], '\uE010': ['End', 'End', 35], '\uE011': ['Home', 'Home', 36],
  '\uE012': ['ArrowLeft', 'ArrowLeft', 37], '\uE013': ['ArrowUp', 'ArrowUp', 38],
  '\uE014': ['ArrowRight', 'ArrowRight', 39], '\uE015': ['ArrowDown', 'ArrowDown', 40],
  '\uE016': ['Insert', 'Insert', 45], '\uE017': ['Delete', 'Delete', 46], '\uE018': [';', 'Semicolon', 186],
  '\uE019': ['=', 'Equal', 187], '\uE024': ['*', 'NumpadMultiply', 106, NUMPAD], '\uE025': ['+', 'NumpadAdd', 107, NUMPAD],
  '\uE026': [',', 'NumpadComma', 108, NUMPAD], '\uE027': ['-', 'NumpadSubtract', 109, NUMPAD],
  '\uE028': ['.', 'NumpadDecimal', 110, NUMPAD], '\uE029': ['/', 'NumpadDivide', 111, NUMPAD],
  '\uE03D': ['Meta', 'MetaLeft', 91, 1], '\uE050': ['Shift', 'ShiftRight', 16, RIGHT],
  '\uE051': ['Control', 'ControlRight', 17, RIGHT], '\uE052': ['Alt', 'AltRight', 18, RIGHT],
  '\uE053': ['Meta', 'MetaRight', 92, RIGHT], '\uE054': ['PageUp', 'Numpad9', 33, NUMPAD],
  '\uE055': ['PageDown', 'Numpad3', 34, NUMPAD], '\uE056': ['End', 'Numpad1', 35, NUMPAD],
  '\uE057': ['Home', 'Numpad7', 36, NUMPAD], '\uE058': ['ArrowLeft', 'Numpad4', 37, NUMPAD],
  '\uE059': ['ArrowUp', 'Numpad8', 38, NUMPAD], '\uE05A': ['ArrowRight', 'Numpad6', 39, NUMPAD],
  '\uE05B': ['ArrowDown', 'Numpad2', 40, NUMPAD], '\uE05C': ['Insert', 'Numpad0', 45, NUMPAD],
  '\uE05D': ['Delete', 'NumpadDecimal', 46, NUMPAD],
  '\n': ['Enter', 'Enter', 13], '\r': ['Enter', 'Enter', 13], '\t': ['Tab', 'Tab', 9], '\b': ['Backspace', 'Backspace', 8],
};
for (let digit = 0; digit <= 9; digit += 1) {
  SPECIAL[String.fromCharCode(0xe01a + digit)] = [String(digit), `Numpad${digit}`, 96 + digit, NUMPAD];
}
for (let number = 1; number <= 12; number += 1) {
  SPECIAL[String.fromCharCode(0xe030 + number)] = [`F${number}`, `F${number}`, 111 + number];
}

/** Keys of a US keyboard: their characters without and with Shift, code, key code. */
const KEYS = [
  ...[...'abcdefghijklmnopqrstuvwxyz'].map((letter) => {
    const upper = letter.toUpperCase();
    return [letter + upper, `Key${upper}`, upper.charCodeAt(0)];
  }),
  ...[...')!@#$%^&*('].map((sign, digit) => [`${digit}${sign}`, `Digit${digit}`, 48 + digit]),
  ['`~', 'Backquote', 192], ['-_', 'Minus', 189], ['=+', 'Equal', 187], ['[{', 'BracketLeft', 219],
  [']}', 'BracketRight', 221], ['\\|', 'Backslash', 220], [';:', 'Semicolon', 186], ["'\"", 'Quote', 222],
  [',<', 'Comma', 188], ['.>', 'Period', 190], ['/?', 'Slash', 191], ['  ', 'Space', 32],
];
const CHARACTERS = new Map(
  KEYS.flatMap(([[plain, shifted], code, keyCode]) => [
    [shifted, { key: shifted, code, keyCode, isShifted: true }],
    [plain, { key: plain, code, keyCode, shifted }],
  ]),
);

/** A keyboard: it knows which keys are held. Its events are pairs of a command and its parameters. */
export class Keyboard {
  #held = new Map();

  down(value) {
    const pressed = keyFor(value);
    const { code, keyCode, location, isShifted } = pressed;
    const key = this.modifiers & MODIFIERS.Shift ? pressed.shifted ?? pressed.key : pressed.key;
    const isRepeated = this.#held.has(value);
    this.#held.set(value, key);
    const modifiers = this.modifiers | (isShifted ? MODIFIERS.Shift : 0);
    const text = modifiers & (MODIFIERS.Control | MODIFIERS.Meta) ? '' : textOf(key);
    return ['Input.dispatchKeyEvent', {
      type: text ? 'keyDown' : 'rawKeyDown', key, code, windowsVirtualKeyCode: keyCode, modifiers, location,
      autoRepeat: isRepeated, ...(text ? { text, unmodifiedText: text } : {}),
    }];
  }

  up(value) {
    const { key, code, keyCode, location, isShifted } = keyFor(value);
    this.#held.delete(value);
    const modifiers = this.modifiers | (isShifted ? MODIFIERS.Shift : 0);
    return ['Input.dispatchKeyEvent', { type: 'keyUp', key, code, windowsVirtualKeyCode: keyCode, modifiers, location }];
  }

  /** Return the events of a text: modifiers stay down until the null key, or its end. */
  typed(text) {
    const events = [...text].flatMap((value) => {
      if (value === NULL_KEY) return this.released();
      if (keyFor(value).key in MODIFIERS) return [this.#held.has(value) ? this.up(value) : this.down(value)];
      return [this.down(value), this.up(value)];
    });
    return [...events, ...this.released()];
  }

  /** Return the events that release all held keys. */
  released() {
    return [...this.#held.keys()].toReversed().map((value) => this.up(value));
  }

  get modifiers() {
    return [...this.#held.values()].reduce((sum, key) => sum | (MODIFIERS[key] ?? 0), 0);
  }
}

function keyFor(value) {
  if (Object.hasOwn(SPECIAL, value)) {
    const [key, code, keyCode, location = 0] = SPECIAL[value];
    return { key, code, keyCode, location };
  }
  return { location: 0, ...(CHARACTERS.get(value) ?? { key: value, code: '', keyCode: 0 }) };
}

/** Return what a key types. */
function textOf(key) {
  if (key === 'Enter') return '\r';
  return [...key].length === 1 ? key : '';
}
