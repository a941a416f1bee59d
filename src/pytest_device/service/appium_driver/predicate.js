// Parses predicate strings and class chains into conditions and queries, whose form selectors.js describes.

import { Tokens } from './tokens.js';

/** The comparisons of NSPredicate that are signs, by all of their spellings. */
const SIGNS = {
  '==': 'equals', '=': 'equals', '!=': 'differs', '<>': 'differs', '<': 'less', '<=': 'atMost', '=<': 'atMost',
  '>': 'greater', '>=': 'atLeast', '=>': 'atLeast',
};
/** Those that are words, and compare with one value. */
const WORDS = new Map([
  ['contains', 'contains'], ['beginswith', 'startsWith'], ['endswith', 'endsWith'], ['matches', 'matches'], ['like', 'like'],
]);
const CONSTANTS = new Map([
  ['true', 'true'], ['yes', 'true'], ['false', 'false'], ['no', 'false'],
  // A missing attribute is compared as an empty one.
  ['nil', ''], ['null', ''], ['none', ''],
]);
/** The attributes of WebDriverAgent that the local device has, also with the prefix wd. It knows no others, such as x. */
const ATTRIBUTES = new Set([
  'name', 'label', 'value', 'type', 'enabled', 'visible', 'hittable', 'accessible', 'selected', 'focused', 'index',
  'placeholderValue',
]);
const BOOLEAN_ATTRIBUTES = new Set(['enabled', 'visible', 'accessible', 'selected', 'focused']);
const RECT_MEMBERS = new Set(['x', 'y', 'width', 'height']);

/**
 * Parse a predicate string, such as `type == 'XCUIElementTypeButton' AND label CONTAINS[c] 'save'`.
 *
 * Returns its condition. Throws SyntaxError naming the part that is not supported.
 */
export function parsePredicate(text) {
  const tokens = new Tokens(text);
  const condition = disjunction(tokens);
  if (tokens.next.kind !== 'end') tokens.fail('syntax error');

  return condition;
}

/**
 * Parse a class chain, such as XCUIElementTypeTable/XCUIElementTypeCell[-1]/XCUIElementTypeButton[`label == 'Save'`].
 *
 * Returns its query: a step for each type, with its filters in their order. Throws SyntaxError.
 */
export function parseClassChain(text) {
  const tokens = new Tokens(text);
  const steps = [chainStep(tokens)];
  while (tokens.next.kind !== 'end') {
    tokens.expect('/');
    steps.push(chainStep(tokens));
  }

  return { steps };
}

/** One type of a class chain; with `**` before it, at any depth. */
function chainStep(tokens) {
  const deep = tokens.took('**');
  if (deep) tokens.expect('/');
  if (tokens.next.kind === 'end') tokens.fail('an element type was expected');

  const type = tokens.took('*') ? '*' : tokens.a('word');
  const filters = [];
  while (tokens.took('[')) {
    filters.push(chainFilter(tokens));
    tokens.expect(']');
  }

  return { deep, type: type === 'XCUIElementTypeAny' ? '*' : type, filters };
}

/** A filter of a class chain: a position, a `predicate` of the element, or a $predicate$ of its descendants. */
function chainFilter(tokens) {
  if (tokens.next.kind === 'number') {
    const position = Number(tokens.take().value);
    return position === 0 ? tokens.fail('positions start at 1;') : { position };
  }

  if (tokens.took('`')) {
    const condition = disjunction(tokens);
    tokens.expect('`');
    return condition;
  }

  tokens.expect('$');
  const condition = { is: 'within', of: disjunction(tokens) };
  tokens.expect('$');

  return condition;
}

/** Conditions with OR between them, which binds less than AND. */
function disjunction(tokens) {
  const conditions = [conjunction(tokens)];
  while (tokens.took('or') || tokens.took('||')) conditions.push(conjunction(tokens));

  return conditions.length > 1 ? { is: 'any', of: conditions } : conditions[0];
}

function conjunction(tokens) {
  const conditions = [simple(tokens)];
  while (tokens.took('and') || tokens.took('&&')) conditions.push(simple(tokens));

  return conditions.length > 1 ? { is: 'all', of: conditions } : conditions[0];
}

