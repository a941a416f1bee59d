// Dialogs of the page and its selection lists as views. The browser shows them outside of the page, so they are drawn on a
// page of their own, in front of a picture of the app: in the source, in finds, touches and screenshots they are as on a phone.

import { errors } from 'appium/driver.js';

const BINDING = 'pytestDeviceAnswer';
const LABELS = { accept: 'OK', dismiss: 'Cancel' };
const ANDROID_IDS = { accept: 'android:id/button1', dismiss: 'android:id/button2' };
const ONE_BUTTON = 'alert';
const STYLE = `
  html, body { height: 100%; margin: 0; font: 16px/1.4 system-ui, sans-serif; }
  .scrim { display: flex; height: 100%; align-items: center; justify-content: center; background: #0008; }
  .panel { width: 80%; max-height: 80%; overflow-y: auto; padding: 20px; border-radius: 12px; background: #fff; color: #111; }
  .title { margin-bottom: 8px; font-weight: 600; }
  .message { white-space: pre-wrap; overflow-wrap: anywhere; }
  .buttons { display: flex; justify-content: flex-end; gap: 12px; margin-top: 16px; }
  input { width: 100%; box-sizing: border-box; margin-top: 12px; font: inherit; }
  button, .option { border: 0; padding: 10px 14px; background: none; color: #06c; font: inherit; text-align: left; }
  .option { display: block; width: 100%; color: #111; cursor: pointer; }`;
/** Runs on the page that shows the views: reports the button or option that was pressed, and the text of a prompt. */
const LISTEN = `document.addEventListener('click', ({ target }) => {
  const { answer } = target.closest('[data-answer]')?.dataset ?? {};
  const text = document.querySelector('input')?.value;
  if (answer !== undefined) ${BINDING}(JSON.stringify({ answer, text }));
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
    await show(driver, page, dialogHtml(driver.platform, dialog, await originOf(page)), answer);
  });
  await driver.drawing;
}

/** Draw the options of a selection list; `choose` sets one by its index. */
export async function offer(driver, page, options, choose) {
  after(driver, async () => {
    const answer = async ({ answer: index }) => {
      if (index !== 'dismiss') await choose(Number(index));
      erase(driver);
    };
    await show(driver, page, listHtml(driver.platform, options), answer);
  });
  await driver.drawing;
}

/** Remove the views: the app is on the screen again. */
export function erase(driver) {
  after(driver, async () => {
    if (!driver.view) return;
    driver.view = null;
    await driver.device.removeOverlay();
  });
}

/** Dismiss the views as the Back key does; return whether there were any. */
export async function dismiss(driver) {
  await driver.drawing;
  if (!driver.view) return false;
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

async function show(driver, page, body, answer) {
  const still = driver.view ? driver.view.still : await page.still();
  await driver.device.openOverlay();
  const view = await driver.browser.front();
  await view.send('Runtime.addBinding', { name: BINDING });
  const picture = still ? `background: url(data:image/jpeg;base64,${still}) 0 0 / 100% 100%` : '';
  const html = `<!doctype html><html data-dialog><meta charset="utf-8"><meta name="viewport" content="width=device-width">
    <style>${STYLE}</style><body style="${picture}"><div class="scrim">${body}</div>`;
  await view.send('Page.setDocumentContent', { frameId: view.target, html });
  await view.send('Runtime.evaluate', { expression: LISTEN });
  driver.view = { page, still, answer };
}

async function originOf(page) {
  const { url } = await page.address();
  return URL.canParse(url) ? new URL(url).origin : url;
}

function dialogHtml(platform, dialog, origin) {
  const message = escaped(dialog.message);
  const field = dialog.text === undefined ? '' : `<input autofocus aria-label="${message}" value="${escaped(dialog.text)}">`;
  const buttons = Object.entries(labelsOf(dialog)).toReversed();
  if (platform === 'iOS') {
    const made = buttons.map(([part, label]) => `<button data-answer="${part}">${label}</button>`).join('');
    return `<div class="panel" data-class="XCUIElementTypeAlert" aria-label="${message}">
      <div class="message" data-class="XCUIElementTypeStaticText">${message}</div>${field}<div class="buttons">${made}</div></div>`;
  }
  const made = buttons.map(([part, label]) => `<button id="${ANDROID_IDS[part]}" data-answer="${part}">${label}</button>`);
  return `<div class="panel" data-class="android.widget.LinearLayout">
    <div class="title" id="android:id/alertTitle">The page at "${escaped(origin)}" says:</div>
    <div class="message" id="android:id/message">${message}</div>${field}
    <div class="buttons" data-class="android.widget.ScrollView">${made.join('')}</div></div>`;
}

function listHtml(platform, options) {
  const isIos = platform === 'iOS';
  const items = options.map(({ text, isSelected }, index) => {
    const facts = isIos
      ? `role="button" ${isSelected ? 'aria-selected="true"' : ''}`
      : `id="android:id/text1" data-class="android.widget.CheckedTextView" role="radio" aria-checked="${isSelected}"`;
    return `<div class="option" ${facts} data-answer="${index}">${escaped(text)}</div>`;
  });
  const kind = isIos ? 'XCUIElementTypeCollectionView' : 'android.widget.ListView';
  return `<div class="panel" ${isIos ? '' : 'id="android:id/select_dialog_listview"'} data-class="${kind}">${items.join('')}</div>`;
}

function escaped(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
