// Runs in the page, after page-tree.js. Fills the fields that are not typed into: dates, sliders, choices.

/** A refusal that the driver turns into one of its errors: `selector`, `argument` or `state`. */
class Refusal extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** The form and an example of the values that a user picks, by the type of the field. */
const PICKED = {
  date: ['YYYY-MM-DD', '2026-11-22'], time: ['HH:MM', '14:30'], month: ['YYYY-MM', '2026-11'], week: ['YYYY-Www', '2026-W47'],
  'datetime-local': ['YYYY-MM-DDTHH:MM', '2026-11-22T14:30'], color: ['#rrggbb', '#1e90ff'],
};
const TEXTLESS = new Set(['button', 'link', 'checkbox', 'switch', 'radio', 'image', 'slider', 'progress']);
/** Enter and Backspace: a value that is picked has none. */
const KEYS = /[\n\b]/g;

/** Set the value of a field that is picked rather than typed; return whether it is a text field instead. */
function fill(element, text, platform) {
  const type = element.localName === 'input' ? element.type : element.localName;
  const value = text.replace(KEYS, '');
  refuseFile(element);
  // Keys alone are typed into any field.
  if (!value) return true;

  if (!enabledOf(element)) throw new Refusal('state', `Cannot set the element to '${value}'. Note: it is disabled`);

  if (type === 'select') {
    chooseText(element, value, platform);
    return false;
  }
  if (type in PICKED) {
    setValue(element, pickedValue(element, value));
    return false;
  }
  if (type === 'range') {
    setValue(element, sliderValue(element, value, platform));
    return false;
  }

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

/** Return a value if the browser accepts it for a field. */
function pickedValue(element, value) {
  // A copy tells without changing the field.
  const probe = element.cloneNode();
  probe.value = value;
  if (!probe.value) {
    const [form, example] = PICKED[element.type];
    throw new Refusal('argument', `the ${element.type} field takes ${form}, for example ${example}, not '${value}'`);
  }

  const { rangeUnderflow, rangeOverflow } = probe.validity;
  if (rangeUnderflow) {
    throw new Refusal('argument', `the ${element.type} must be ${element.min} or more, not '${value}'`);
  }
  if (rangeOverflow) {
    throw new Refusal('argument', `the ${element.type} must be ${element.max} or less, not '${value}'`);
  }

  return value;
}

/** Android sets a slider to a value, iOS to a fraction of its range. */
function sliderValue(element, value, platform) {
  const isAndroid = platform === 'Android';
  const min = Number(element.min || 0);
  const max = Number(element.max || 100);
  const [from, to] = isAndroid ? [min, max] : [0, 1];

  const number = Number(value);
  if (!(number >= from && number <= to)) {
    throw new Refusal('argument', `the slider takes a number from ${from} to ${to} on ${platform}, not '${value}'`);
  }

  return String(isAndroid ? number : min + number * (max - min));
}

/** Choose the option with a text. Keys do that on a picker wheel only, not on a list that is closed. */
function chooseText(element, value, platform) {
  if (factsOf(element).kind !== 'wheel') {
    const instead = platform === 'Android' ? 'tap an option of the list that opens' : 'send the keys to the picker wheel that opens';
    throw new Refusal('state', `Cannot set the element to '${value}'. Note: it is a selection list: tap it, and ${instead}`);
  }

  const options = [...element.options];
  const option = options.find(({ text }) => text === value);
  if (!option) {
    const available = options.map(({ text }) => `'${text}'`).join(', ');
    throw new Refusal('argument', `the field has no option '${value}': its options are ${available}`);
  }

  if (!enabledOf(option)) throw new Refusal('state', `the option '${value}' is disabled`);

  option.selected = true;
  notify(element);
}

/** Set a value so that frameworks which watch the property notice. */
function setValue(element, value) {
  element.focus();
  if (element.localName.includes('-')) {
    assign(element, 'value', value);
  } else {
    // The setter of the class: a framework replaces that of the element, and takes its calls for its own.
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), 'value').set.call(element, value);
  }
  notify(element);
}

/** Dispatch the events that follow a user's change. */
function notify(element) {
  element.dispatchEvent(new InputEvent('input', { bubbles: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
}

function clear(element, { platform }) {
  const { kind } = factsOf(element);
  if (!enabledOf(element)) {
    // UiAutomator2 doesn't ask the field whether it took the text.
    if (platform === 'iOS') throw new Refusal('state', 'the element is disabled, so it cannot be cleared');
  } else if (element.isContentEditable) {
    element.focus();
    element.textContent = '';
    notify(element);
  } else if (kind === 'edit' && propertyOf(element, 'value') !== undefined) {
    setValue(element, '');
  } else {
    throw new Refusal('state', `a ${kind} takes no text, so it cannot be cleared`);
  }
}
