// The contexts: the app as a native app, and as a web page.

import { errors } from 'appium/driver.js';
import { follow } from './background.js';
import * as dialogs from './dialogs.js';

export const NATIVE = 'NATIVE_APP';
const CHROMIUM = 'CHROMIUM';
const FRAME = /\.frame\.(\d+)$/;

const webView = (driver) => (driver.application ? `WEBVIEW_${driver.application}` : CHROMIUM);
const frameName = (driver, { number }) => `${webView(driver)}.frame.${number}`;

export const commands = {
  async getContexts() {
    return [NATIVE, webView(this), ...(await framesOf(this)).map((frame) => frameName(this, frame))];
  },

  /** Return the contexts with their pages, as the driver of the platform describes them. */
  async describeContexts() {
    const { width, height } = await this.askPage('screen');
    const { target } = await this.page();
    const page = { title: await this.title(), url: await this.getUrl(), id: target, x: 0, y: 0, width, height };
    const frames = (await framesOf(this)).map((frame) => [frameName(this, frame), frame]);
    const views = [[webView(this), page], ...frames];
    if (this.platform === 'iOS') {
      const bundleId = this.application;
      return [{ id: NATIVE }, ...views.map(([id, { title, url }]) => ({ id, title, url, bundleId }))];
    }

    const info = { Browser: 'Chrome', 'Android-Package': this.application };
    return views.map(([id, view]) => ({ proc: `@${id}`, webview: id, webviewName: id, info, pages: [pageOf(view)] }));
  },

  async getCurrentContext() {
    return this.inApp ? NATIVE : this.context;
  },

  async setContext(name) {
    const requested = name || NATIVE;
    const frames = (await framesOf(this)).map((frame) => frameName(this, frame));
    const existing = [NATIVE, webView(this), ...frames];
    // Two more names for the web view.
    if (![...existing, CHROMIUM, 'WEBVIEW'].includes(requested)) {
      // Clients recognize the error by its message, so the stack trace lists the existing contexts.
      const error = new errors.NoSuchContextError();
      error.stacktrace = `no context ${name}: there are ${existing.join(', ')}`;
      throw error;
    }

    const wasInFrame = FRAME.test(this.context);
    const next = [NATIVE, ...frames].includes(requested) ? requested : webView(this);
    if (next !== NATIVE) {
      await erased(this);
      await this.chromedriver(); // if it does not start, the context stays the same
    }

    this.context = next;
    await follow(this);
    const frame = FRAME.exec(requested);
    if (!this.inApp && (wasInFrame || frame)) await enterFrame(this, Number(frame?.[1] ?? 0));
  },
};

/** Return the frames of the page in front, none while a dialog is open or the app has crashed. */
async function framesOf(driver) {
  return await driver.askPage('frames').catch(() => []);
}

/** Let chromedriver use a frame of the page, counted from 1, or with 0 the page itself. */
async function enterFrame(driver, number) {
  await driver.toBrowser('/frame', 'POST', { id: null });
  if (number === 0) return;

  const frames = await driver.toBrowser('/elements', 'POST', { using: 'css selector', value: 'iframe' });
  await driver.toBrowser('/frame', 'POST', { id: frames[number - 1] });
}

/** Describe a page as the WebView of a phone does: clients look at its description for what is on the screen. */
function pageOf({ title, url, id, x, y, width, height }) {
  const description = JSON.stringify({
    attached: true,
    empty: false,
    never_attached: false,
    visible: true,
    screenX: Math.round(x),
    screenY: Math.round(y),
    width: Math.round(width),
    height: Math.round(height),
  });

  return { title, url, type: 'page', description, ...(id ? { id } : {}) };
}

/** A web page has its dialogs itself; questions for permissions are the system's. */
async function erased(driver) {
  if (driver.overlay.view?.kind !== 'permission') dialogs.erase(driver);
  await driver.overlay.drawing;
}
