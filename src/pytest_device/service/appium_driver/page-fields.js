// Runs in the page, after page-tree.js. Fills the fields that are not typed into: dates, sliders, choices.

/** A refusal that the driver turns into one of its errors: `selector`, `argument` or `state`. */
class Refusal extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

const PICKED = {
  date: ['YYYY-MM-DD', '2026-11-22'], time: ['HH:MM', '14:30'], month: ['YYYY-MM', '2026-11'], week: ['YYYY-Www', '2026-W47'],
  'datetime-local': ['YYYY-MM-DDTHH:MM', '2026-11-22T14:30'], color: ['#rrggbb', '#1e90ff'],
};
const TEXTLESS = new Set(['button', 'link', 'checkbox', 'switch', 'radio', 'image', 'slider', 'progress']);
const KEYS = /[\ue000-\uf8ff\n]/g;

/** Set the value of a field that is picked rather than typed; return whether it is a text field instead. */
function filled(element, text, platform) {
  const type = element.localName === 'input' ? element.type : element.localName;
  const value = text.replace(KEYS, '');
  refuseFile(element);
  if (!value) return true;
  if (type === 'select') return chosen(element, value, platform);
  if (type in PICKED) return set(element, picked(element, value));
  if (type === 'range') return set(element, slid(element, value, platform));
  const { kind } = factsOf(element);
  if (TEXTLESS.has(kind)) throw new Refusal('state', `a ${kind} takes no text`);
  return true;
}

function refuseFile(element) {
  const field = element.closest('label')?.control ?? element;
  if (field.type !== 'file') return;
  const instead = 'switch to the web view and send the path of the file to the field';
  throw new Refusal('state', `a native app chooses a file in the file picker, which the local device does not have: ${instead}`);
}

function picked(element, value) {
  const probe = element.cloneNode();
  probe.value = value;
  const [form, example] = PICKED[element.type];
  if (!probe.value) {
    throw new Refusal('argument', `the ${element.type} field takes ${form}, for example ${example}, not '${value}'`);
  }
  const { rangeUnderflow, rangeOverflow } = probe.validity;
  const bound = rangeUnderflow ? `${element.min} or more` : rangeOverflow ? `${element.max} or less` : '';
  if (bound) throw new Refusal('argument', `the ${element.type} must be ${bound}, not '${value}'`);
  return value;
}

/** Android sets a slider to a value, iOS to a fraction of its range. */
function slid(element, value, platform) {
  const [least, most] = [Number(element.min || 0), Number(element.max || 100)];
  const [from, to] = platform === 'Android' ? [least, most] : [0, 1];
  const number = Number(value);
  if (!(number >= from && number <= to)) {
    throw new Refusal('argument', `the slider takes a number from ${from} to ${to} on ${platform}, not '${value}'`);
  }
  return String(platform === 'Android' ? number : least + number * (most - least));
}

/** Keys choose an option on a picker wheel only, not on a list that is closed. */
function chosen(element, value, platform) {
  if (factsOf(element).kind !== 'wheel') {
    const instead = platform === 'Android' ? 'tap an option of the list that opens' : 'send the keys to the picker wheel that opens';
    throw new Refusal('state', `Cannot set the element to '${value}'. Note: it is a selection list: tap it, and ${instead}`);
  }
  const options = [...element.options];
  const option = options.find((one) => one.text === value);
  if (!option) {
    const there = options.map((one) => `'${one.text}'`).join(', ');
    throw new Refusal('argument', `the field has no option '${value}': its options are ${there}`);
  }
  option.selected = true;
  return changed(element);
}

/** Set a value so that frameworks which watch the property notice. */
function set(element, value) {
  element.focus();
  if (element.localName.includes('-')) assign(element, 'value', value);
  else Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), 'value').set.call(element, value);
  return changed(element);
}

function changed(element) {
  element.dispatchEvent(new InputEvent('input', { bubbles: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
  return false;
}

function emptied(element) {
  const { kind } = factsOf(element);
  if (element.isContentEditable) {
    element.focus();
    element.textContent = '';
    changed(element);
  } else if (kind === 'edit' && propertyOf(element, 'value') !== undefined) set(element, '');
  else throw new Refusal('state', `a ${kind} takes no text, so it cannot be cleared`);
}
