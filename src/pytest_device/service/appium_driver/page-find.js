// Runs in the page, after page-tree.js and page-fields.js. Finds nodes of the tree, and turns the tree into XML.

const TESTS = {
  equals: (actual, expected) => actual === expected,
  differs: (actual, expected) => actual !== expected,
  contains: (actual, expected) => actual.includes(expected),
  startsWith: (actual, expected) => actual.startsWith(expected),
  endsWith: (actual, expected) => actual.endsWith(expected),
  less: (actual, expected) => Number(actual) < Number(expected),
  atMost: (actual, expected) => Number(actual) <= Number(expected),
  greater: (actual, expected) => Number(actual) > Number(expected),
  atLeast: (actual, expected) => Number(actual) >= Number(expected),
};

/** Return whether a whole text matches the regular expression of a condition. */
function matches(actual, { expected, fold }) {
  const isPlain = fold.includes('d');
  const text = isPlain ? withoutDiacritics(actual) : actual;
  const { source, ignoresCase } = regularExpression(isPlain ? withoutDiacritics(expected) : expected);
  const flags = ignoresCase || fold.includes('c') ? 'is' : 's';
  try {
    return new RegExp(source, `${flags}u`).test(text);
  } catch {
    // Escapes of punctuation, such as \-, are errors only with the flag u, which counts characters instead of UTF-16 units.
  }

  try {
    return new RegExp(source, flags).test(text);
  } catch (error) {
    throw new Refusal('selector', `${JSON.stringify(expected)} is not a regular expression: ${error.message}`);
  }
}

/** Translate what Java (Android) and ICU (iOS) have, but not JavaScript: flags such as (?i) at the beginning, and \Q…\E. */
function regularExpression(pattern) {
  // The flags s and u are always on, d is about line ends only.
  const [, flags = '', rest] = /^(?:\(\?([isuUd]+)\))?(.*)$/s.exec(pattern);
  const unquoted = rest.replace(/\\\\|\\Q(.*?)(?:\\E|$)/gs, (part, quoted) => {
    return quoted === undefined ? part : quoted.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  });

  return { source: `^(?:${unquoted})$`, ignoresCase: flags.includes('i') };
}

/** Return whether a condition holds for a node, see selectors.js. */
function holds(condition, node) {
  switch (condition.is) {
    case 'all': return condition.of.every((inner) => holds(inner, node));
    case 'any': return condition.of.some((inner) => holds(inner, node));
    case 'not': return !holds(condition.of, node);
    case 'within': return descendants(node).some((inner) => holds(condition.of, inner));
    case 'truth': return condition.expected;
    default: return compared(condition, node.attributes[condition.attribute] ?? '');
  }
}

function compared({ is: test, expected, fold = '' }, actual) {
  if (test === 'matches') return matches(actual, { expected, fold });

  return TESTS[test](folded(actual, fold), folded(expected, fold));
}

/** Return a text without what a comparison ignores. */
function folded(text, fold) {
  const plain = fold.includes('d') ? withoutDiacritics(text) : text;

  return fold.includes('c') ? plain.toLowerCase() : plain;
}

function withoutDiacritics(text) {
  return text.normalize('NFD').replace(/\p{M}/gu, '');
}

/** Return the nodes that one step of a query selects from a node. */
function nodesOfStep(step, from) {
  if (step.up) return [from.parent ?? from];

  const below = step.deep ? descendants(from) : from.children;
  const candidates = step.self ? [from, ...below] : below;
  let nodes = candidates.filter((node) => step.type === '*' || node.type === step.type);

  // In order: a position counts the nodes that the filters before it left.
  for (const filter of step.filters) {
    if ('position' in filter) {
      nodes = nodes.slice(...slice(filter.position));
    } else {
      nodes = nodes.filter((node) => holds(filter, node));
    }
  }

  return nodes;
}

/** A position counts from 1, or from -1 at the end. */
function slice(position) {
  if (position > 0) return [position - 1, position];

  return [position, position === -1 ? undefined : position + 1];
}

