// Element commands, as a native driver executes them.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';
import * as alerts from './alerts.js';
import { tap } from './gestures.js';
import { queryFor, webLocator } from './selectors.js';

const POLL_MS = 100;
const IOS_NAMES = { placeholder: 'placeholderValue', isEnabled: 'enabled', isVisible: 'visible', displayed: 'visible' };
const ANDROID_NAMES = {
  contentDescription: 'content-desc', name: 'content-desc', resourceId: 'resource-id', className: 'class',
  longClickable: 'long-clickable', isDisplayed: 'displayed', label: 'content-desc', value: 'text',
};

export const commands = {
  async findElOrEls(strategy, selector, mult, context) {
    const element = context ? util.unwrapElement(context) : null;
    const search = this.inApp ? inApp(this, strategy, selector, element) : inPage(this, strategy, selector, element);
    let hits = [];
    const seen = async () => (hits = await search(mult)).length > 0;
    if (this.inApp) await waited(this, seen);
    else await seen();
    if (mult) return hits;
    if (!hits.length) {
      const message = `no element found by ${strategy}: ${selector}`;
      throw new errors.NoSuchElementError(message);
    }
    return hits[0];
  },

  async getPageSource() {
    return await alerts.unless(this, () => this.askPage('source'), alerts.source);
  },

  async getText(element) {
    return alerts.is(element) ? alerts.textOf(this, element) : (await described(this, element)).text;
  },

  async getName(element) {
    return alerts.is(element) ? alerts.attributeOf(this, element, 'class') : (await described(this, element)).type;
  },

  async getAttribute(name, element) {
    if (alerts.is(element)) return alerts.attributeOf(this, element, name);
    const { attributes, facts } = await described(this, element);
    const known = this.platform === 'iOS' ? IOS_NAMES : ANDROID_NAMES;
    const own = attributes[name] ?? attributes[known[name]];
    if (own !== undefined) return own;
    if (name === 'rect') return facts.rect;
    const flag = facts[name];
    if (typeof flag === 'boolean') return String(flag);
    return await this.toBrowser(`/element/${element}/attribute/${name}`, 'GET');
  },

  async elementDisplayed(element) {
    return alerts.is(element) || (await described(this, element)).facts.displayed;
  },

  async elementEnabled(element) {
    return alerts.is(element) || (await described(this, element)).facts.enabled;
  },

  async elementSelected(element) {
    if (alerts.is(element)) return false;
    const { checkable, checked, selected } = (await described(this, element)).facts;
    return checkable ? checked : selected;
  },

  async getElementRect(element) {
    return alerts.is(element) ? alerts.rect : await this.askPage('rect', {}, element);
  },

  async getLocationInView(element) {
    const { x, y } = await this.getElementRect(element);
    return { x, y };
  },

  /** Tap the center of an element, even if another one covers it, as a finger would. */
  async click(element) {
    if (alerts.is(element)) {
      await alerts.press(this, element);
      return;
    }
    await this.askPage('press', {}, element);
    try {
      await this.toBrowser(`/element/${element}/click`, 'POST');
    } catch (error) {
      if (!alerts.isError(error, errors.ElementClickInterceptedError)) throw error;
      await tap(this, await this.askPage('middle', {}, element));
    }
  },

  async clear(element) {
    await this.askPage('empty', {}, element);
  },

  async setValue(given, element) {
    const text = Array.isArray(given) ? given.join('') : String(given);
    const isTyped = await this.askPage('fill', { text }, element);
    if (isTyped) await this.toBrowser(`/element/${element}/value`, 'POST', { text });
  },

  async getWindowRect() {
    const { width, height } = await this.askPage('screen');
    return { x: 0, y: 0, width, height };
  },

  async getUrl() {
    return await this.toBrowser('/url', 'GET');
  },

  async title() {
    return await this.toBrowser('/title', 'GET');
  },
};

async function described(driver, element) {
  return await driver.askPage('describe', {}, element);
}

function inApp(driver, strategy, selector, element) {
  const query = queryFor(strategy, selector, driver.platform);
  const among = (alert) => alerts.found(alert, query, strategy);
  return (many) => alerts.unless(driver, () => driver.askPage('find', { query, many }, element), among);
}

function inPage(driver, strategy, selector, element) {
  const [using, value] = webLocator(strategy, selector);
  const path = `${element ? `/element/${element}` : ''}/elements`;
  return () => driver.toBrowser(path, 'POST', { using, value });
}

/** Poll until an element is found or the implicit wait is over. */
async function waited(driver, seen) {
  const end = Date.now() + driver.implicitWaitMs;
  while (!(await seen()) && Date.now() < end) await setTimeout(Math.min(POLL_MS, Math.max(end - Date.now(), 1)));
}
