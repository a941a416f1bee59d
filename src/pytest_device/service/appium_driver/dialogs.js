// Dialogs of the page, its selection lists and questions for permissions as views. The browser shows them outside of the page,
// so they are drawn on a page of their own, in front of a picture of the app: in the source, in finds, touches and screenshots
// they are as on a phone. One of them is shown at a time; the browser's dialogs block the page, permissions wait in a queue.

import { errors } from 'appium/driver.js';
import { isAlert } from './page.js';

const BINDING = 'pytestDeviceAnswer';
const LABELS = { accept: 'OK', dismiss: 'Cancel' };
const ONE_BUTTON = 'alert';
const STYLE = `
  html, body { height: 100%; margin: 0; font: 16px/1.4 system-ui, sans-serif; }
  .scrim { display: flex; height: 100%; align-items: center; justify-content: center; background: #0008; }
  .panel { width: 80%; max-height: 80%; overflow-y: auto; padding: 20px; border-radius: 12px; background: #fff; color: #111; }
  .title { margin-bottom: 8px; font-weight: 600; }
  .message { white-space: pre-wrap; overflow-wrap: anywhere; }
  .buttons { display: flex; justify-content: flex-end; gap: 12px; margin-top: 16px; }
  .buttons.column, .sheet { flex-direction: column; align-items: stretch; }
  .sheet { width: 100%; margin-top: auto; border-radius: 12px 12px 0 0; box-sizing: border-box; }
  .scrim:has(.sheet) { align-items: flex-end; }
  select { width: 100%; font: inherit; }
  input { width: 100%; box-sizing: border-box; margin-top: 12px; font: inherit; }
  .option[aria-disabled="true"] { opacity: 0.4; }
  button, .option { border: 0; padding: 10px 14px; background: none; color: #06c; font: inherit; text-align: left; }
  .option { display: block; width: 100%; color: #111; cursor: pointer; }`;
/** Runs on the page that shows the views: reports the button or options that were pressed, and the text typed into a prompt. */
const LISTEN = `const report = (value) => ${BINDING}(JSON.stringify(value));
document.addEventListener('click', ({ target }) => {
  const toggled = target.closest('[data-toggle]');
  if (toggled) toggled.ariaChecked = String(toggled.ariaChecked !== 'true');

  const { answer } = target.closest('[data-answer]')?.dataset ?? {};
  const checked = [...document.querySelectorAll('[data-toggle][aria-checked=true]')].map(({ dataset }) => Number(dataset.toggle));
  if (answer !== undefined) report({ answer, checked });
});
document.addEventListener('keyup', ({ key }) => {
  if (key === 'Escape' && 'escape' in document.documentElement.dataset) report({ answer: 'dismiss' });
});
document.addEventListener('input', ({ target }) => {
  if (target.localName === 'input') report({ text: target.value });
});
document.addEventListener('change', ({ target }) => {
  if (target.localName === 'select') report({ turned: target.selectedIndex });
});
const field = document.querySelector('input');
field?.setSelectionRange(field.value.length, field.value.length);`;

/** Return the labels of a dialog's buttons by what they do. */
export function labelsOf({ type }) {
  return type === ONE_BUTTON ? { accept: LABELS.accept } : LABELS;
}

/** What a device shows over its app. Its drivers share it: two of them would draw two dialogs, and each would wait for an answer. */
export class Overlay {
  /** The views, see `show`; null without any. */
  view = null;
  /** The questions that wait until the view before is answered. */
  questions = [];
  /** The drawing in progress. */
  drawing = Promise.resolve();
}

/** Draw the dialog that stops the page on the screen, if there is one. */
export async function draw(driver) {
  await driver.overlay.drawing;
  if (!driver.browser.stopper()) return;

  after(driver, async () => {
    const page = driver.browser.stopper();
    if (!page) return; // it was answered meanwhile, or another driver has drawn it

    const { dialog } = page;
    const answer = async ({ answer: part, text }) => {
      // Known as soon as it is typed: alert commands close the dialog, too, without a press of its buttons.
      if (text !== undefined) dialog.text = text;
      else await page.closeDialog(part === 'accept');
    };
    await show(driver, { kind: 'dialog', page, answer }, dialogHtml(driver.platform, dialog, await originOf(page)));
  });
  await driver.overlay.drawing;
}

/** Take notice of a dialog that opened: the list of its page closes, as that of a phone. */
export function onDialog(driver, page) {
  erase(driver, { kind: 'list', page });
}

/** Remove the views of a dialog that was closed. */
export function onDialogClosed(driver, page) {
  erase(driver, { kind: 'dialog', page });
}

/** Return the answer to a change, null if the app opens a dialog because of it: the page then does not answer. */
export async function unlessDialog(answer) {
  try {
    return await answer;
  } catch (error) {
    if (!isAlert(error)) throw error;

    return null;
  }
}

