// App crashes: turns chromedriver's errors for a lost page into a native driver's errors for the app.

import { errors } from 'appium/driver.js';

const GONE = ['no such window', 'invalid session id', 'disconnected'];
const CRASHED = /tab crashed|page crash/;
/** Commands for which chromedriver may return null if the page crashes meanwhile. */
const ANSWERED = /\/(screenshot|url|title|source|elements?)$/;

/** Make chromedriver's errors name the crashed app, even where they are forwarded unchanged. */
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
    if (ANSWERED.test(url) && !answer[1]?.value && (await driver.device.crash())) throw crashed();
    return answer;
  };
}
