// Parses UiSelector and UiScrollable expressions.

import { Tokens } from './tokens.js';

const TEXTS = {
  text: ['equals', 'text'], textContains: ['contains', 'text'], textStartsWith: ['startsWith', 'text'],
  textMatches: ['matches', 'text'], description: ['equals', 'content-desc'],
  descriptionContains: ['contains', 'content-desc'], descriptionStartsWith: ['startsWith', 'content-desc'],
  descriptionMatches: ['matches', 'content-desc'], className: ['equals', 'class'],
  classNameMatches: ['matches', 'class'], packageName: ['equals', 'package'], packageNameMatches: ['matches', 'package'],
  resourceIdMatches: ['matches', 'resource-id'],
};
const FOLDED = new Set(['textContains', 'textStartsWith', 'descriptionContains', 'descriptionStartsWith']);
const FLAGS = {
  checkable: 'checkable', checked: 'checked', clickable: 'clickable', enabled: 'enabled', focusable: 'focusable',
  focused: 'focused', longClickable: 'long-clickable', scrollable: 'scrollable', selected: 'selected',
};
const MOVES = {
  scrollForward: 'forward', flingForward: 'forward', scrollBackward: 'backward', flingBackward: 'backward',
  scrollToEnd: 'end', flingToEnd: 'end', scrollToBeginning: 'beginning', flingToBeginning: 'beginning',
};
const NO_MATTER = new Set(['setAsVerticalList', 'setAsHorizontalList', 'setSwipeDeadZonePercentage']);
const MOST_SWIPES = 30;

/** Return the query for an expression; of several with `;` between them the first. Throws SyntaxError. */
export function parseUiAutomator(text) {
  const tokens = new Tokens(text);
  const made = construction(tokens);
  tokens.took(';');
  if (tokens.next.kind !== 'end') tokens.fail('syntax error');
  return made.name === 'UiScrollable' ? scrollQuery(made) : { steps: stepsOf(made) };
}

/** `new Name(arguments).method(arguments)…` */
function construction(tokens) {
  tokens.took('new');
  const name = tokens.a('word');
  if (name !== 'UiSelector' && name !== 'UiScrollable') tokens.fail(`${name} is neither UiSelector nor UiScrollable, `);
  const made = { name, args: list(tokens), calls: [] };
  while (tokens.took('.')) made.calls.push({ name: tokens.a('word'), args: list(tokens) });
  return made;
}

function list(tokens) {
  const args = [];
  tokens.expect('(');
  while (!tokens.took(')')) {
    if (args.length) tokens.expect(',');
    args.push(argument(tokens));
  }
  return args;
}

function argument(tokens) {
  const { kind, value } = tokens.next;
  if (kind === 'string') return tokens.take().value;
  if (kind === 'number') return Number(tokens.take().value);
  if (tokens.took('true')) return true;
  if (tokens.took('false')) return false;
  if (value === 'new' || value === 'UiSelector') return construction(tokens);
  if (kind === 'word') return qualified(tokens);
  return tokens.fail('an argument was expected');
}

/** Return the name of a class such as android.widget.Button.class */
function qualified(tokens) {
  const parts = [tokens.a('word')];
  while (tokens.took('.')) parts.push(tokens.a('word'));
  return parts.at(-1) === 'class' ? parts.slice(0, -1).join('.') : parts.join('.');
}

/** Return the steps of a selector, and those of its nested selectors. */
function stepsOf(selector) {
  if (selector?.name !== 'UiSelector') throw new SyntaxError('a UiSelector was expected as an argument');
  const step = { deep: true, type: '*', filters: [] };
  const more = [];
  let instance = null;
  for (const { name, args } of selector.calls) {
    if (name === 'childSelector') more.push(...stepsOf(args[0]));
    else if (name === 'fromParent') more.push({ up: true }, ...stepsOf(args[0]));
    else if (name === 'instance') instance = { position: args[0] + 1 };
    else step.filters.push(condition(name, args[0]));
  }
  if (instance) step.filters.push(instance);
  return [step, ...more];
}

function condition(name, wanted) {
  if (name in TEXTS) {
    const [is, attribute] = TEXTS[name];
    return { is, attribute, wanted: String(wanted), fold: FOLDED.has(name) };
  }
  if (name === 'resourceId') return { is: 'id', wanted: String(wanted) };
  if (name === 'index') return { is: 'equals', attribute: 'index', wanted: String(wanted) };
  if (name in FLAGS) return { is: 'equals', attribute: FLAGS[name], wanted: String(wanted ?? true) };
  throw new SyntaxError(`UiSelector.${name} is not supported`);
}

function scrollQuery({ args, calls }) {
  const scroll = { container: args.length ? { steps: stepsOf(args[0]) } : null, most: MOST_SWIPES };
  for (const { name, args: given } of calls) {
    if (name === 'setMaxSearchSwipes') scroll.most = given[0];
    else if (name in MOVES) scroll.move = MOVES[name];
    else if (!NO_MATTER.has(name)) scroll.to = aim(name, given);
  }
  if (!scroll.to && !scroll.move) throw new SyntaxError('UiScrollable has no scroll command');
  return { scroll };
}

function aim(name, args) {
  const text = (is) => ({ steps: [{ deep: true, type: '*', filters: [condition(is, args.at(-1))] }] });
  switch (name) {
    case 'scrollIntoView': return { steps: stepsOf(args[0]) };
    case 'scrollTextIntoView': return text('text');
    case 'scrollDescriptionIntoView': return text('description');
    case 'getChildByText': return child(args[0], condition('text', args[1]));
    case 'getChildByDescription': return child(args[0], condition('description', args[1]));
    case 'getChildByInstance': return child(args[0], { position: args[1] + 1 });
    default: throw new SyntaxError(`UiScrollable.${name} is not supported`);
  }
}

/** Return the steps for a selector's matches that have a property, or contain an element that has it. */
function child(selector, filter) {
  const steps = stepsOf(selector);
  const last = steps.at(-1);
  last.filters.push('position' in filter ? filter : { is: 'any', of: [filter, { is: 'within', of: filter }] });
  return { steps };
}
