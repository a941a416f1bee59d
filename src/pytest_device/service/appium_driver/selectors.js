// Turns the locators of tests into queries for the page's scripts.
//
// A query is { xpath }, { steps }, { scroll } or { any: [queries] }. A step leads from a node to its children, or
// with `deep` to its descendants, with `self` also to itself, or with `up` to its parent: { deep, self, type, filters }. A
// filter is { position } or a condition: { is: 'all' | 'any', of: [conditions] }, { is: 'not' | 'within', of: condition },
// { is: 'truth', expected }, or a comparison { is, attribute, expected, fold } with one of the words in page-find.js;
// `fold` contains c if case is ignored, and d if diacritics are.

import { errors } from 'appium/driver.js';
import { IOS_PREFIX, IOS_TYPES } from './classes.js';
import { classChainFor, uiSelectorFor } from './css.js';
import { parseClassChain, parsePredicate } from './predicate.js';
import { MAX_SWIPES, parseUiAutomator } from './uiautomator.js';

/** The strategies of web pages and of both platforms; the native context has fewer, see NATIVE. */
export const STRATEGIES = [
  'accessibility id', 'id', 'name', 'class name', 'xpath', 'css selector', 'tag name', 'link text', 'partial link text',
  '-android uiautomator', '-ios predicate string', '-ios class chain',
];

/** The strategies of WebDriver, which both platforms have in a web context, and those of which XCUITest makes one of them. */
const WEB = ['css selector', 'xpath', 'link text', 'partial link text', 'tag name'];
const AS_CSS = {
  id: (value) => `[id=${JSON.stringify(value)}]`,
  name: (value) => `[name=${JSON.stringify(value)}]`,
  'class name': (value) => `.${value}`,
};

/** The strategies of `mobile: scroll` on Android. */
const SCROLL_STRATEGIES = ['accessibility id', 'class name', '-android uiautomator'];

const RESOURCE_ID = /^[a-zA-Z_][\w.]*:[^/]+\/\S+$/;
const FIELDS = ['TextField', 'SecureTextField', 'SearchField', 'TextView'];
const WITH_VIEW = new Set(['ScrollView', 'CollectionView', 'TextView', 'WebView']);

const anywhere = (...filters) => ({ steps: [{ deep: true, type: '*', filters }] });
const including = (...filters) => ({ steps: [{ deep: true, self: true, type: '*', filters }] });
const equals = (attribute, expected) => ({ is: 'equals', attribute, expected });
const named = (value) => including(equals('name', value));

/** The strategies of the platforms' drivers in the native context. */
const NATIVE = {
  Android: {
    'accessibility id': (value) => anywhere(equals('content-desc', value)),
    id: (value, app) => anywhere(equals('resource-id', resourceId(value, app))),
    'class name': (value) => anywhere(equals('class', value)),
    xpath: (value) => ({ xpath: value }),
    'css selector': (value, app) => parseUiAutomator(uiSelectorFor(value, app)),
    '-android uiautomator': parseUiAutomator,
  },
  iOS: {
    'accessibility id': named,
    id: named,
    name: named,
    'class name': (value) => including(...typed(value)),
    xpath: (value) => ({ xpath: iosXPath(value) }),
    'css selector': (value) => parseClassChain(classChainFor(value)),
    '-ios predicate string': (value) => including(parsePredicate(value)),
    '-ios class chain': parseClassChain,
  },
};

/**
 * Return the query for a locator of the platform, in the native context.
 *
 * @param app { platform, package, isCompleted }: the package of the session's app, and whether short IDs get it
 *
 * Throws InvalidSelector naming the invalid part.
 */
export function queryFor(strategy, selector, app) {
  try {
    return NATIVE[app.platform][strategy](selector, app);
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new errors.InvalidSelectorError(`${strategy} ${selector}: ${error.message}`);
    }
    throw error;
  }
}