/** Return the nodes with an element that the steps of a query select from a node, each once. */
function nodesOfSteps(steps, root) {
  let nodes = [root];
  for (const step of steps) {
    nodes = [...new Set(nodes.flatMap((node) => nodesOfStep(step, node)))];
  }

  return nodes.filter((node) => node.element);
}

function xmlOf(root) {
  const xml = document.implementation.createDocument(null, null);
  const nodes = new Map();

  const build = (node) => {
    const element = xml.createElement(node.type);
    for (const [name, value] of Object.entries(node.attributes)) {
      // Characters that XML cannot contain.
      element.setAttribute(name, value.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, ''));
    }
    nodes.set(element, node);
    node.xml = element;
    element.append(...node.children.map(build));

    return element;
  };
  xml.append(build(root));

  return { document: xml, nodes };
}

/** Return the nodes that an expression selects, in the whole tree or in that of a node. */
function byXPath(xpath, from) {
  // Chromium crashes while it evaluates a variable: nothing can define one.
  const variable = /\$\s*[\p{L}_][\p{L}\p{N}_.:-]*/u.exec(xpath.replace(/"[^"]*"|'[^']*'/g, ''));
  if (variable) throw new Refusal('selector', `${xpath} is not a valid XPath for elements: ${variable[0]} is not defined`);

  const xml = xmlOf(from);
  const context = from.parent ? from.xml : xml.document;
  let hits;
  try {
    hits = xml.document.evaluate(xpath, context, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
  } catch (error) {
    throw new Refusal('selector', `${xpath} is not a valid XPath for elements: ${error.message}`);
  }

  const nodes = [];
  for (let index = 0; index < hits.snapshotLength; index += 1) {
    // An attribute or a text has no node.
    const node = xml.nodes.get(hits.snapshotItem(index));
    if (node?.element) nodes.push(node);
  }

  return nodes;
}

/** Return the elements that match a query, below an element or in the whole document. */
function find(query, target, element) {
  if (query.any) return [...new Set(query.any.flatMap((part) => find(part, target, element)))];

  const root = treeOf(target);
  const from = element ? [root, ...descendants(root)].findLast((node) => node.element === element) : root;
  if (!from) return [];

  const nodes = 'xpath' in query ? byXPath(query.xpath, from) : nodesOfSteps(query.steps, from);

  return nodes.map((node) => node.element);
}

function nextFrame() {
  return new Promise((resolve) => {
    // A hidden page draws no frames.
    const timer = setTimeout(resolve, 250);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    }));
  });
}

/** Return the innermost scrollable box around an element, or the first of the page. */
function scrollerOf(element) {
  for (let box = element; box && box !== document.body; box = box.parentElement) {
    if (scrolls(box, getComputedStyle(box))) return box;
  }

  const page = document.scrollingElement ?? document.documentElement;
  if (element || page.scrollHeight > page.clientHeight + 1) return page;

  const isPage = (box) => box === document.documentElement || box === document.body;
  const inner = [...document.querySelectorAll('*')].find((box) => !isPage(box) && scrolls(box, getComputedStyle(box)));

  return inner ?? page;
}

/** Scroll a box by fractions of its size; return whether it moved. */
function scrollBy(box, right, down) {
  const { scrollLeft, scrollTop } = box;
  box.scrollBy({ left: right * box.clientWidth, top: down * box.clientHeight, behavior: 'instant' });

  return box.scrollLeft !== scrollLeft || box.scrollTop !== scrollTop;
}

/** Return whether a box can scroll further: right and down are 1, 0 or -1. */
function canScroll(box, right, down) {
  const hasMore = (position, size, length, direction) => {
    if (direction > 0) return position + size < length - 1;

    return direction < 0 && position > 0;
  };

  return hasMore(box.scrollLeft, box.clientWidth, box.scrollWidth, right)
    || hasMore(box.scrollTop, box.clientHeight, box.scrollHeight, down);
}

