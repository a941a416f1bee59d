// The contexts: the app as a native one, and as the web page that it is.

import { errors } from 'appium/driver.js';

export const NATIVE = 'NATIVE_APP';
const CHROMIUM = 'CHROMIUM';

const webView = (driver) => (driver.application ? `WEBVIEW_${driver.application}` : CHROMIUM);

export const commands = {
  async getContexts() {
    return [NATIVE, webView(this)];
  },

  async getCurrentContext() {
    return this.inApp ? NATIVE : webView(this);
  },

  async setContext(name) {
    const wanted = name || NATIVE;
    const known = [NATIVE, webView(this), CHROMIUM, 'WEBVIEW'];
    if (!known.includes(wanted)) {
      throw new errors.NoSuchContextError(`no context ${name}: there are ${known.slice(0, 2).join(', ')}`);
    }
    this.context = wanted === NATIVE ? NATIVE : webView(this);
  },
};