/** A comparison, a constant, or anything in parentheses or after NOT. */
function simple(tokens) {
  if (tokens.took('not') || tokens.took('!')) return { is: 'not', of: simple(tokens) };
  if (tokens.took('truepredicate')) return { is: 'truth', expected: true };
  if (tokens.took('falsepredicate')) return { is: 'truth', expected: false };

  if (tokens.took('(')) {
    const condition = disjunction(tokens);
    tokens.expect(')');
    return condition;
  }

  return comparison(tokens);
}

function comparison(tokens) {
  const attribute = attributeOf(tokens);
  const { kind, value } = tokens.take();
  const word = value.toLowerCase();

  if (kind === 'sign' && Object.hasOwn(SIGNS, value)) {
    return compared(SIGNS[value], attribute, folding(tokens), literal(tokens));
  }
  if (WORDS.has(word)) return compared(WORDS.get(word), attribute, folding(tokens), literal(tokens));
  if (word === 'in') {
    return { is: 'any', of: literals(tokens).map((choice) => compared('equals', attribute, '', choice)) };
  }
  if (word === 'between') {
    const bounds = literals(tokens);
    if (bounds.length !== 2) throw new SyntaxError('BETWEEN takes two values, such as {1, 5}');

    const [low, high] = bounds;
    return { is: 'all', of: [compared('atLeast', attribute, '', low), compared('atMost', attribute, '', high)] };
  }

  tokens.at -= 1;
  return tokens.fail('a comparison was expected');
}

/** Take the name of an attribute; return the one of the page source. */
function attributeOf(tokens) {
  const word = tokens.a('word');
  const name = word.replace(/^wd([A-Z])/, (_, letter) => letter.toLowerCase());
  if (name === 'rect') {
    tokens.expect('.');
    const member = tokens.a('word');
    return RECT_MEMBERS.has(member) ? member : tokens.fail('rect has x, y, width and height, ');
  }
  if (!ATTRIBUTES.has(name)) {
    throw new SyntaxError(`unknown attribute ${word}: the attributes are ${[...ATTRIBUTES].join(', ')}, rect.x`);
  }

  // As in elements.js: what is displayed can be hit.
  return name === 'hittable' ? 'visible' : name;
}

/** Take the modifiers of a comparison if there are any: `[c]` ignores case, `[d]` diacritics, `[cd]` both. */
function folding(tokens) {
  if (!tokens.took('[')) return '';

  const modifiers = tokens.a('word').toLowerCase();
  if (!/^[cdnl]+$/.test(modifiers)) throw new SyntaxError(`[${modifiers}] is not a modifier`);
  tokens.expect(']');

  return modifiers;
}

/** Take a value; return it as the text that an attribute has. */
function literal(tokens) {
  const { kind, value } = tokens.take();
  if (kind === 'string' || kind === 'number') return value;

  const word = value.toLowerCase();
  if (kind === 'word' && CONSTANTS.has(word)) return CONSTANTS.get(word);

  tokens.at -= 1;
  return tokens.fail('a value was expected');
}

/** Take a list such as `{1, 2}`. */
function literals(tokens) {
  const values = [];
  tokens.expect('{');
  while (!tokens.took('}')) {
    if (values.length > 0) tokens.expect(',');
    values.push(literal(tokens));
  }

  return values;
}

/** Return the condition that compares an attribute with a value. */
function compared(is, attribute, fold, value) {
  if (is === 'like') return { is: 'matches', attribute, fold, expected: regularExpressionOf(value) };

  return { is, attribute, fold, expected: BOOLEAN_ATTRIBUTES.has(attribute) ? booleanOf(value) : value };
}

/** A boolean may be written as a number. */
function booleanOf(value) {
  if (value === '1') return 'true';

  return value === '0' ? 'false' : value;
}

/** Translate a pattern of LIKE: `*` is any text, `?` one character. */
function regularExpressionOf(pattern) {
  const literalPattern = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&');

  return literalPattern.replace(/\*/g, '.*').replace(/\?/g, '.');
}