/**
 * Draw the options of a selection list. Throws if they cannot be shown.
 *
 * `choose` chooses those at some of its own indexes; `isMultiple` says whether that may be several.
 */
export async function offer(driver, page, { options, isMultiple }, choose) {
  const answer = async ({ answer: place, turned, checked }) => {
    const places = isMultiple ? checked : [turned ?? Number(place)];
    if (place !== 'dismiss') await unlessDialog(choose(places.map((each) => options[each].index)));
    // A wheel that was turned stays until it is left.
    if (turned === undefined) erase(driver, { kind: 'list' });
  };
  const html = driver.platform === 'iOS' ? wheelHtml(options) : listHtml(options, isMultiple);
  await after(driver, async () => await show(driver, { kind: 'list', page, answer }, html));
}

/**
 * Show a question for a permission once no other view is shown.
 *
 * Its `html` and `owner` are what to show and whose package it has; `answer` takes what was pressed, `automatic` answers
 * without a view, `isAnswered` says whether the answer is known, and `end` lets the page go on.
 */
export function queue(driver, question) {
  driver.overlay.questions.push({ driver, ...question });
  next(driver);
}

/** Show the next question, if nothing else is shown. */
function next({ overlay }) {
  const [waiting] = overlay.questions;
  if (!waiting) return;

  after(waiting.driver, async () => {
    const [question] = overlay.questions;
    if (!question || overlay.view || question.page.dialog) return; // until the view is erased, or the dialog closed

    overlay.questions.shift();
    try {
      await put(question);
    } catch (error) {
      await refuse(question);
      throw error;
    }
    if (!overlay.view) next(question.driver);
  });
}

/** Show a question, unless it has an answer already. */
async function put(question) {
  const { driver, page, owner, end } = question;
  if (!question.isAnswered() && question.automatic) await question.automatic();
  if (question.isAnswered()) {
    end();
    return;
  }

  const answer = async ({ answer: pressed }) => {
    try {
      await question.answer(pressed);
    } finally {
      erase(driver, { kind: 'permission' });
    }
  };
  await show(driver, { kind: 'permission', page, owner, answer, end }, await question.html());
}

/** Answer a question that nobody sees: its page waits, and the browser has no dialog of its own. */
async function refuse({ driver, answer, end }) {
  await answer('false').catch((error) => driver.log.warn(`a permission is not refused: ${error.message}`));
  end();
  next(driver);
}

/** Remove the views, or only those of a kind or a page: the app is on the screen again. */
export function erase(driver, { kind = null, page = null } = {}) {
  const { overlay } = driver;
  after(driver, async () => {
    const { view } = overlay; // a drawing in progress when this was called is over now
    if (!view) return;
    if (kind !== null && view.kind !== kind) return;
    if (page !== null && view.page !== page) return;

    overlay.view = null;
    view.end(); // not awaited: a dialog may stop the page
    await driver.device.removeOverlay();
  });
  next(driver);
}

/** Forget the list and the questions of a document that was left. */
export function forget(driver, page) {
  const { overlay } = driver;
  overlay.questions = overlay.questions.filter((question) => question.page !== page);
  erase(driver, { kind: 'list', page });
  erase(driver, { kind: 'permission', page });
}

/** Remove what a driver shows at its end; refuse what it would ask. */
export async function leave(driver) {
  const { overlay } = driver;
  const own = overlay.questions.filter((question) => question.driver === driver);
  overlay.questions = overlay.questions.filter((question) => question.driver !== driver);
  for (const question of own) await refuse(question);

  await overlay.drawing;
  const { view } = overlay;
  if (view?.driver !== driver) return;

  if (view.kind === 'permission') await view.answer({ answer: 'false' });
  erase(driver);
  await overlay.drawing;
}

/** Return whether finds see the app behind the views: WebDriverAgent does, unless a setting has it look at system alerts. */
export function isPassed({ overlay: { view }, platform, settings }) {
  if (platform !== 'iOS' || view?.kind !== 'permission') return false;

  return String(settings.getSettings().respectSystemAlerts) !== 'true';
}

/** Dismiss the views as the Back key does; return whether there were any. */
export async function dismiss({ overlay }) {
  await overlay.drawing;
  const { view } = overlay;
  if (!view) return false;
  if (view.kind === 'permission') return true; // Android's cannot be left without an answer

  await view.answer({ answer: 'dismiss' });
  await overlay.drawing;

  return true;
}

/** Take what was pressed on the page of the views. */
export function onAnswer(driver, payload) {
  after(driver, async () => await driver.overlay.view?.answer(JSON.parse(payload)));
}

/** Throw UnexpectedAlertOpen for an element of a page that a dialog blocks. */
export function check(view, element) {
  const page = view?.page;
  if (page?.dialog && element?.startsWith(`f.${page.target}.`)) {
    throw new errors.UnexpectedAlertOpenError(`an alert is open: ${page.dialog.message}`);
  }
}