/** Return the query for the element with the focus: on Android any view, on iOS one that the keyboard types into. */
export function queryForFocus(platform) {
  const focused = equals('focused', 'true');
  if (platform === 'Android') return anywhere(focused);

  return anywhere(focused, { is: 'any', of: FIELDS.map((type) => equals('type', IOS_PREFIX + type)) });
}

/**
 * Return the query that scrolls a view of Android until a locator matches in it.
 *
 * @param options isInElement: whether the view is the element of the query, else the first one that can be scrolled
 *
 * Throws InvalidArgument for a strategy that UiAutomator2 does not scroll to, InvalidSelector for an invalid selector.
 */
export function scrollQueryFor(strategy, selector, { isInElement, maxSwipes = MAX_SWIPES }) {
  if (!SCROLL_STRATEGIES.includes(strategy)) {
    const strategies = SCROLL_STRATEGIES.join(', ');
    throw new errors.InvalidArgumentError(`Unsupported strategy: '${strategy}'. The only supported strategies are: ${strategies}`);
  }

  const to = queryFor(strategy, selector, { platform: 'Android' });
  if (!to.steps) throw new errors.InvalidSelectorError(`${strategy} ${selector}: a UiSelector was expected`);

  const container = isInElement ? null : anywhere(equals('scrollable', 'true'));
  return { scroll: { container, to, maxSwipes: Number(maxSwipes), moves: [] } };
}

/** Throw InvalidSelector if the driver of a platform lacks a strategy in the native context. */
export function checkStrategy(strategy, platform) {
  const strategies = Object.keys(NATIVE[platform]);
  if (strategies.includes(strategy)) return;
  const message = `Locator Strategy '${strategy}' is not supported for this session: the driver of ${platform} has `;
  throw new errors.InvalidSelectorError(message + strategies.join(', '));
}

/** Return the words of a locator that a view may have: the whole one, or the strings in an expression. */
export function wordsOf(strategy, selector) {
  if (!/^(xpath|css selector|-.*)$/.test(strategy)) return [selector];
  return [...selector.matchAll(/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/g)].map(([, double, single]) => double ?? single);
}

/** Complete a short ID with the package of the app, as UiAutomator2 does. */
function resourceId(value, { package: name, isCompleted }) {
  if (!isCompleted || RESOURCE_ID.test(value)) return value;
  if (name) return `${name}:id/${value}`;
  throw new SyntaxError(`the package of the app is unknown: write <package>:id/${value}`);
}

/** XCUITest completes types, and accepts those of UIAutomation. */
function iosType(value) {
  const plain = value.replace(/^UIA/, '');
  if (plain.startsWith(IOS_PREFIX)) return plain;
  return IOS_PREFIX + (WITH_VIEW.has(plain) ? plain : plain.replace(/View$/, ''));
}

function iosXPath(value) {
  const completed = value.replace(/(^|\/)UIA([^[/]+)/g, (_, before, type) => before + iosType(type));
  return completed.replaceAll(`${IOS_PREFIX}Any`, '*');
}

/** WebDriverAgent takes an unknown type for Other. */
function typed(value) {
  const type = iosType(value);
  if (type === `${IOS_PREFIX}Any`) return [];
  return [equals('type', IOS_TYPES.has(type) ? type : `${IOS_PREFIX}Other`)];
}

/**
 * Return the locator of a web page for chromedriver.
 *
 * UiAutomator2 sends locators to chromedriver as they are, which refuses those of native views. XCUITest finds three by itself.
 *
 * Throws InvalidArgument for a strategy that the platform's driver does not have in a web context.
 */
export function webLocator(strategy, selector, platform) {
  if (WEB.includes(strategy)) return [strategy, selector];

  const css = AS_CSS[strategy]?.(selector);
  if (css && platform === 'iOS') return ['css selector', css];

  const instead = css ? `use the CSS selector ${css}` : `it has ${WEB.join(', ')}`;
  throw new errors.InvalidArgumentError(`invalid locator. Note: a web context of ${platform} has no '${strategy}': ${instead}`);
}
