// Parses UiSelector and UiScrollable expressions, with the rules of the UiAutomator2 server's parser.

import { ANDROID_VIEWS } from './classes.js';
import { Tokens } from './tokens.js';

/** The methods of a UiSelector that compare a text: the comparison and the attribute. */
const TEXTS = {
  text: ['equals', 'text'], textContains: ['contains', 'text'], textStartsWith: ['startsWith', 'text'],
  textMatches: ['matches', 'text'], description: ['equals', 'content-desc'],
  descriptionContains: ['contains', 'content-desc'], descriptionStartsWith: ['startsWith', 'content-desc'],
  descriptionMatches: ['matches', 'content-desc'], className: ['equals', 'class'],
  classNameMatches: ['matches', 'class'], packageName: ['equals', 'package'], packageNameMatches: ['matches', 'package'],
  resourceId: ['equals', 'resource-id'], resourceIdMatches: ['matches', 'resource-id'],
};
/** Those that ignore case. */
const FOLDED = new Set(['textContains', 'textStartsWith', 'descriptionContains', 'descriptionStartsWith']);
/** The methods of a UiSelector for booleans, by their attributes. */
const FLAGS = {
  checkable: 'checkable', checked: 'checked', clickable: 'clickable', enabled: 'enabled', focusable: 'focusable',
  focused: 'focused', longClickable: 'long-clickable', scrollable: 'scrollable', selected: 'selected',
};
/** The methods of a UiScrollable that scroll, by where: a fling is not faster here. */
const MOVES = {
  scrollForward: 'forward', flingForward: 'forward', scrollBackward: 'backward', flingBackward: 'backward',
  scrollToEnd: 'end', flingToEnd: 'end', scrollToBeginning: 'beginning', flingToBeginning: 'beginning',
};

/** The types of the methods' arguments: for methods with several forms, several lists. */
const SELECTOR_METHODS = {
  ...Object.fromEntries(Object.keys(TEXTS).map((name) => [name, [['string']]])),
  ...Object.fromEntries(Object.keys(FLAGS).map((name) => [name, [['boolean']]])),
  className: [['string'], ['class']],
  index: [['int']], instance: [['int']], childSelector: [['UiSelector']], fromParent: [['UiSelector']],
};
const SCROLLABLE_METHODS = {
  scrollForward: [[], ['int']], scrollBackward: [[], ['int']], flingForward: [[]], flingBackward: [[]],
  scrollToEnd: [['int'], ['int', 'int']], scrollToBeginning: [['int'], ['int', 'int']],
  flingToEnd: [['int']], flingToBeginning: [['int']],
  setAsVerticalList: [[]], setAsHorizontalList: [[]], setSwipeDeadZonePercentage: [['double']], setMaxSearchSwipes: [['int']],
  scrollIntoView: [['UiSelector']], scrollTextIntoView: [['string']], scrollDescriptionIntoView: [['string']],
  getChildByText: [['UiSelector', 'string'], ['UiSelector', 'string', 'boolean']],
  getChildByDescription: [['UiSelector', 'string'], ['UiSelector', 'string', 'boolean']],
  getChildByInstance: [['UiSelector', 'int']],
};
const METHODS = { UiSelector: SELECTOR_METHODS, UiScrollable: SCROLLABLE_METHODS };
const CONSTRUCTORS = { UiSelector: [[]], UiScrollable: [['UiSelector']] };
const TYPE_NAMES = {
  int: 'an integer', double: 'a number', boolean: 'a boolean', string: 'a string in double quotes', class: 'a class',
};

/** The default of UiScrollable. */
export const MAX_SWIPES = 30;

/**
 * Parse an expression, such as `new UiSelector().text("Save").enabled(true)`, or several with `;` between them.
 *
 * Returns its query, see selectors.js; of several, { any }. Throws SyntaxError with the server's message and a hint.
 */
