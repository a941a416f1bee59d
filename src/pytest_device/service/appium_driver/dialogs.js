// Dialogs of the page, its selection lists and questions for permissions as views. The browser shows them outside of the page,
// so they are drawn on a page of their own, in front of a picture of the app: in the source, in finds, touches and screenshots
// they are as on a phone. One of them is shown at a time; the browser's dialogs block the page, permissions wait in a queue.

import { errors } from 'appium/driver.js';

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
  button, .option { border: 0; padding: 10px 14px; background: none; color: #06c; font: inherit; text-align: left; }
  .option { display: block; width: 100%; color: #111; cursor: pointer; }`;
/** Runs on the page that shows the views: reports the button or option that was pressed, and the text of a prompt. */
const LISTEN = `document.addEventListener('click', ({ target }) => {
  const { answer } = target.closest('[data-answer]')?.dataset ?? {};
  const text = document.querySelector('input')?.value;
  if (answer !== undefined) ${BINDING}(JSON.stringify({ answer, text }));
});
document.addEventListener('change', ({ target }) => {
  if (target.localName === 'select') ${BINDING}(JSON.stringify({ turned: target.selectedIndex }));
});`;

/** Return the labels of a dialog's buttons by what they do. */
export function labelsOf({ type }) {
  return type === ONE_BUTTON ? { accept: LABELS.accept } : LABELS;
}

/** Draw a dialog that blocks a page. */
export async function draw(driver, page) {
  after(driver, async () => {
    const { dialog } = page;
    if (!dialog) return;
    const answer = async ({ answer: part, text }) => {
      if (text !== undefined) dialog.text = text;
      await page.closeDialog(part === 'accept');
    };
    await show(driver, { kind: 'dialog', page, answer }, dialogHtml(driver.platform, dialog, await originOf(page)));
  });
  await driver.drawing;
}

/** Draw the options of a selection list; `choose` sets one by its index. */
export async function offer(driver, page, options, choose) {
  after(driver, async () => {
    const answer = async ({ answer: index, turned }) => {
      if (turned !== undefined) return await choose(turned);
      if (index !== 'dismiss') await choose(Number(index));
      return erase(driver, 'list');
    };
    const html = driver.platform === 'iOS' ? wheelHtml(options) : listHtml(options);
    await show(driver, { kind: 'list', page, answer }, html);
  });
  await driver.drawing;
}

/**
 * Show a question for a permission once no other view is shown.
 *
 * Its `html` and `owner` are what to show and whose package it has; `answer` takes what was pressed, `automatic` answers
 * without a view, `isAnswered` says whether the answer is known, and `end` lets the page go on.
 */
export function queue(driver, question) {
  driver.questions.push(question);
  next(driver);
}

function next(driver) {
  after(driver, async () => {
    const [question] = driver.questions;
    if (!question || driver.view || question.page.dialog) return; // until the view is erased, or the dialog closed
    driver.questions.shift();
    const { page, owner, end } = question;
    if (!question.isAnswered() && question.automatic) await question.automatic();
    if (question.isAnswered()) {
      end();
      next(driver);
      return;
    }
    const answer = async ({ answer: pressed }) => {
      await question.answer(pressed);
      end(); // not awaited: a dialog may block the page
      erase(driver, 'permission');
    };
    await show(driver, { kind: 'permission', page, owner, answer }, await question.html());
  });
}

/** Remove the views of a kind, or all: the app is on the screen again. */
export function erase(driver, kind = driver.view?.kind) {
  after(driver, async () => {
    if (!driver.view || driver.view.kind !== kind) return;
    driver.view = null;
    await driver.device.removeOverlay();
  });
  next(driver);
}

/** Forget the list and the questions of a document that was left. */
export function forget(driver, page) {
  driver.questions = driver.questions.filter((question) => question.page !== page);
  if (driver.view?.page === page && driver.view.kind !== 'dialog') erase(driver);
}

/** Return whether finds see the app behind the views: WebDriverAgent does, unless a setting has it look at system alerts. */
export function isPassed({ view, platform, settings }) {
  if (platform !== 'iOS' || view?.kind !== 'permission') return false;
  return String(settings.getSettings().respectSystemAlerts) !== 'true';
}

/** Dismiss the views as the Back key does; return whether there were any. */
export async function dismiss(driver) {
  await driver.drawing;
  if (!driver.view) return false;
  if (driver.view.kind === 'permission') return true; // Android's cannot be left without an answer
  await driver.view.answer({ answer: 'dismiss' });
  await driver.drawing;
  return true;
}

/** Take what was pressed on the page of the views. */
export function onAnswer(driver, payload) {
  after(driver, async () => await driver.view?.answer(JSON.parse(payload)));
}

/** Throw UnexpectedAlertOpen for an element of a page that a dialog blocks. */
export function check(view, element) {
  const page = view?.page;
  if (page?.dialog && element?.startsWith(`f.${page.target}.`)) {
    throw new errors.UnexpectedAlertOpenError(`an alert is open: ${page.dialog.message}`);
  }
}

/** Do something after the drawing in progress; all commands wait for it. */
function after(driver, work) {
  driver.drawing = driver.drawing.then(work).catch((error) => driver.log.warn(`a dialog is not shown: ${error.message}`));
}

async function show(driver, { kind, page, owner = '', answer }, body) {
  const still = driver.view ? driver.view.still : await page.still();
  await driver.device.openOverlay();
  const view = await driver.browser.front();
  await view.send('Runtime.addBinding', { name: BINDING });
  const picture = still ? `background: url(data:image/jpeg;base64,${still}) 0 0 / 100% 100%` : '';
  const html = `<!doctype html><html data-dialog="${owner}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
    <style>${STYLE}</style><body style="${picture}"><div class="scrim">${body}</div>`;
  await view.send('Page.setDocumentContent', { frameId: view.target, html });
  await view.send('Runtime.evaluate', { expression: LISTEN });
  driver.view = { kind, page, still, answer, owner };
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

function listHtml(options) {
  const items = options.map(({ text, isSelected }, index) => {
    const facts = `data-class="android.widget.CheckedTextView" role="radio" aria-checked="${isSelected}"`;
    return `<div class="option" id="android:id/text1" ${facts} data-answer="${index}">${escaped(text)}</div>`;
  });
  return `<div class="panel" id="android:id/select_dialog_listview" data-class="android.widget.ListView">${items.join('')}</div>`;
}

function wheelHtml(options) {
  const items = options.map(({ text, isSelected }) => `<option ${isSelected ? 'selected' : ''}>${escaped(text)}</option>`);
  return `<div class="panel sheet">
    <div class="buttons" role="toolbar"><button data-answer="dismiss">Done</button></div>
    <div data-class="XCUIElementTypePicker"><select role="spinbutton" size="5">${items.join('')}</select></div></div>`;
}

export function escaped(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
