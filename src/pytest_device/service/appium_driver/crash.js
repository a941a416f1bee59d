// App crashes: turns the errors for a lost page into a native driver's errors for the app.

import { errors } from 'appium/driver.js';
import { PageClosed, PageCrashed } from './page.js';

const GONE = ['no such window', 'invalid session id', 'disconnected'];
const CRASHED = /tab crashed|page crash/;
/** Commands for which chromedriver may return null if the page crashes meanwhile. */
const ANSWERED = /\/(screenshot|url|title|source|elements?)$/;

/** Return the error of a native driver for a crashed app. */
export function crashed({ application }) {
  return new errors.UnknownError(
    `The application under test with bundle id '${application}' is not running, possibly crashed`,
  );
}

/** Do something with a page; if it ends meanwhile, throw an error that names the crashed app or the closed page. */
export async function explained(driver, work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PageCrashed || error instanceof PageClosed)) throw error;

    if (error instanceof PageCrashed || (await driver.device.crash())) throw crashed(driver);
    throw new errors.NoSuchWindowError('the page was closed meanwhile');
  }
}

/** Make chromedriver's errors name the crashed app, even where they are forwarded unchanged. */
export function explain(driver, proxy) {
  const forward = proxy.proxyCommand.bind(proxy);
  proxy.proxyCommand = async (url, ...more) => {
    let answer;
    try {
      answer = await forward(url, ...more);
    } catch (error) {
      const { error: code, message } = error.getActualError?.() ?? error;
      const isCrash = CRASHED.test(message) || (GONE.includes(code) && (await driver.device.crash()));
      throw isCrash ? crashed(driver) : error;
    }

    const [, body] = answer;
    if (ANSWERED.test(url) && !body?.value && (await driver.device.crash())) throw crashed(driver);

    return answer;
  };
}
