// The crash of the app: what chromedriver says of a page that is gone becomes what a native driver says of the app.

import { errors } from 'appium/driver.js';

const GONE = ['no such window', 'invalid session id', 'disconnected'];
const CRASHED = /tab crashed|page crash/;

/** Let the errors of chromedriver name the app that has crashed, also where they are forwarded as they are. */
export function explain(driver, proxy) {
  const forward = proxy.proxyCommand.bind(proxy);
  const crashed = () =>
    new errors.UnknownError(
      `The application under test with bundle id '${driver.application}' is not running, possibly crashed`,
    );
  proxy.proxyCommand = async (url, ...more) => {
    let answer;
    try {
      answer = await forward(url, ...more);
    } catch (error) {
      const { error: code, message } = error.getActualError?.() ?? error;
      const isCrash = CRASHED.test(message) || (GONE.includes(code) && (await driver.device.crash()));
      throw isCrash ? crashed() : error;
    }
    // Of a page that crashes meanwhile chromedriver may return a screenshot that is null.
    if (url.endsWith('/screenshot') && !answer[1]?.value && (await driver.device.crash())) throw crashed();
    return answer;
  };
}
