// Keys as the browser's input events: characters of a US keyboard, any other text, and WebDriver's special keys.

/** The bits of the held modifiers in an event of the Chrome DevTools Protocol. */
const MODIFIERS = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };
/** Releases the held modifiers in a text that is typed. */
const NULL_KEY = '\uE000';
/** Where a key is that the keyboard has several times: KeyboardEvent.location. */
const [LEFT, RIGHT, NUMPAD] = [1, 2, 3];

/**
 * WebDriver's special keys by the code points that stand for them: [key, code, key code, location].
 *
 * The tables of the WebDriver standard, section "Keyboard actions"; the key codes are those of Windows, which browsers
 * report on all systems.
 */
const SPECIAL = {
  '\uE001': ['Cancel', '', 3], '\uE002': ['Help', 'Help', 47], '\uE003': ['Backspace', 'Backspace', 8],
  '\uE004': ['Tab', 'Tab', 9], '\uE005': ['Clear', '', 12], '\uE006': ['Enter', 'Enter', 13],
  '\uE007': ['Enter', 'NumpadEnter', 13, NUMPAD], '\uE008': ['Shift', 'ShiftLeft', 16, LEFT],
  '\uE009': ['Control', 'ControlLeft', 17, LEFT], '\uE00A': ['Alt', 'AltLeft', 18, LEFT], '\uE00B': ['Pause', 'Pause', 19],
  '\uE00C': ['Escape', 'Escape', 27], '\uE00D': [' ', 'Space', 32], '\uE00E': ['PageUp', 'PageUp', 33],
  '\uE00F': ['PageDown', 'PageDown', 34], '\uE010': ['End', 'End', 35], '\uE011': ['Home', 'Home', 36],
  '\uE012': ['ArrowLeft', 'ArrowLeft', 37], '\uE013': ['ArrowUp', 'ArrowUp', 38],
  '\uE014': ['ArrowRight', 'ArrowRight', 39], '\uE015': ['ArrowDown', 'ArrowDown', 40],
  '\uE016': ['Insert', 'Insert', 45], '\uE017': ['Delete', 'Delete', 46], '\uE018': [';', 'Semicolon', 186],
  '\uE019': ['=', 'Equal', 187], '\uE024': ['*', 'NumpadMultiply', 106, NUMPAD], '\uE025': ['+', 'NumpadAdd', 107, NUMPAD],
  '\uE026': [',', 'NumpadComma', 108, NUMPAD], '\uE027': ['-', 'NumpadSubtract', 109, NUMPAD],
  '\uE028': ['.', 'NumpadDecimal', 110, NUMPAD], '\uE029': ['/', 'NumpadDivide', 111, NUMPAD],
  '\uE03D': ['Meta', 'MetaLeft', 91, LEFT], '\uE050': ['Shift', 'ShiftRight', 16, RIGHT],
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

/** The keys of a US keyboard: [the characters without and with Shift, code, key code]. */
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
const CHARACTERS = new Map();
for (const [[plain, shifted], code, keyCode] of KEYS) {
  // In this order: the space bar types a space with Shift, too, and does so without.
  CHARACTERS.set(shifted, { key: shifted, code, keyCode, needsShift: true });
  CHARACTERS.set(plain, { key: plain, code, keyCode, shifted });
}

/**
 * A keyboard, which knows the keys that are held down.
 *
 * Its events are pairs of a command of the Chrome DevTools Protocol and its parameters; nothing is sent here.
 */
export class Keyboard {
  /** The keys that are held down, as the page knows them, by the characters that stand for them. */
  #held = new Map();

  /** Return the event of a key that is pressed: a character, or one that stands for a special key. */
  down(value) {
    const pressed = keyFor(value);
    const key = this.#nameOf(pressed);
    const isRepeated = this.#held.has(value);
    this.#held.set(value, key);

    const event = this.#event(pressed);
    // A shortcut types nothing.
    const text = event.modifiers & (MODIFIERS.Control | MODIFIERS.Meta) ? '' : textOf(key);
    const typing = text ? { type: 'keyDown', text, unmodifiedText: text } : { type: 'rawKeyDown' };

    return ['Input.dispatchKeyEvent', { ...event, ...typing, key, autoRepeat: isRepeated }];
  }

  /** Return the event of a key that is released. */
  up(value) {
    const released = keyFor(value);
    this.#held.delete(value);

    return ['Input.dispatchKeyEvent', { ...this.#event(released), type: 'keyUp', key: this.#nameOf(released) }];
  }

  /** Return the events of a text that is typed: modifiers in it are held until they come again, the null key, or its end. */
  typed(text) {
    const events = [];
    for (const value of text) {
      if (value === NULL_KEY) {
        events.push(...this.released());
      } else if (!(keyFor(value).key in MODIFIERS)) {
        events.push(this.down(value), this.up(value));
      } else if (this.#held.has(value)) {
        events.push(this.up(value));
      } else {
        events.push(this.down(value));
      }
    }
    events.push(...this.released());

    return events;
  }

  /** Return the events that release all held keys, the last one first. */
  released() {
    return [...this.#held.keys()].toReversed().map((value) => this.up(value));
  }

  get hasHeldKeys() {
    return this.#held.size > 0;
  }

  /** The bits of the held modifiers. */
  get modifiers() {
    let bits = 0;
    for (const key of this.#held.values()) bits |= MODIFIERS[key] ?? 0;

    return bits;
  }

  /** Return the name of a key in its events, which depends on Shift. */
  #nameOf({ key, shifted }) {
    return this.modifiers & MODIFIERS.Shift ? shifted ?? key : key;
  }

  /** Return what the events of a key have in common. */
  #event({ code, keyCode, location, needsShift }) {
    const modifiers = this.modifiers | (needsShift ? MODIFIERS.Shift : 0);

    return { code, windowsVirtualKeyCode: keyCode, modifiers, location };
  }
}

/** Return the name of one of WebDriver's special keys. */
export function nameOfKey(value) {
  return value === NULL_KEY ? 'Null' : keyFor(value).key;
}

/** Return the key that types a character, or for which it stands. A character that no key has is typed as it is. */
function keyFor(value) {
  if (Object.hasOwn(SPECIAL, value)) {
    const [key, code, keyCode, location = 0] = SPECIAL[value];
    return { key, code, keyCode, location };
  }

  const character = CHARACTERS.get(value) ?? { key: value, code: '', keyCode: 0 };
  return { ...character, location: 0 };
}

/** Return the text that a key types, '' for one that types none. */
function textOf(key) {
  if (key === 'Enter') return '\r';

  return [...key].length === 1 ? key : '';
}
