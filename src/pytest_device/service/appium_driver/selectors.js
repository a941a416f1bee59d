// Turns the locators of tests into queries for the page's scripts.
//
// A query is { xpath }, { css }, { steps } or { scroll }. A step leads from a node to its children, or with `deep` to its
// descendants, or with `up` to its parent: { deep, type, filters }. A filter is { position } or a condition:
// { is: 'all' | 'any', of: [conditions] }, { is: 'not' | 'within', of: condition }, { is: 'truth', wanted },
// { is: 'id' | 'accessibility', wanted }, or a comparison { is, attribute, wanted, fold } with one of the words in page-find.js.

import { errors } from 'appium/driver.js';
import { parseClassChain, parsePredicate } from './predicate.js';
import { parseUiAutomator } from './uiautomator.js';

export const STRATEGIES = [
  'accessibility id', 'id', 'name', 'class name', 'xpath', 'css selector', 'tag name', 'link text', 'partial link text',
  '-android uiautomator', '-ios predicate string', '-ios class chain',
];

const anywhere = (...filters) => ({ steps: [{ deep: true, type: '*', filters }] });

const IN_APP = {
  'accessibility id': (value) => anywhere({ is: 'accessibility', wanted: value }),
  id: (value) => anywhere({ is: 'id', wanted: value }),
  name: (value) => anywhere({ is: 'accessibility', wanted: value }),
  'class name': (value) => ({ steps: [{ deep: true, type: value, filters: [] }] }),
  xpath: (value) => ({ xpath: value }),
  'css selector': (value) => ({ css: value }),
  'tag name': (value) => ({ css: value }),
  'link text': (value) => linked('equals', value),
  'partial link text': (value) => linked('contains', value),
  '-android uiautomator': parseUiAutomator,
  '-ios predicate string': (value) => anywhere(parsePredicate(value)),
  '-ios class chain': parseClassChain,
};
const OF = { '-android uiautomator': 'Android', '-ios predicate string': 'iOS', '-ios class chain': 'iOS' };

/** Return the query for a locator. Throws InvalidSelector naming the invalid part. */
export function queryFor(strategy, selector, platform) {
  if (OF[strategy] && OF[strategy] !== platform) {
    throw new errors.InvalidSelectorError(`'${strategy}' is a locator strategy of ${OF[strategy]}, this is ${platform}`);
  }
  try {
    return IN_APP[strategy](selector);
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new errors.InvalidSelectorError(`${strategy} ${selector}: ${error.message}`);
    }
    throw error;
  }
}

/** Return the locator for chromedriver, which does not know ids and names. */
export function webLocator(strategy, selector) {
  const quoted = JSON.stringify(selector);
  switch (strategy) {
    case 'id': return ['css selector', `[id=${quoted}]`];
    case 'name': return ['css selector', `[name=${quoted}]`];
    case 'class name': return ['css selector', `.${selector}`];
    case 'accessibility id': return ['css selector', `[aria-label=${quoted}], [data-testid=${quoted}]`];
    default: return [strategy, selector];
  }
}

function linked(is, wanted) {
  const said = ['text', 'content-desc', 'label'].map((attribute) => ({ is, attribute, wanted }));
  return anywhere({ is: 'any', of: said });
}