/** Scroll until a query matches within an element: lists may render more items only when scrolled. */
async function scrollTo(query, target, element, maxSwipes) {
  const search = () => find(query, target, null).find((hit) => !element || element.contains(hit));
  const box = scrollerOf(element);

  let hit = search();
  if (!hit) {
    box.scrollTo({ top: 0, left: 0, behavior: 'instant' });
    await nextFrame();
    hit = search();
  }

  for (let swipes = 0; !hit && swipes < maxSwipes; swipes += 1) {
    const hasMoved = scrollBy(box, 0, 0.8) || scrollBy(box, 0.8, 0);
    if (!hasMoved) break;

    await nextFrame();
    hit = search();
  }
  if (!hit) return [];

  if (!onScreen(hit)) hit.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });

  return [hit];
}

const MOVES = { forward: [0, 0.8], backward: [0, -0.8], end: [0, 1e6], beginning: [0, -1e6] };

/** Return what a UiScrollable finds; without a container in the query, it scrolls the element. */
async function findByScrolling({ scroll }, target, element) {
  // What is on the screen already needs no scrolling, unless the test asks for it.
  const visible = scroll.to ? find(scroll.to, target, null).filter(onScreen) : [];
  if (visible.length > 0 && scroll.moves.length === 0) return [visible[0]];

  const container = scroll.container ? find(scroll.container, target, null)[0] : element;
  if (!container) return [];

  const box = scrollerOf(container);
  for (const move of scroll.moves) {
    scrollBy(box, ...MOVES[move]);
    await nextFrame();
  }
  if (scroll.to) return scrollTo(scroll.to, target, container, scroll.maxSwipes);

  throw new Refusal('selector', 'Last method called on a UiScrollable object must return a UiObject object: '
    + 'the view was scrolled; add .scrollIntoView(…), or call `mobile: scrollGesture`');
}

/** The attributes that a look-up may have meant, and a locator for each. */
const MEANT = {
  Android: {
    'resource-id': (value) => `new UiSelector().resourceId(${forUiAutomator(value)})`,
    'content-desc': (value) => `accessibility id ${JSON.stringify(value)}`,
    text: (value) => `new UiSelector().text(${forUiAutomator(value)})`,
  },
  iOS: {
    name: (value) => `accessibility id ${JSON.stringify(value)}`,
    label: (value) => `the predicate label == ${JSON.stringify(value)}`,
    value: (value) => `the predicate value == ${JSON.stringify(value)}`,
  },
};

/** Return a text as a string of UiAutomator2, which unescapes quotes only: other characters stay as they are. */
function forUiAutomator(text) {
  return `"${text.replaceAll('"', '\\"')}"`;
}

/** Return a locator that finds what a failed look-up probably meant, or null. */
function hintFor({ words, selector, isClass }, target) {
  const nodes = descendants(treeOf(target));
  if (isClass) {
    const types = new Set(nodes.map(({ type }) => type));
    return `the classes on the screen are ${[...types].sort().join(', ')}`;
  }

  for (const word of words) {
    for (const [attribute, locator] of Object.entries(MEANT[target.platform])) {
      const node = nodes.find(({ attributes }) => isMeant(attributes[attribute] ?? '', word));
      if (!node) continue;

      const value = node.attributes[attribute];
      // The locator that failed is no hint.
      if (locator(value).endsWith(selector)) continue;

      const isBare = attribute === 'resource-id' && !RESOURCE_ID.test(value);
      const without = isBare ? ' without a package' : '';
      return `there is a view with the ${attribute} '${value}'${without}: use ${locator(value)}`;
    }
  }

  return target.outside ? leftOrigin(target) : otherFrames();
}

function leftOrigin({ outside, application }) {
  return `the app has left its origin: ${application} shows ${outside}. Go back, open a link of the app, or activate the app`;
}

/** Return whether a value is a word, apart from case and from the package of a resource ID. */
function isMeant(value, word) {
  const bare = (text) => text.trim().toLowerCase().replace(/^[\w.]+:id\//, '');

  return value !== '' && word !== '' && bare(value) === bare(word);
}

function otherFrames() {
  const foreign = [...document.querySelectorAll('iframe')].find((frame) => frame.src && !frame.contentDocument);
  if (!foreign) return null;

  const { origin } = new URL(foreign.src, location.href);

  return `the page has a frame of another origin, ${origin}, whose views are not in the tree: switch to its web view`;
}
