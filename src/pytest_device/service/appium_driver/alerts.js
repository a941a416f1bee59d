// Alerts of the page: the commands for them, and how the capabilities say to handle them.

import { errors } from 'appium/driver.js';
import * as dialogs from './dialogs.js';

export const commands = {
  async postAcceptAlert() {
    await close(this, true);
  },

  async postDismissAlert() {
    await close(this, false);
  },

  async getAlertText() {
    return (await blockedPage(this)).dialog.message;
  },

  async setAlertText(text) {
    const { dialog } = await blockedPage(this);
    if (dialog.type !== 'prompt') throw new errors.ElementNotInteractableError('the alert has no text field');
    dialog.text = String(text);
  },
};

/** The behavior for an unexpected alert. */
export function behavior(opts) {
  if (opts.autoAcceptAlerts) return 'accept';
  if (opts.autoDismissAlerts) return 'dismiss';
  return opts.unhandledPromptBehavior ?? 'ignore';
}

/** Close a dialog that just opened, if the capabilities require it; else the next command has it drawn. */
export function onDialog(driver, page) {
  const [action, , notify] = behavior(driver.opts).split(' ');
  if (action === 'ignore') return;
  page.closeDialog(action === 'accept', { isReported: Boolean(notify) }).catch((error) => driver.log.warn(error.message));
}

/** Return whether an error is of a kind; chromedriver's errors have other classes. */
export function isError(error, kind) {
  return error.error === kind.error();
}

/** Return the labels of an alert's buttons. */
export async function labelsOf(driver) {
  return Object.values(dialogs.labelsOf((await blockedPage(driver)).dialog));
}

/** Press the alert button with a label, or else the usual one: `accept` or `dismiss`. */
export async function pressLabelled(driver, usual, label) {
  const buttons = dialogs.labelsOf((await blockedPage(driver)).dialog);
  const part = label ? Object.keys(buttons).find((name) => buttons[name] === label) : usual;
  if (!part) {
    const there = Object.values(buttons).map((one) => `'${one}'`).join(', ');
    throw new errors.InvalidArgumentError(`the alert has no button '${label}': its buttons are ${there}`);
  }
  await close(driver, part === 'accept');
}

async function close(driver, isAccepted) {
  const page = await blockedPage(driver);
  await page.closeDialog(isAccepted);
}

/** Return the page that a dialog blocks. Throws NoAlertOpen. */
async function blockedPage(driver) {
  const front = await driver.page();
  const page = driver.view?.page ?? front;
  if (!page.dialog) throw new errors.NoAlertOpenError();
  return page;
}
