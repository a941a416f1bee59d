// Element commands, as a native driver executes them.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';
import { isError } from './alerts.js';
import * as dialogs from './dialogs.js';
import { scaleOf, toClient } from './density.js';
import { press } from './gestures.js';
import { Keyboard } from './keyboard.js';
import { checkStrategy, queryFor, scrollQueryFor, webLocator, wordsOf } from './selectors.js';

const POLL_MS = 100;
/** Other names of Android's attributes, in lower case. */
const ANDROID_NAMES = {
  contentdescription: 'content-desc', name: 'text', resourceid: 'resource-id', classname: 'class',
  longclickable: 'long-clickable',
};
const IOS_ATTRIBUTES = [
  'type', 'value', 'name', 'label', 'placeholderValue', 'enabled', 'visible', 'accessible', 'selected', 'focused', 'index',
  'rect', 'traits', 'hittable', 'minValue', 'maxValue',
];
const ANDROID_ATTRIBUTES = [
  'checkable', 'checked', 'class', 'clickable', 'content-desc', 'enabled', 'focusable', 'focused', 'long-clickable',
  'package', 'password', 'resource-id', 'scrollable', 'selected', 'text', 'hint', 'bounds', 'displayed',
];

export const commands = {
  async findElOrEls(strategy, selector, mult, context) {
    const element = context ? util.unwrapElement(context) : null;
    if (!this.inApp) return await inPage(this, strategy, selector, element, mult);
    checkStrategy(strategy, this.platform);
    let hits = [];
    let reason = null;
    let search = null;
    try {
      search = inApp(this, strategy, selector, element);
      await waited(this, async () => (hits = await search(mult)).length > 0);
    } catch (error) {
      if (!isSwallowed(this, strategy, error)) throw error;
      reason = error.message;
    }
    if (mult) return hits;
    if (hits.length) return remembered(this, hits[0], search);
    throw notFound(strategy, selector, reason ?? (await hintFor(this, strategy, selector)));
  },

  /**
   * Scroll a view until a locator matches in it: `mobile: scroll` of UiAutomator2.
   *
   * @param options elementId: the view, by default the first one that can be scrolled; maxSwipes: how often it is scrolled
   *
   * Throws NoSuchElement if the end is reached before.
   */
  async scrollToMatch(strategy, selector, { elementId = null, maxSwipes }) {
    const query = scrollQueryFor(strategy, selector, { isInElement: elementId !== null, maxSwipes });
    const hits = await this.askPage('find', { query, many: false, isDeep: true }, elementId);
    if (hits.length === 0) throw notFound(strategy, selector, await hintFor(this, strategy, selector));
  },

  async getPageSource() {
    return await this.askPage('source');
  },

  async getText(element) {
    return (await described(this, element)).text;
  },

  /** Return the tag name: on Android the content description. */
  async getName(element) {
    if (this.platform === 'Android') return await this.getAttribute('content-desc', element);
    return await this.getAttribute('type', element);
  },

  async getAttribute(name, element) {
    const { attributes, facts } = await described(this, element);
    return this.platform === 'iOS' ? iosAttribute(name, attributes, facts) : androidAttribute(name, attributes);
  },

  async elementDisplayed(element) {
    return (await described(this, element)).facts.displayed;
  },

  async elementEnabled(element) {
    return (await described(this, element)).facts.enabled;
  },

  async elementSelected(element) {
    return (await described(this, element)).attributes.selected === 'true';
  },

  async getElementRect(element) {
    return toClient(this, await this.askPage('rect', {}, element));
  },

  async getLocationInView(element) {
    const { x, y } = await this.getElementRect(element);
    return { x, y };
  },

  /** Tap the center of an element, even if another one covers it, as a finger would. */
  async click(element) {
    const { options, ...point } = await this.askPage('press', {}, element);
    if (!options) return await press(this, point);
    const page = await this.page();
    return await dialogs.offer(this, page, options, (index) => page.query({ ask: 'choose', index, target: {} }, element));
  },

  async clear(element) {
    await dialogs.unlessDialog(this.askPage('empty', {}, element));
  },

  async setValue(value, element) {
    const text = Array.isArray(value) ? value.join('') : String(value);
    const isTyped = await dialogs.unlessDialog(this.askPage('fill', { text }, element));
    if (isTyped) await this.onPage((page) => page.input(new Keyboard().typed(text)));
  },

  async getWindowRect() {
    const { width, height } = await this.askPage('screen');
    return toClient(this, { x: 0, y: 0, width, height });
  },

  async getUrl() {
    return (await this.onPage((page) => page.address())).url;
  },

  async title() {
    return await this.askPage('title');
  },

  async back() {
    if (!(await dialogs.dismiss(this))) await this.onPage((page) => page.go(-1));
  },

  async getScreenshot() {
    if (scaleOf(this) === 1) return await this.onPage((page) => page.screenshot());
    const { width, height } = await this.askPage('screen');
    return await this.onPage((page) => page.screenshot({ x: 0, y: 0, width, height, scale: scaleOf(this) }));
  },

  async getElementScreenshot(element) {
    await this.askPage('middle', {}, element);
    const clip = { ...(await this.askPage('rect', {}, element)), scale: scaleOf(this) };
    return await this.onPage((page) => page.screenshot(clip));
  },
};

