// Runs in the page, after page-tree.js and page-fields.js. Finds nodes of the tree, and turns the tree into XML.

const TESTS = {
  equals: (is, wanted) => is === wanted,
  differs: (is, wanted) => is !== wanted,
  contains: (is, wanted) => is.includes(wanted),
  startsWith: (is, wanted) => is.startsWith(wanted),
  endsWith: (is, wanted) => is.endsWith(wanted),
  less: (is, wanted) => Number(is) < Number(wanted),
  atMost: (is, wanted) => Number(is) <= Number(wanted),
  greater: (is, wanted) => Number(is) > Number(wanted),
  atLeast: (is, wanted) => Number(is) >= Number(wanted),
};

function matches(is, { wanted, fold, whole = true }) {
  try {
    return new RegExp(whole ? `^(?:${wanted})$` : wanted, fold ? 'isu' : 'su').test(is);
  } catch (error) {
    throw new Refusal('selector', `${JSON.stringify(wanted)} is not a regular expression: ${error.message}`);
  }
}

/** Return whether a condition holds for a node, see selectors.js. */
function holds(condition, node) {
  switch (condition.is) {
    case 'all': return condition.of.every((one) => holds(one, node));
    case 'any': return condition.of.some((one) => holds(one, node));
    case 'not': return !holds(condition.of, node);
    case 'within': return descendants(node).some((inner) => holds(condition.of, inner));
    case 'truth': return condition.wanted;
    default: return compared(condition, node.attributes[condition.attribute] ?? '');
  }
}

function compared(condition, is) {
  const { is: test, wanted, fold } = condition;
  if (test === 'matches') return matches(is, condition);
  return fold ? TESTS[test](is.toLowerCase(), wanted.toLowerCase()) : TESTS[test](is, wanted);
}

/** Return the nodes that one step of a query selects from a node. */
function stepped(step, from) {
  if (step.up) return [from.parent ?? from];
  const below = step.deep ? descendants(from) : from.children;
  const candidates = step.self ? [from, ...below] : below;
  const typed = candidates.filter((node) => step.type === '*' || node.type === step.type);
  return step.filters.reduce((left, filter) => {
    if ('position' in filter) return left.slice(...slice(filter.position));
    return left.filter((node) => holds(filter, node));
  }, typed);
}

/** A position counts from 1, or from -1 at the end. */
function slice(position) {
  if (position > 0) return [position - 1, position];
  return [position, position === -1 ? undefined : position + 1];
}

function walked(steps, root) {
  const nodes = steps.reduce((from, step) => [...new Set(from.flatMap((node) => stepped(step, node)))], [root]);
  return nodes.filter((node) => node.element);
}

function xmlOf(root) {
  const document_ = document.implementation.createDocument(null, null);
  const nodes = new Map();
  const made = (node) => {
    const element = document_.createElement(node.type);
    for (const [name, value] of Object.entries(node.attributes)) {
      element.setAttribute(name, value.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, ''));
    }
    nodes.set(element, node);
    node.xml = element;
    element.append(...node.children.map(made));
    return element;
  };
  document_.append(made(root));
  return { document: document_, nodes };
}

/** Return the nodes that an expression selects, in the whole tree or in that of a node. */
function byXPath(xpath, from) {
  const xml = xmlOf(from);
  const context = from.parent ? from.xml : xml.document;
  let hits;
  try {
    hits = xml.document.evaluate(xpath, context, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
  } catch (error) {
    throw new Refusal('selector', `${xpath} is not a valid XPath for elements: ${error.message}`);
  }
  const nodes = Array.from({ length: hits.snapshotLength }, (_, index) => xml.nodes.get(hits.snapshotItem(index)));
  return nodes.filter((node) => node?.element);
}

/** Return the elements that match a query, below an element or in the whole document. */
function found(query, target, element) {
  if (query.any) return [...new Set(query.any.flatMap((part) => found(part, target, element)))];
  const root = treeOf(target);
  const from = element ? [root, ...descendants(root)].findLast((node) => node.element === element) : root;
  if (!from) return [];
  return (query.xpath ? byXPath(query.xpath, from) : walked(query.steps, from)).map((node) => node.element);
}

function nextFrame() {
  return new Promise((done) => {
    // A hidden page draws no frames.
    const timer = setTimeout(done, 250);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      clearTimeout(timer);
      done();
    }));
  });
}

/** Return the innermost scrollable box around an element, or the first of the page. */
function scrollerOf(element) {
  for (let box = element; box && box !== document.body; box = box.parentElement) {
    if (scrolls(box, getComputedStyle(box))) return box;
  }
  const inner = element ? null : [...document.querySelectorAll('*')].find(
    (box) => box !== document.documentElement && box !== document.body && scrolls(box, getComputedStyle(box)),
  );
  const whole = document.scrollingElement ?? document.documentElement;
  return whole.scrollHeight > whole.clientHeight + 1 ? whole : inner ?? whole;
}

