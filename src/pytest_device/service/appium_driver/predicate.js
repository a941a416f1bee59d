// Parses predicate strings and class chains.

import { Tokens } from './tokens.js';

const SIGNS = {
  '==': 'equals', '=': 'equals', '!=': 'differs', '<>': 'differs', '<': 'less', '<=': 'atMost', '=<': 'atMost',
  '>': 'greater', '>=': 'atLeast', '=>': 'atLeast',
};
const WORDS = {
  contains: 'contains', beginswith: 'startsWith', endswith: 'endsWith', matches: 'matches', like: 'like',
};
const ATTRIBUTES = new Set([
  'name', 'label', 'value', 'type', 'enabled', 'visible', 'accessible', 'selected', 'focused', 'index',
  'placeholderValue', 'x', 'y', 'width', 'height',
]);
const FLAGS = new Set(['enabled', 'visible', 'accessible', 'selected', 'focused']);
const OTHER_NAMES = {
  identifier: 'name', elementType: 'type', isEnabled: 'enabled', isVisible: 'visible', isAccessible: 'accessible',
  isSelected: 'selected', isFocused: 'focused', hasFocus: 'focused', wdName: 'name', wdLabel: 'label', wdValue: 'value',
  wdType: 'type',
};
const RECT = { x: 'x', y: 'y', width: 'width', height: 'height' };

/** Parse a predicate string; return its condition. Throws SyntaxError. */
export function parsePredicate(text) {
  const tokens = new Tokens(text);
  const condition = either(tokens);
  if (tokens.next.kind !== 'end') tokens.fail('syntax error');
  return condition;
}

/** Return the query for a class chain. Throws SyntaxError. */
export function parseClassChain(text) {
  const tokens = new Tokens(text);
  const steps = [];
  let deep = tokens.took('**') && (tokens.expect('/'), true);
  do {
    steps.push(link(tokens, deep));
    deep = false;
    if (tokens.next.kind === 'end') return { steps };
    tokens.expect('/');
    if (tokens.took('**')) {
      tokens.expect('/');
      deep = true;
    }
  } while (tokens.next.kind !== 'end');
  return tokens.fail('an element type was expected');
}

function link(tokens, deep) {
  const type = tokens.took('*') ? '*' : tokens.a('word');
  const step = { deep, type: type === 'XCUIElementTypeAny' ? '*' : type, filters: [] };
  while (tokens.took('[')) {
    step.filters.push(filter(tokens));
    tokens.expect(']');
  }
  return step;
}

function filter(tokens) {
  if (tokens.next.kind === 'number') {
    const position = Number(tokens.take().value);
    return position === 0 ? tokens.fail('positions start at 1;') : { position };
  }
  if (tokens.took('`')) {
    const condition = either(tokens);
    tokens.expect('`');
    return condition;
  }
  tokens.expect('$');
  const condition = { is: 'within', of: either(tokens) };
  tokens.expect('$');
  return condition;
}

function either(tokens) {
  const of = [both(tokens)];
  while (tokens.took('or') || tokens.took('||')) of.push(both(tokens));
  return of.length > 1 ? { is: 'any', of } : of[0];
}

function both(tokens) {
  const of = [single(tokens)];
  while (tokens.took('and') || tokens.took('&&')) of.push(single(tokens));
  return of.length > 1 ? { is: 'all', of } : of[0];
}

function single(tokens) {
  if (tokens.took('not') || tokens.took('!')) return { is: 'not', of: single(tokens) };
  if (tokens.took('truepredicate')) return { is: 'truth', expected: true };
  if (tokens.took('falsepredicate')) return { is: 'truth', expected: false };
  if (tokens.took('(')) {
    const condition = either(tokens);
    tokens.expect(')');
    return condition;
  }
  return comparison(tokens);
}

function comparison(tokens) {
  const attribute = attributeOf(tokens);
  const { kind, value } = tokens.take();
  if (kind === 'sign' && value in SIGNS) return compared(SIGNS[value], attribute, folding(tokens), literal(tokens));
  const word = value.toLowerCase();
  if (word === 'in') return { is: 'any', of: several(tokens).map((one) => compared('equals', attribute, false, one)) };
  if (word === 'between') {
    const [low, high] = several(tokens);
    return { is: 'all', of: [compared('atLeast', attribute, false, low), compared('atMost', attribute, false, high)] };
  }
  if (word in WORDS) return compared(WORDS[word], attribute, folding(tokens), literal(tokens));
  tokens.at -= 1;
  return tokens.fail('a comparison was expected');
}

function attributeOf(tokens) {
  const word = tokens.a('word');
  if (word === 'rect') {
    tokens.expect('.');
    return RECT[tokens.a('word')] ?? tokens.fail('rect has x, y, width and height, ');
  }
  const name = OTHER_NAMES[word] ?? word;
  if (!ATTRIBUTES.has(name)) throw new SyntaxError(`unknown attribute ${word}: the attributes are ${[...ATTRIBUTES].join(', ')}`);
  return name;
}

/** Return whether `[c]`, `[cd]` or a similar modifier follows. */
function folding(tokens) {
  if (!tokens.took('[')) return false;
  const modifiers = tokens.a('word').toLowerCase();
  if (!/^[cdnl]+$/.test(modifiers)) throw new SyntaxError(`[${modifiers}] is not a modifier`);
  tokens.expect(']');
  return modifiers.includes('c');
}

function literal(tokens) {
  const { kind, value } = tokens.take();
  if (kind === 'string' || kind === 'number') return value;
  const word = value.toLowerCase();
  if (kind === 'word' && ['true', 'yes'].includes(word)) return 'true';
  if (kind === 'word' && ['false', 'no'].includes(word)) return 'false';
  if (kind === 'word' && ['nil', 'null', 'none'].includes(word)) return '';
  tokens.at -= 1;
  return tokens.fail('a value was expected');
}

function several(tokens) {
  const values = [];
  tokens.expect('{');
  while (!tokens.took('}')) {
    if (values.length) tokens.expect(',');
    values.push(literal(tokens));
  }
  return values;
}

function compared(is, attribute, fold, value) {
  if (is === 'like') return { is: 'matches', attribute, fold, expected: likeness(value) };
  const expected = FLAGS.has(attribute) ? { 1: 'true', 0: 'false' }[value] ?? value : value;
  return { is, attribute, fold, expected };
}

function likeness(pattern) {
  return pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*').replace(/\?/g, '.');
}