const wrapped = (ids) => ids.map((id) => util.wrapElement(id));

/** Return an attribute as UiAutomator2 does: a missing value is the text null, and names ignore case. */
function androidAttribute(name, attributes) {
  const lower = name.toLowerCase();
  const attribute = ANDROID_NAMES[lower] ?? lower;
  if (ANDROID_ATTRIBUTES.includes(attribute)) return String(attributes[attribute] ?? null);

  throw unknownAttribute(name, ANDROID_ATTRIBUTES);
}

/** Return an attribute as XCUITest does: null if it has no value, and what is no text as JSON. */
function iosAttribute(name, attributes, { rect, displayed }) {
  const plain = name.replace(/^wd([A-Z])/, (_, letter) => letter.toLowerCase());
  if (!IOS_ATTRIBUTES.includes(plain)) throw unknownAttribute(name, IOS_ATTRIBUTES);
  if (plain === 'rect') return JSON.stringify({ y: rect.y, x: rect.x, width: rect.width, height: rect.height });
  if (plain === 'hittable') return String(displayed);
  const value = attributes[plain] ?? null;
  // The driver takes the numbers 0 and 1 for false and true.
  return plain === 'index' && Number(value) <= 1 ? String(value === '1') : value;
}

function unknownAttribute(name, attributes) {
  const there = attributes.join(', ');
  return new errors.UnknownError(`the attribute '${name}' is unknown. Only the following attributes are supported: ${there}`);
}

async function described(driver, element) {
  return await driver.askPage('describe', {}, element);
}

function inApp(driver, strategy, selector, element) {
  const query = queryFor(strategy, selector, appOf(driver));
  return (many) => {
    // Of several UiSelectors, the server looks for all elements with each, but for one element with the first.
    const part = !many && query.any ? query.any[0] : query;
    return driver.askPage('find', { query: part, many, isDeep: true }, element).then(wrapped);
  };
}

/** Return what completes short IDs: the package of the session's app, unless the setting says not to. */
function appOf({ platform, caps, application, settings }) {
  const { disableIdLocatorAutocompletion } = settings.getSettings();
  const isCompleted = String(disableIdLocatorAutocompletion) !== 'true';
  return { platform, package: caps.appPackage ?? application, isCompleted };
}

/** Return a locator that finds on a phone what a failed look-up probably meant. */
async function hintFor(driver, strategy, selector) {
  const request = { words: wordsOf(strategy, selector), selector, isClass: strategy === 'class name' };
  return await driver.askPage('hint', request);
}

async function inPage(driver, strategy, selector, element, mult) {
  const [using, value] = webLocator(strategy, selector);
  const path = `${element ? `/element/${element}` : ''}/elements`;
  const hits = await driver.toBrowser(path, 'POST', { using, value });
  if (mult) return hits;
  if (hits.length) return hits[0];
  throw notFound(strategy, selector);
}

/** Only the server of Android finds an element again, and none that was one of several. */
function remembered(driver, hit, search) {
  const again = async () => {
    const [current] = await search(false);
    return current ? util.unwrapElement(current) : null;
  };
  if (driver.platform === 'Android') driver.foundAgain.remember(util.unwrapElement(hit), again);
  return hit;
}

/** XCUITest takes an invalid locator for one that matches nothing, except for CSS, which it translates itself. */
function isSwallowed({ platform }, strategy, error) {
  return platform === 'iOS' && strategy !== 'css selector' && isError(error, errors.InvalidSelectorError);
}

function notFound(strategy, selector, hint = null) {
  const message = `no element found by ${strategy}: ${selector}`;
  return new errors.NoSuchElementError(hint ? `${message}; ${hint}` : message);
}

/** Poll until an element is found or the implicit wait is over. */
async function waited(driver, seen) {
  const end = Date.now() + driver.implicitWaitMs;
  while (!(await seen()) && Date.now() < end) await setTimeout(Math.min(POLL_MS, Math.max(end - Date.now(), 1)));
}