/** Do something after the drawing in progress; all commands wait for it. Returns its promise, which may be ignored. */
function after({ overlay, log }, work) {
  const done = overlay.drawing.then(work);
  overlay.drawing = done.catch((error) => log.warn(`a dialog is not shown: ${error.message}`));

  return done;
}

/**
 * Show a view over the app, instead of the one before.
 *
 * Its `kind` is dialog, list or permission, `page` the one that it belongs to, `owner` the package that its views have;
 * `answer` takes what is pressed, and `end` is called when the view is removed.
 */
async function show(driver, { kind, page, owner = '', answer, end = () => {} }, body) {
  const { overlay } = driver;
  // The view before covers the page: its picture of the app is kept.
  const still = overlay.view ? overlay.view.still : await page.still();
  overlay.view = null;
  try {
    // On Android, the Escape key is as the Back key, which leaves no question for a permission.
    const hasEscape = driver.platform === 'Android' && kind !== 'permission';
    await fill(driver, still, `data-dialog="${owner}" ${hasEscape ? 'data-escape' : ''}`, body);
  } catch (error) {
    await driver.device.removeOverlay(); // an empty page would hide the app
    throw error;
  }
  overlay.view = { kind, driver, page, still, answer, end, owner };
}

/** Open the page of the views, and set its content; `attributes` are those of its root element. */
async function fill(driver, still, attributes, body) {
  await driver.device.openOverlay();
  const shown = await driver.browser.front();
  await shown.sendToDocument('Runtime.addBinding', { name: BINDING });

  const picture = still ? `background: url(data:image/jpeg;base64,${still}) 0 0 / 100% 100%` : '';
  const html = `<!doctype html><html ${attributes}><meta charset="utf-8"><meta name="viewport" content="width=device-width">
    <style>${STYLE}</style><body style="${picture}"><div class="scrim">${body}</div>`;
  await shown.sendToDocument('Page.setDocumentContent', { frameId: shown.target, html });
  await shown.sendToDocument('Runtime.evaluate', { expression: LISTEN });
}

async function originOf(page) {
  const { url } = await page.address();

  return URL.canParse(url) ? new URL(url).origin : url;
}

/** The page scripts give the parts of an alert the IDs that they have on a phone. */
function dialogHtml(platform, dialog, origin) {
  const message = escaped(dialog.message);
  const field = dialog.text === undefined ? '' : `<input autofocus aria-label="${message}" value="${escaped(dialog.text)}">`;
  const buttons = Object.entries(labelsOf(dialog)).toReversed();
  const made = buttons.map(([part, label]) => `<button data-answer="${part}">${label}</button>`).join('');
  const title = platform === 'iOS' ? '' : `<div class="title" id="title">The page at "${escaped(origin)}" says:</div>`;
  const titled = platform === 'iOS' ? `aria-label="${message}"` : 'aria-labelledby="title"';
  return `<div class="panel" role="alertdialog" data-class="android.widget.LinearLayout" ${titled} aria-describedby="message">${title}
    <div class="message" id="message" data-class="XCUIElementTypeStaticText">${message}</div>${field}
    <div class="buttons" data-class="android.widget.ScrollView">${made}</div></div>`;
}

/** A list for one choice closes with it; one for several has buttons. */
function listHtml(options, isMultiple) {
  const [role, effect] = isMultiple ? ['checkbox', 'toggle'] : ['radio', 'answer'];
  const items = options.map(({ text, isSelected, isEnabled }, place) => {
    const facts = `data-class="android.widget.CheckedTextView" role="${role}" aria-checked="${isSelected}"`;
    const tap = isEnabled ? `data-${effect}="${place}"` : 'aria-disabled="true"';
    return `<div class="option" id="android:id/text1" ${facts} ${tap}>${escaped(text)}</div>`;
  });
  const list = `<div id="android:id/select_dialog_listview" data-class="android.widget.ListView">${items.join('')}</div>`;
  const buttons = `<div class="buttons" data-class="android.widget.ScrollView">
    <button id="android:id/button2" data-answer="dismiss">${LABELS.dismiss}</button>
    <button id="android:id/button1" data-answer="accept">${LABELS.accept}</button></div>`;

  return `<div class="panel" data-class="android.widget.LinearLayout">${list}${isMultiple ? buttons : ''}</div>`;
}

function wheelHtml(options) {
  const items = options.map(({ text, isSelected, isEnabled }) => {
    return `<option ${isSelected ? 'selected' : ''} ${isEnabled ? '' : 'disabled'}>${escaped(text)}</option>`;
  });
  return `<div class="panel sheet">
    <div class="buttons" role="toolbar"><button data-answer="dismiss">Done</button></div>
    <div data-class="XCUIElementTypePicker"><select role="spinbutton" size="5">${items.join('')}</select></div></div>`;
}

export function escaped(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
