// Element commands, as a native driver executes them.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';
import { isError } from './alerts.js';
import * as dialogs from './dialogs.js';
import { scaleOf, toClient } from './density.js';
import { press } from './gestures.js';
import { textToType, typeText, writeText } from './keys.js';
import { checkStrategy, queryFor, queryForFocus, scrollQueryFor, webLocator, wordsOf } from './selectors.js';

/** Between two searches while the implicit wait lasts. */
const POLL_MS = 100;
/** WebDriver's code point of the key. */
const ESCAPE = '\uE00C';
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
  /**
   * Find one element, or all with `mult`, below another one with `context`; wait as long as the implicit wait says.
   *
   * Throws InvalidSelector, except where the platform's driver takes an invalid locator for one that matches nothing, and
   * NoSuchElement with a hint at what was probably meant.
   */
  async findElOrEls(strategy, selector, mult, context) {
    const element = context ? util.unwrapElement(context) : null;
    if (!this.inApp) return await findInPage(this, strategy, selector, element, mult);

    checkStrategy(strategy, this.platform);
    let search = null;
    let hits = [];
    let problem = null;
    try {
      search = searchFor(this, strategy, selector, element);
      hits = await firstHits(this, () => search(mult));
    } catch (error) {
      if (!isSwallowed(this, strategy, error)) throw error;
      problem = error.message;
    }

    if (mult) return hits;
    if (hits.length > 0) return remembered(this, hits[0], search);

    throw notFound(strategy, selector, problem ?? (await hintFor(this, strategy, selector)));
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

  /** Return the element with the focus. Throws NoSuchElement without one. */
  async active() {
    const [id] = await this.askPage('find', { query: queryForFocus(this.platform), many: false, isDeep: true });
    if (!id) throw new errors.NoSuchElementError('no element has the focus');

    return util.wrapElement(id);
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

  /** Tap the center of an element, even if another one covers it, as a finger would. A selection list shows its options. */
  async click(element) {
    const { list, ...point } = await this.askPage('press', {}, element);
    if (!list) {
      await press(this, point);
      return;
    }

    const page = await this.page();
    const choose = (indexes) => page.query({ ask: 'choose', indexes, target: {} }, element);
    await dialogs.offer(this, page, list, choose);
  },

  async clear(element) {
    await dialogs.unlessDialog(this.askPage('empty', {}, element));
  },

  /** Type a text into a field, at the caret; set the value of a field that is picked, such as a date. */
  async setValue(value, element) {
    await enter(this, element, Array.isArray(value) ? value.join('') : String(value));
  },

  async getWindowRect() {
    const { width, height } = await this.askPage('screen');
    const rect = { x: 0, y: 0, width, height };
    return this.inApp ? toClient(this, rect) : rect;
  },

  async getUrl() {
    return (await this.onPage((page) => page.address())).url;
  },

  async title() {
    return await this.askPage('title');
  },

  async back() {
    if (this.platform === 'iOS') {
      await pressBackButton(this);
      return;
    }

    await this.page(); // draws a dialog that has just opened
    const wasDialog = await dialogs.dismiss(this);
    if (wasDialog) return;

    const wasKeyboard = await this.askPage('blur');
    if (wasKeyboard) return;

    // The Back key is for the window in front. Modal dialogs of the browser and of React Native for Web close by Escape.
    if (await this.askPage('hasModal')) {
      await typeText(this, ESCAPE);
      return;
    }

    // From its first place, the Back key moves an app to the background. The launcher ignores it.
    const [here, before] = await this.onPage((shown) => shown.lastUrls());
    if (isHome(here)) return;
    if (isHome(before)) {
      await this.backgroundApp(-1);
      return;
    }

    const page = await this.page();
    const hasGone = await this.onPage((shown) => shown.go(-1));
    if (!hasGone) await this.browser.closeOpened(page.target);
  },

  async getScreenshot() {
    const scale = scaleOf(this);
    if (scale === 1) return await this.onPage((page) => page.screenshot());

    const { width, height } = await this.askPage('screen');
    return await this.onPage((page) => page.screenshot({ x: 0, y: 0, width, height, scale }));
  },

  async getElementScreenshot(element) {
    // Scrolls it into view, which changes its rectangle.
    await this.askPage('middle', {}, element);
    const rect = await this.askPage('rect', {}, element);

    return await this.onPage((page) => page.screenshot({ ...rect, scale: scaleOf(this) }));
  },
};

/** Type a text into a field, or replace its text; set the value of a field that is picked. */
export async function enter(driver, element, value, { isReplaced = false } = {}) {
  const text = textToType(value, driver.platform);
  const isTyped = await dialogs.unlessDialog(driver.askPage('fill', { text }, element));
  if (!isTyped) return;

  if (isReplaced) await driver.clear(element);
  if (driver.platform === 'iOS') await typeText(driver, text);
  else await writeText(driver, text);
}

/** Whether a URL is that of the home screen: no page of an app can have this scheme. */
const isHome = (url) => Boolean(url?.startsWith('data:'));

/** An iPhone has no Back key: XCUITest presses the back button of the navigation bar, and does nothing without one. */
async function pressBackButton(driver) {
  const point = await driver.askPage('backButton');
  if (point) await press(driver, point);
  else driver.log.warn('back does nothing: the app has no navigation bar with a button');
}

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
  if (plain === 'index' && Number(value) <= 1) return String(value === '1');

  return value;
}

function unknownAttribute(name, attributes) {
  const supported = `Only the following attributes are supported: ${attributes.join(', ')}`;

  return new errors.UnknownError(`the attribute '${name}' is unknown. ${supported}`);
}

async function described(driver, element) {
  return await driver.askPage('describe', {}, element);
}

/** Return a function that finds the elements which a locator matches, or with `many` false the first one. */
function searchFor(driver, strategy, selector, element) {
  const query = queryFor(strategy, selector, appOf(driver));

  return async (many) => {
    // Of several UiSelectors, the server looks for all elements with each, but for one element with the first.
    const part = !many && query.any ? query.any[0] : query;
    const ids = await driver.askPage('find', { query: part, many, isDeep: true }, element);

    return ids.map((id) => util.wrapElement(id));
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

/** Find elements of a web page by chromedriver. */
async function findInPage(driver, strategy, selector, element, mult) {
  const [using, value] = webLocator(strategy, selector, driver.platform);
  const path = element ? `/element/${element}/elements` : '/elements';
  const hits = await driver.toBrowser(path, 'POST', { using, value });
  if (mult) return hits;
  if (hits.length > 0) return hits[0];

  throw notFound(strategy, selector);
}

/** Return an element that was found, and remember how: only Android's server finds one again, and none of several. */
function remembered(driver, hit, search) {
  if (driver.platform !== 'Android') return hit;

  driver.foundAgain.remember(util.unwrapElement(hit), async () => {
    const [current] = await search(false);
    return current ? util.unwrapElement(current) : null;
  });

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

/** Search until an element is found or the implicit wait is over; return what is found. */
async function firstHits(driver, search) {
  const end = Date.now() + driver.implicitWaitMs;
  let hits = await search();
  while (hits.length === 0 && Date.now() < end) {
    await setTimeout(Math.min(POLL_MS, Math.max(end - Date.now(), 1)));
    hits = await search();
  }

  return hits;
}