export function parseUiAutomator(text) {
  const tokens = new Tokens(text, unquoted);
  if (tokens.next.kind === 'end') tokens.fail('a UiSelector or a UiScrollable was expected');

  const queries = [statement(tokens)];
  while (tokens.took(';') && tokens.next.kind !== 'end') queries.push(statement(tokens));
  if (tokens.next.kind !== 'end') tokens.fail('syntax error');

  return queries.length > 1 ? { any: queries } : queries[0];
}

/** The server replaces escaped quotes only: the other backslashes, such as those of a regular expression, stay. */
function unquoted(text) {
  return text.slice(1, -1).replaceAll('\\"', '"');
}

function statement(tokens) {
  const object = construction(tokens);

  return object.name === 'UiScrollable' ? scrollQuery(object) : { steps: stepsOf(object) };
}

/**
 * `new Name(arguments).method(arguments)…`; methods alone are those of a UiSelector.
 *
 * Returns { name, args, calls }, the calls as { name, args }.
 */
function construction(tokens) {
  const isNew = tokens.took('new');
  const hasName = Object.hasOwn(CONSTRUCTORS, tokens.next.value);
  if (isNew && !hasName) tokens.fail(`${tokens.next.value} is neither UiSelector nor UiScrollable,`);

  const name = hasName ? tokens.take().value : 'UiSelector';
  const args = hasName ? fitted(`${name} has no suitable constructor`, CONSTRUCTORS[name], list(tokens)) : [];
  const calls = [];
  if (!hasName && tokens.next.value !== '.') calls.push(call(tokens, name));
  while (tokens.took('.')) calls.push(call(tokens, name));

  return { name, args, calls };
}

function call(tokens, owner) {
  const name = tokens.a('word');
  if (!Object.hasOwn(METHODS[owner], name)) throw new SyntaxError(`${owner} has no \`${name}\` method${hint(owner, name)}`);

  const problem = `\`${owner}\` doesn't have suitable method \`${name}\``;
  return { name, args: fitted(problem, METHODS[owner][name], list(tokens)) };
}

/** Return a hint at the method that was meant. */
function hint(owner, name) {
  const elsewhere = Object.keys(METHODS).find((other) => Object.hasOwn(METHODS[other], name));
  if (elsewhere) return `: it is a method of ${elsewhere}`;

  const word = name.toLowerCase();
  const near = Object.keys(METHODS[owner]).find((method) => {
    return method.toLowerCase().startsWith(word) || word.startsWith(method.toLowerCase());
  });

  return near ? `: did you mean \`${near}\`?` : `; it has ${Object.keys(METHODS[owner]).join(', ')}`;
}

function list(tokens) {
  const args = [];
  tokens.expect('(');
  while (!tokens.took(')')) {
    if (args.length > 0) tokens.expect(',');
    args.push(argument(tokens));
  }

  return args;
}

/** Return an argument: { type, value }. */
function argument(tokens) {
  const { kind, value, start } = tokens.next;
  if (kind === 'string') {
    if (tokens.text[start] === "'") throw new SyntaxError(`'${value}' is not a string: write it in double quotes`);
    return { type: 'string', value: tokens.take().value };
  }
  if (kind === 'number') {
    const number = Number(tokens.take().value);
    return { type: Number.isInteger(number) ? 'int' : 'double', value: number };
  }
  if (tokens.took('true')) return { type: 'boolean', value: true };
  if (tokens.took('false')) return { type: 'boolean', value: false };
  if (value === 'new' || value === '.' || tokens.precedes('(')) return { type: 'UiSelector', value: construction(tokens) };
  if (kind === 'word') return { type: 'class', value: qualified(tokens) };

  return tokens.fail('an argument was expected');
}

function qualified(tokens) {
  const parts = [tokens.a('word')];
  while (tokens.took('.')) parts.push(tokens.a('word'));

  return parts.join('.');
}

