// The crash of the app: what chromedriver says of a page that is gone becomes what a native driver says of the app.

import { errors } from 'appium/driver.js';

const GONE = ['no such window', 'invalid session id', 'disconnected'];
const CRASHED = /tab crashed|page crash/;

/** Let the errors of chromedriver name the app that has crashed, also where they are forwarded as they are. */
export function explain(driver, proxy) {
  const forward = proxy.proxyCommand.bind(proxy);
  proxy.proxyCommand = async (...args) => {
    try {
      return await forward(...args);
    } catch (error) {
      const { error: code, message } = error.getActualError?.() ?? error;
      const isCrash = CRASHED.test(message) || (GONE.includes(code) && (await driver.device.crash()));
      if (!isCrash) throw error;
      const id = driver.application;
      throw new errors.UnknownError(`The application under test with bundle id '${id}' is not running, possibly crashed`);
    }
  };
}
