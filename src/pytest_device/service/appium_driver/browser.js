// The session's Chromium over the Chrome DevTools Protocol: its pages, and which of them is on the screen.

import { once } from 'node:events';
import CDP from 'chrome-remote-interface';
import { errors } from 'appium/driver.js';
import { Page } from './page.js';

const HOST = '127.0.0.1';
/** Commands are sent by their names, so the library builds no method for each of them. */
const NO_METHODS = { domains: [] };
const PAGES = [{ type: 'page' }];
const OPEN_MS = 10_000;

export class Browser {
  /** Options of the driver: `limits` in milliseconds, and what is called when a page asks or closes something. */
  #options;
  #client;
  /** The targets of the open pages; the last one is on the screen. */
  #targets = [];
  /** The browser context of each target: pages of one may stop each other. */
  #contexts = new Map();
  /** Browser contexts of hidden pages. */
  #hidden = new Set();
  /** Promises of attached pages, by target. */
  #pages = new Map();
  /** The pages with an open dialog. */
  #withDialog = new Set();

  constructor(client, options) {
    this.#client = client;
    this.#options = options;
    client.on('Target.targetCreated', ({ targetInfo }) => {
      this.#targets.push(targetInfo.targetId);
      this.#contexts.set(targetInfo.targetId, targetInfo.browserContextId);
    });
    client.on('Target.attachedToTarget', (attached) => this.#meet(attached));
    client.on('Target.targetDestroyed', ({ targetId }) => this.#forget(targetId));
    client.on('Target.targetCrashed', ({ targetId }) => this.#crash(targetId));
    client.on('Target.detachedFromTarget', ({ targetId }) => this.#forget(targetId));
  }

  /** Connect to the relay, which is like the browser's debugging port. */
  static async connect(port, options) {
    const target = await debuggerUrl(port);
    const browser = new Browser(await CDP({ target, protocol: NO_METHODS }), options);
    try {
      await browser.#begin();
    } catch (error) {
      await browser.close();
      throw error;
    }

    return browser;
  }

  async #begin() {
    await this.send('Target.setDiscoverTargets', { discover: true, filter: PAGES });
    // A dialog that opens before the driver sees it would stop the driver, and could not be closed by it: new pages wait.
    await this.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter: PAGES });
    await this.sync();
  }

  async send(method, params = {}) {
    return await this.#client.send(method, params);
  }

  /** Read the order of the pages again: a page that is being closed is not on the screen any more. */
  async sync() {
    // The relay lists the page in front first. The events before the answer have arrived, too.
    const { targetInfos } = await this.send('Target.getTargets');
    const order = targetInfos.map(({ targetId }) => targetId).toReversed();

    // One that has opened since then is in front of all others.
    const rank = (target) => (order.includes(target) ? order.indexOf(target) : order.length);
    this.#targets.sort((target, other) => rank(target) - rank(other));
  }

  /** Return the targets of the open pages, which are chromedriver's window handles. */
  targets() {
    return [...this.#targets];
  }

  /** Return the page on the screen. Throws NoSuchWindow if none opens in time. */
  async front() {
    const signal = AbortSignal.timeout(OPEN_MS);
    while (!this.#targets.length) {
      await once(this.#client, 'Target.targetCreated', { signal }).catch(() => {
        throw new errors.NoSuchWindowError('the browser has no page');
      });
    }
    return await this.#attached(this.#targets.at(-1));
  }

  /**
   * Open an empty page that is never on the screen: the relay hides the browser contexts that programs make.
   *
   * Such a page has a process of its own: neither the app nor its dialogs stop it.
   */
  async openHidden() {
    const context = await this.send('Target.createBrowserContext', { disposeOnDetach: true });
    this.#hidden.add(context.browserContextId);
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', ...context });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });

    return new HiddenPage(this.#client, sessionId, () => this.send('Target.disposeBrowserContext', context));
  }

  /**
   * Return the page whose dialog stops the page of a target, by default the one on the screen; null without such a dialog.
   *
   * It may be another page of the app: pages that know each other share a process, which a dialog stops as a whole.
   */
  stopper(target = this.#targets.at(-1)) {
    const stoppers = [...this.#withDialog];
    const own = stoppers.find((page) => page.target === target);
    if (own) return own;

    const context = this.#contexts.get(target);
    return stoppers.find((page) => this.#contexts.get(page.target) === context) ?? null;
  }

  /** Close the page of a target if another page has opened it. */
  async closeOpened(targetId) {
    const { targetInfo } = await this.send('Target.getTargetInfo', { targetId });
    if (!targetInfo.openerId) return;

    await this.send('Target.closeTarget', { targetId });
    await this.sync();
  }

  async close() {
    await this.#client.close();
  }

  /** Attach to a page that has just opened, and let it begin. */
  #meet({ sessionId, targetInfo: { targetId, browserContextId }, waitingForDebugger }) {
    if (!waitingForDebugger) return; // it was there before: it is attached when it is needed
    if (this.#hidden.has(browserContextId)) {
      this.#client.send('Runtime.runIfWaitingForDebugger', {}, sessionId).catch(() => {}); // it was closed early
      return;
    }

    const page = new Page(this.#client, targetId, sessionId, this.#pageOptions());
    this.#pages.set(targetId, Promise.resolve(page));
  }

  #pageOptions() {
    return {
      ...this.#options,
      onDialog: (page) => this.#onDialog(page),
      onDialogClosed: (page) => this.#onDialogClosed(page),
      stopperOf: (page) => this.stopper(page.target),
    };
  }

  #onDialog(page) {
    this.#withDialog.add(page);
    for (const other of this.#pages.values()) other.then((stopped) => stopped.wake(), () => {});
    this.#options.onDialog(page);
  }

  #onDialogClosed(page) {
    this.#withDialog.delete(page);
    this.#options.onDialogClosed(page);
  }

  async #attached(target) {
    if (!this.#pages.has(target)) this.#pages.set(target, Page.attach(this.#client, target, this.#pageOptions()));
    try {
      return await this.#pages.get(target);
    } catch (error) {
      this.#pages.delete(target);
      throw error;
    }
  }

  #forget(target) {
    this.#targets = this.#targets.filter((other) => other !== target);
    this.#contexts.delete(target);
    this.#pages.get(target)?.then((page) => page.onClose(), () => {});
    this.#pages.delete(target);
  }

  #crash(target) {
    this.#pages.get(target)?.then((page) => page.onCrash(), () => {});
  }
}

class HiddenPage {
  #client;
  #session;

  constructor(client, session, close) {
    this.#client = client;
    this.#session = session;
    this.close = close;
  }

  /** Return the value of an expression, or of its promise. Throws if it fails. */
  async evaluate(expression) {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#client.send('Runtime.evaluate', options, this.#session);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);

    return result.value;
  }
}

async function debuggerUrl(port) {
  const reply = await fetch(`http://${HOST}:${port}/json/version`);
  if (!reply.ok) throw new errors.UnknownError(`the browser refused the driver: HTTP ${reply.status}`);

  return (await reply.json()).webSocketDebuggerUrl;
}
