// Translates CSS selectors into native locators, as the drivers of phones do: by the same package, so that the same parts of
// CSS are accepted. UiAutomator2 makes a UiSelector of them, XCUITest a class chain.

import { createCssTransformer } from '@appium/css-locator-to-native';
import { errors } from 'appium/driver.js';

const FULL_ID = /^[a-zA-Z_][\w.]*:id\/\S+$/;
const boolean = { type: 'boolean' };
const string = (...aliases) => ({ type: 'string', aliases });
const numeric = (...aliases) => ({ type: 'numeric', aliases });

const ANDROID = {
  schema: {
    attributes: {
      checkable: boolean, checked: boolean, clickable: boolean, enabled: boolean, focusable: boolean, focused: boolean,
      'long-clickable': boolean, scrollable: boolean, selected: boolean, index: numeric('nth-child'), instance: numeric(),
      description: string('content-description', 'content-desc', 'desc', 'accessibility-id'), 'resource-id': string('id'),
      text: string(), 'class-name': string(), 'package-name': string(),
    },
    booleanFormat: 'true-false',
  },
  emit: ({ rule }, app) => uiSelector(rule, app),
};
const IOS = {
  schema: {
    attributes: {
      visible: boolean, accessible: boolean, 'accessibility-container': boolean, enabled: boolean,
      index: numeric('nth-child'), label: string(), name: string('id'), value: string(), type: string(),
    },
    booleanFormat: 'zero-one',
  },
  emit: ({ rule }) => classChain(rule),
};
const PREDICATES = { '=': '==', '*=': 'MATCHES', '^=': 'BEGINSWITH', '$=': 'ENDSWITH', '~=': 'CONTAINS' };

const toUiSelector = translator(ANDROID);
const toClassChain = translator(IOS);

/** Return a UiSelector for a CSS selector. Throws InvalidSelector. */
export const uiSelectorFor = (css, app) => translated(toUiSelector, css, app);
/** Return a class chain for a CSS selector. Throws InvalidSelector. */
export const classChainFor = (css) => translated(toClassChain, css);

function translator({ schema, emit }) {
  return createCssTransformer({ schema, emitters: { native: { strategy: 'native', emit } }, resolveStrategy: () => 'native' });
}

function translated(translate, css, app) {
  try {
    return translate(css, app).selector;
  } catch (error) {
    if (error instanceof errors.InvalidSelectorError) throw error;
    const what = error.name === 'UnsupportedSelectorError' ? 'Unsupported' : 'Invalid';
    throw new errors.InvalidSelectorError(`${what} CSS selector '${css}': ${error.message}`, error);
  }
}

const camelCase = (name) => name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Return the UiSelector for a rule of CSS, and within it that of the rule below. */
function uiSelector(rule, app) {
  let selector = `new UiSelector()${classes(rule)}`;
  if (rule.id) selector += call('resourceId', fullId(rule.id, app));
  for (const attribute of [...rule.attributes, ...rule.pseudos]) selector += condition(attribute, app);
  if (rule.nested) selector += `.childSelector(${uiSelector(rule.nested, app)})`;

  return selector;
}

/** Return the call for a class. The tag of `android.widget.Button` is android, and its classes are widget and Button. */
function classes({ tag, classes: names }) {
  const hasTag = tag && tag !== '*';
  if (hasTag && names.length > 0) return call('className', [tag, ...names].join('.'));
  if (hasTag) return call('classNameMatches', tag);

  return names.length > 0 ? call('classNameMatches', names.join('\\.')) : '';
}

/** Return the call for an attribute or a pseudo-class. */
function condition({ name, operator = '=', value }, app) {
  const method = camelCase(name);
  const { type } = ANDROID.schema.attributes[name];
  if (type === 'boolean') return `.${method}(${value ?? 'true'})`;
  if (type === 'numeric') return `.${method}(${value})`;

  const text = name === 'resource-id' ? fullId(value, app) : value;
  if (text === '') return call(`${method}Matches`, '');

  const hasWords = ['description', 'text'].includes(name);
  switch (operator) {
    case '*=': return call(...(hasWords ? [`${method}Contains`, text] : [`${method}Matches`, escaped(text)]));
    case '^=': return call(...(hasWords ? [`${method}StartsWith`, text] : [`${method}Matches`, `^${escaped(text)}`]));
    case '$=': return call(`${method}Matches`, `${escaped(text)}$`);
    case '~=': return call(`${method}Matches`, `\\b(\\w*${escaped(text)}\\w*)\\b`);
    default: return call(method, text);
  }
}

const call = (method, text) => `.${method}("${text}")`;

function fullId(id, app) {
  return FULL_ID.test(id) ? id : `${app.package || 'android'}:id/${id}`;
}

function classChain(rule) {
  if (rule.classes.length) {
    const name = rule.classes.join('.');
    throw new errors.InvalidSelectorError(`'${name}' is not a valid class: write a type, such as XCUIElementTypeWindow`);
  }

  const all = [...rule.attributes, ...rule.pseudos];
  const conditions = all.filter(({ name }) => name !== 'index').map(predicate);
  if (rule.id) conditions.unshift(`name == "${rule.id}"`);
  const index = all.find(({ name }) => name === 'index');

  let chain = rule.combinator === 'child' ? '' : '**/';
  chain += iosType(rule.tag ?? '');
  if (conditions.length > 0) chain += `[\`${conditions.join(' AND ')}\`]`;
  if (index) chain += `[${index.value ?? ''}]`;
  if (rule.nested) chain += `/${classChain(rule.nested)}`;

  return chain;
}

function iosType(tag) {
  if (!tag || tag === '*') return '*';

  return /^xcuielementtype/i.test(tag) ? tag : `XCUIElementType${tag[0].toUpperCase()}${tag.slice(1)}`;
}

function predicate({ name, operator = '=', value }) {
  const attribute = camelCase(name);
  if (IOS.schema.attributes[name].type === 'boolean') return `${attribute} == ${value ?? '1'}`;

  return `${attribute} ${PREDICATES[operator]} "${operator === '*=' ? escaped(value) : value}"`;
}