/** Scroll a box by fractions of its size; return whether it moved. */
function scrollBy(box, right, down) {
  const before = [box.scrollLeft, box.scrollTop];
  box.scrollBy({ left: right * box.clientWidth, top: down * box.clientHeight, behavior: 'instant' });
  return box.scrollLeft !== before[0] || box.scrollTop !== before[1];
}

/** Return whether a box can scroll further: right and down are 1, 0 or -1. */
function canScroll(box, right, down) {
  const more = (at, size, whole, way) => (way > 0 ? at + size < whole - 1 : way < 0 ? at > 0 : false);
  return more(box.scrollLeft, box.clientWidth, box.scrollWidth, right)
    || more(box.scrollTop, box.clientHeight, box.scrollHeight, down);
}

/** Scroll until a query matches: lists may render more items only when scrolled. */
async function scrolledTo(query, target, element, most) {
  const search = () => found(query, target, null).filter((one) => !element || element.contains(one))[0];
  let hit = search();
  const box = scrollerOf(element);
  if (!hit) {
    box.scrollTo({ top: 0, left: 0, behavior: 'instant' });
    await nextFrame();
    hit = search();
  }
  for (let tries = 0; !hit && tries < most && (scrollBy(box, 0, 0.8) || scrollBy(box, 0.8, 0)); tries += 1) {
    await nextFrame();
    hit = search();
  }
  if (hit && !onScreen(hit)) hit.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
  return hit ? [hit] : [];
}

const MOVES = { forward: [0, 0.8], backward: [0, -0.8], end: [0, 1e6], beginning: [0, -1e6] };

async function foundByScrolling(query, target) {
  const { scroll } = query;
  const present = scroll.to ? found(scroll.to, target, null).filter(onScreen) : [];
  if (present.length && !scroll.moves.length) return present.slice(0, 1);
  const [within] = found(scroll.container, target, null);
  if (!within) return [];
  const box = scrollerOf(within);
  for (const move of scroll.moves) {
    scrollBy(box, ...MOVES[move]);
    await nextFrame();
  }
  if (scroll.to) return scrolledTo(scroll.to, target, within, scroll.most);
  throw new Refusal('selector', 'Last method called on a UiScrollable object must return a UiObject object: '
    + 'the view was scrolled; add .scrollIntoView(…), or call `mobile: scrollGesture`');
}

/** The attributes that a look-up may have meant, and a locator for each. */
const MEANT = {
  Android: {
    'resource-id': (value) => `new UiSelector().resourceId(${JSON.stringify(value)})`,
    'content-desc': (value) => `accessibility id ${JSON.stringify(value)}`,
    text: (value) => `new UiSelector().text(${JSON.stringify(value)})`,
  },
  iOS: {
    name: (value) => `accessibility id ${JSON.stringify(value)}`,
    label: (value) => `the predicate label == ${JSON.stringify(value)}`,
    value: (value) => `the predicate value == ${JSON.stringify(value)}`,
  },
};

/** Return a locator that finds what a failed look-up probably meant, or null. */
function hintFor({ wanted, selector, isClass }, target) {
  const nodes = descendants(treeOf(target));
  if (isClass) return `the classes on the screen are ${[...new Set(nodes.map(({ type }) => type))].sort().join(', ')}`;
  for (const word of wanted) {
    for (const [attribute, locator] of Object.entries(MEANT[target.platform])) {
      const node = nodes.find(({ attributes }) => meant(attributes[attribute] ?? '', word));
      const value = node?.attributes[attribute];
      if (!node || locator(value).endsWith(selector)) continue;
      const without = attribute === 'resource-id' && !RESOURCE_ID.test(value) ? ' without a package' : '';
      return `there is a view with the ${attribute} '${value}'${without}: use ${locator(value)}`;
    }
  }
  return target.outside ? leftOrigin(target) : otherFrames();
}

function leftOrigin({ outside, application }) {
  return `the app has left its origin: ${application} shows ${outside}. Go back, open a link of the app, or activate the app`;
}

/** Return whether a value is a word, apart from case and from the package of a resource ID. */
function meant(value, word) {
  const bare = (text) => text.trim().toLowerCase().replace(/^[\w.]+:id\//, '');
  return value !== '' && word !== '' && bare(value) === bare(word);
}

function otherFrames() {
  const foreign = [...document.querySelectorAll('iframe')].find((frame) => frame.src && !frame.contentDocument);
  if (!foreign) return null;
  const { origin } = new URL(foreign.src, location.href);
  return `the page has a frame of another origin, ${origin}, whose views are not in the tree: switch to its web view`;
}