/** Return the values of arguments that fit one of the forms. Throws SyntaxError. */
function fitted(problem, forms, args) {
  const fits = (form) => form.length === args.length && form.every((type, index) => fit(type, args[index]));
  if (!forms.some(fits)) throw new SyntaxError(`${problem}: ${misfit(forms, args)}`);

  const missing = args.find(({ type, value }) => type === 'class' && !ANDROID_VIEWS.has(value));
  if (missing) throw new SyntaxError(`${missing.value} class could not be found${quotesHint(missing.value)}`);

  return args.map(({ value }) => value);
}

/** Return whether an argument has a type. Constructions all have the type UiSelector, also those of a UiScrollable. */
function fit(type, argument) {
  if (type === 'UiSelector') return argument.value?.name === 'UiSelector';
  if (type === 'double') return argument.type === 'double' || argument.type === 'int';

  return argument.type === type;
}

/** Return what is wrong with arguments that fit none of the forms. */
function misfit(forms, args) {
  const counts = forms.map((form) => form.length);
  if (!counts.includes(args.length)) return `Invalid arguments count. Actual:${args.length}. Expected:${counts.join(' or ')}.`;

  const form = forms.find(({ length }) => length === args.length);
  const index = form.findIndex((type, position) => !fit(type, args[position]));
  const { value } = args[index];

  return `${value?.name ?? value} is not ${TYPE_NAMES[form[index]] ?? `a ${form[index]}`}`;
}

function quotesHint(name) {
  return `: write the name in quotes, "${name.replace(/\.class$/, '')}"`;
}

/** Return the steps of a selector, and those of its nested selectors. */
function stepsOf(selector) {
  const step = { deep: true, type: '*', filters: [] };
  const nested = [];
  let instance = null;
  for (const { name, args: [argument] } of selector.calls) {
    if (name === 'childSelector') nested.push(...stepsOf(argument));
    else if (name === 'fromParent') nested.push({ up: true }, ...stepsOf(argument));
    else if (name === 'instance') instance = { position: argument + 1 };
    else step.filters.push(condition(name, argument));
  }
  // The last filter, wherever it was written: it counts what matches all others.
  if (instance) step.filters.push(instance);

  return [step, ...nested];
}

function condition(name, argument) {
  const expected = String(argument);
  if (name === 'index') return { is: 'equals', attribute: 'index', expected };
  if (name in FLAGS) return { is: 'equals', attribute: FLAGS[name], expected };

  const [is, attribute] = TEXTS[name];

  return { is, attribute, expected, fold: FOLDED.has(name) ? 'c' : '' };
}

/** The server moves first; then it needs an element to look for. */
function scrollQuery({ args, calls }) {
  const scroll = { container: { steps: stepsOf(args[0]) }, maxSwipes: MAX_SWIPES, moves: [] };
  for (const call of calls) {
    if (call.name === 'setMaxSearchSwipes') {
      [scroll.maxSwipes] = call.args;
    } else if (call.name in MOVES) {
      scroll.moves.push(MOVES[call.name]);
    } else if (!call.name.startsWith('setAs') && call.name !== 'setSwipeDeadZonePercentage') {
      scroll.to = targetOf(call.name, call.args);
    }
  }

  return { scroll };
}

/** Return the query for what a UiScrollable scrolls to. */
function targetOf(name, args) {
  const text = (is) => ({ steps: [{ deep: true, type: '*', filters: [condition(is, args[0])] }] });
  switch (name) {
    case 'scrollIntoView': return { steps: stepsOf(args[0]) };
    case 'scrollTextIntoView': return text('text');
    case 'scrollDescriptionIntoView': return text('description');
    case 'getChildByText': return child(args[0], condition('text', args[1]));
    case 'getChildByDescription': return child(args[0], condition('description', args[1]));
    default: return child(args[0], { position: args[1] + 1 });
  }
}

/** Return the steps for a selector's matches that have a property, or contain an element that has it. */
function child(selector, filter) {
  const steps = stepsOf(selector);
  const last = steps.at(-1);
  last.filters.push('position' in filter ? filter : { is: 'any', of: [filter, { is: 'within', of: filter }] });

  return { steps };
}
