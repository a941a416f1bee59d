// The app in the background, behind the launcher: commands go to the browser window that a user would see.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';

/** The command answers only after them. */
const MAX_SECONDS = 600;
/** The apps in front when no installed one is: the launcher, and the browser with a web page. */
export const LAUNCHERS = { Android: 'com.google.android.apps.nexuslauncher', iOS: 'com.apple.springboard' };
export const BROWSERS = { Android: 'com.android.chrome', iOS: 'com.apple.mobilesafari' };

export const commands = {
  /** Put the app in the background for some seconds, or with a negative number until it is activated. */
  async backgroundApp(duration) {
    const seconds = Number(duration ?? -1);
    if (!(seconds <= MAX_SECONDS)) {
      throw new errors.InvalidArgumentError(`seconds must be a number up to ${MAX_SECONDS}, not ${duration}`);
    }

    await hide(this);
    if (seconds < 0) return;

    await setTimeout(seconds * 1000);
    await this.device.foreground();
    await follow(this);
  },

  async getCurrentPackage() {
    if (this.overlay.view?.owner) return this.overlay.view.owner;

    const front = await this.device.front();
    if (front) return front;

    const isLauncher = this.away || (await this.device.crash()) || (await this.askPage('isHome'));
    return (isLauncher ? LAUNCHERS : BROWSERS)[this.platform];
  },
};

async function hide(driver) {
  if (driver.away) return;

  const { target: app } = await driver.page();
  await driver.device.background();
  driver.away = { app, launcher: driver.browser.targets().at(-1) };
  await follow(driver);
}

/** Let chromedriver follow the app in a web context: the web view stays the app's, even in the background. */
export async function follow(driver) {
  const { app, launcher } = driver.away ?? {};
  const open = driver.browser.targets();
  const isAway = launcher !== undefined && open.at(-1) === launcher;
  if (!isAway) driver.away = null;
  if (driver.inApp) return;

  if (isAway) {
    await enter(driver, app);
    return;
  }

  const current = app ?? (await driver.toBrowser('/window', 'GET').catch(() => null)); // none after a crash
  if (!current && (await driver.device.crash())) return; // in the lost window, each command reports the crash

  if (!open.includes(current)) await enter(driver, open.at(-1));
  else if (app) await enter(driver, app); // from the launcher
}

async function enter(driver, handle) {
  await driver.toBrowser('/window', 'POST', { handle });
}
