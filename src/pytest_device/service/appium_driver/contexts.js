// The contexts: the app as a native app, and as a web page.

import { errors } from 'appium/driver.js';
import { follow } from './background.js';

export const NATIVE = 'NATIVE_APP';
const CHROMIUM = 'CHROMIUM';

const webView = (driver) => (driver.application ? `WEBVIEW_${driver.application}` : CHROMIUM);

export const commands = {
  async getContexts() {
    return [NATIVE, webView(this)];
  },

  /** Return the contexts with their pages, as the driver of the platform describes them. */
  async describeContexts() {
    const id = webView(this);
    const page = { title: await this.title(), url: await this.getUrl() };
    if (this.platform === 'iOS') return [{ id: NATIVE }, { id, ...page, bundleId: this.application }];
    const info = { Browser: 'Chrome', 'Android-Package': this.application };
    return [{ proc: `@${id}`, webview: id, webviewName: id, info, pages: [{ ...page, type: 'page' }] }];
  },

  async getCurrentContext() {
    return this.inApp ? NATIVE : webView(this);
  },

  async setContext(name) {
    const wanted = name || NATIVE;
    const known = [NATIVE, webView(this), CHROMIUM, 'WEBVIEW'];
    if (!known.includes(wanted)) {
      // Clients recognize the error by its message, so the stack trace lists the existing contexts.
      const error = new errors.NoSuchContextError();
      error.stacktrace = `no context ${name}: there are ${known.slice(0, 2).join(', ')}`;
      throw error;
    }
    this.context = wanted === NATIVE ? NATIVE : webView(this);
    await follow(this);
  },
};
