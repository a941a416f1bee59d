// Alerts of the page: the commands for them, and how the capabilities say to handle them.

import { errors } from 'appium/driver.js';
import * as dialogs from './dialogs.js';
import { press } from './gestures.js';
import { typeText } from './keys.js';

const TYPE_INSTEAD = 'find the field of the alert, an android.widget.EditText, and send it the keys';

export const commands = {
  async postAcceptAlert() {
    await pressUsual(this, 'accept');
  },

  async postDismissAlert() {
    await pressUsual(this, 'dismiss');
  },

  async getAlertText() {
    return (await openAlert(this)).text;
  },

  /** Type into the field of an alert. UiAutomator2 has no such command. */
  async setAlertText(text) {
    if (this.platform === 'Android') {
      throw new errors.NotYetImplementedError(`Method has not yet been implemented. Note: ${TYPE_INSTEAD}`);
    }

    const alert = await openAlert(this);
    await alert.type(String(text));
  },
};

/** Return the behavior for an unexpected alert, in WebDriver's words: accept, dismiss or ignore, with or without notify. */
export function behavior({ opts, platform }) {
  // Capabilities of XCUITest: UiAutomator2 has neither.
  if (platform === 'iOS' && opts.autoAcceptAlerts) return 'accept';
  if (platform === 'iOS' && opts.autoDismissAlerts) return 'dismiss';

  return opts.unhandledPromptBehavior ?? 'ignore';
}

/** Close a dialog that just opened, if the capabilities require it; else the next command has it drawn. */
export function onDialog(driver, page) {
  const [action, ...more] = behavior(driver).split(' ');
  if (action === 'ignore') return;

  const isReported = more.includes('notify');
  page.closeDialog(action === 'accept', { isReported }).catch((error) => driver.log.warn(error.message));
}

/** Return whether an error is of a kind; chromedriver's errors have other classes. */
export function isError(error, kind) {
  return error.error === kind.error();
}

/** Return the labels of an alert's buttons. */
export async function labelsOf(driver) {
  return (await openAlert(driver)).buttons.map(({ label }) => label);
}

/** Press the alert button with a label, or else the usual one: `accept` or `dismiss`. */
export async function pressLabelled(driver, usual, label) {
  if (!label) return await pressUsual(driver, usual);

  const alert = await openAlert(driver);
  const index = alert.buttons.findIndex((button) => button.label === label);
  if (index < 0) throw missing(driver, alert, `no button '${label}'`);

  return await alert.press(index);
}

async function pressUsual(driver, action) {
  const alert = await openAlert(driver);
  const index = USUAL[alert.kind](alert.buttons, action === 'accept');
  if (!alert.buttons[index]) throw missing(driver, alert, `no button to ${action} it`);

  await alert.press(index);
}

/** Return the error of the platform's driver for a button that the alert does not have. */
function missing({ platform }, { buttons }, problem) {
  const labels = buttons.map(({ label }) => `'${label}'`).join(', ') || 'none';
  const error = platform === 'iOS' ? 'Failed to find the button' : 'The expected button cannot be detected on the alert';

  return new errors.InvalidElementStateError(`${error}. Note: the alert has ${problem}: its buttons are ${labels}`);
}

/** Which button the drivers of phones press, by the kind of an alert: its index. */
const USUAL = {
  browser: (_, isAccepted) => (isAccepted ? 0 : 1),
  regular: (buttons, isAccepted) => {
    const numbers = buttons.map(({ id }) => Number(/\d+$/.exec(id)[0]));
    const first = Math.min(...numbers);

    // Android numbers the positive button first.
    return numbers.indexOf(isAccepted || buttons.length === 1 ? first : first + 1);
  },
  permission: (buttons, isAccepted) => {
    const pattern = isAccepted ? /[^a-z]allow[^a-z]/i : /[^a-z]deny[^a-z]/i;
    const index = buttons.findIndex(({ id }) => pattern.test(id));

    return index >= 0 ? index : Math.min(isAccepted ? 1 : 0, buttons.length - 1);
  },
  alert: (buttons, isAccepted) => (isAccepted ? buttons.length - 1 : 0),
  sheet: (buttons, isAccepted) => (isAccepted ? 0 : buttons.length - 1),
};

/** Return the alert on the screen: { kind, text, buttons, press, type }. Throws NoAlertOpen. */
async function openAlert(driver) {
  await driver.page();
  const { view } = driver.overlay;
  const page = view ? view.page : driver.browser.stopper();
  if (page?.dialog && view?.kind !== 'permission') return browserAlert(driver, page);

  const alert = await driver.askScreen('alert');
  if (!alert) throw new errors.NoAlertOpenError();

  return {
    ...alert,
    press: (index) => pressAt(driver, index),
    type: (text) => typeInto(driver, alert, text),
  };
}

/** A dialog of the browser is closed by itself. An alert that only informs has one button: it is also dismissed by it. */
function browserAlert(driver, page) {
  const { dialog } = page;
  const labels = dialogs.labelsOf(dialog);
  const parts = Object.keys(labels);

  return {
    kind: parts.length > 1 ? 'browser' : 'alert',
    text: dialog.message,
    buttons: parts.map((part) => ({ label: labels[part] })),
    press: async (index) => await page.closeDialog(parts[index] === 'accept'),
    type: async (text) => {
      if (dialog.text === undefined) throw noField(0);
      if (driver.overlay.view) await typeInto(driver, { fields: 1 }, text);
      else dialog.text = text; // its views could not be drawn
    },
  };
}

async function pressAt(driver, index) {
  await press(driver, await driver.askScreen('alertButton', { index }));
}

async function typeInto(driver, { fields }, text) {
  if (fields !== 1) throw noField(fields);

  await driver.askScreen('alertField');
  await typeText(driver, text);
}

function noField(many) {
  return new errors.UnsupportedOperationError(`The alert contains ${many ? 'more than one input field' : 'no input fields'}`);
}
