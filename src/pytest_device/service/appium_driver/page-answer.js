// Runs in the page, after the other scripts. Answers one query of the driver.

function descriptionOf(element, target) {
  const { attributes, facts, type, rect } = drawn(element, target) ?? rendered(element, target);
  const { text, value, label } = attributes;
  const shown = target.platform === 'Android' ? text : value || label;

  return { type, attributes, rect, text: shown ?? '', facts };
}

/** Return the node of the application, the window or the keyboard, if an element stands for it. */
function drawn(element, target) {
  if (element !== document.documentElement && element !== document.head && element !== document.body) return null;

  const root = treeOf(target);
  return [root, ...root.children].findLast((node) => node.element === element);
}

function rendered(element, target) {
  const node = nodeOf(element, null, target);
  const siblings = [...(element.parentElement?.children ?? [])];
  node.attributes = { index: String(Math.max(siblings.indexOf(element), 0)), ...node.attributes };
  if (isWithinTransparent(element, target)) {
    node.facts.displayed = false;
    node.attributes.displayed = 'false';
  }

  return node;
}

function isWithinTransparent(element, target) {
  for (let outer = element; outer; outer = outer.parentElement) {
    if (isTransparent(outer, getComputedStyle(outer), target)) return true;
  }

  return false;
}

/** Scroll an element into view; return its center. */
function middleOf(element) {
  if (!onScreen(element)) element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });

  return centerOf(element);
}

function centerOf(element) {
  const box = element.getBoundingClientRect();
  return { x: Math.round(box.left + box.width / 2), y: Math.round(box.top + box.height / 2) };
}

/** Return the point of the first button of iOS's navigation bar, null without one. */
function pointOfBackButton(target) {
  const isA = (kind) => ({ type }) => type === `${IOS_PREFIX}${kind}`;
  const bar = descendants(treeOf(target)).find(isA('NavigationBar'));
  const button = bar && descendants(bar).find(isA('Button'));

  return button ? pointToPress(button.element) : null;
}

/** Describe a frame; one of another origin hides its title, and its address after it was left. */
function frameOf(frame, index) {
  const { x, y, width, height } = rectOf(frame);
  const { contentDocument: inner } = frame;

  return { number: index + 1, url: inner?.URL ?? frame.src, title: inner?.title ?? frame.title, x, y, width, height };
}

const SOURCE_ROOT = 'AppiumAUT';
const ANSWERS = {
  find: async ({ query, target, many }, element) => {
    const all = query.scroll ? await findByScrolling(query, target, element) : find(query, target, element);

    return many ? all : all.slice(0, 1);
  },
  source: ({ target, excluded = [] }) => {
    const { document: source, nodes } = xmlOf(treeOf(target));
    for (const element of nodes.keys()) {
      for (const attribute of excluded) element.removeAttribute(attribute);
    }

    const xml = new XMLSerializer().serializeToString(source);
    // XCUITest has WebDriverAgent put the tree in an element of its own, which no locator finds.
    const tree = target.platform === 'iOS' ? `<${SOURCE_ROOT}>${xml}</${SOURCE_ROOT}>` : xml;

    return `<?xml version="1.0" encoding="UTF-8"?>\n${tree}`;
  },
  describe: ({ target }, element) => descriptionOf(element, target),
  middle: (_, element) => middleOf(element),
  center: (_, element) => centerOf(element),
  title: () => document.title,
  alert: ({ target }) => {
    const alert = alertOf(target);
    return alert && { ...alert, fields: alert.fields.length, buttons: alert.buttons.map(({ id, label }) => ({ id, label })) };
  },
  alertButton: ({ target, index }) => pointToPress(alertOf(target).buttons[index].node.element),
  alertField: ({ target }) => {
    const [{ element }] = alertOf(target).fields;
    clear(element, target);
    focus(element, target);
  },
  turn: ({ order, target }, element) => turn(element, order, target),
  frames: () => [...document.querySelectorAll('iframe')].map(frameOf).filter(({ width, height }) => width > 0 && height > 0),
  empty: ({ target }, element) => clear(element, target),
  fill: ({ text, target }, element) => {
    const isTyped = fill(element, text, target.platform);
    if (isTyped) focus(element, target);

    return isTyped;
  },
  press: ({ target }, element) => ({ ...pointToPress(element), list: listOf(element, target) }),
  longPress: (point) => longPress(point),
  choose: ({ indexes }, element) => chooseAt(element, indexes),
  scroll: async ({ right, down, at }, element) => {
    const box = scrollerOf(element ?? document.elementFromPoint(at.x, at.y));
    scrollBy(box, right, down);
    await nextFrame();

    return canScroll(box, Math.sign(right), Math.sign(down));
  },
  canScroll: ({ right, down, at }, element) => {
    return canScroll(scrollerOf(element ?? document.elementFromPoint(at.x, at.y)), right, down);
  },
  rect: ({ target }, element) => drawn(element, target)?.rect ?? rectOf(element),
  hint: ({ target, ...locator }) => hintFor(locator, target),
  screen: async () => ({
    width: innerWidth, height: innerHeight,
    userAgent: navigator.userAgent, language: navigator.language,
    // The user agent no longer contains it; the client hints do, in secure contexts.
    system: (await navigator.userAgentData?.getHighEntropyValues(['platformVersion']))?.platformVersion ?? null,
  }),
  isHome: () => isHome(),
  hasModal: () => hasModal(),
  backButton: ({ target }) => pointOfBackButton(target),
  keyboard: ({ target }) => keyboardShown(target),
  returnKey,
  blur: ({ target }) => {
    const wasShown = keyboardShown(target);
    document.activeElement?.blur();

    return wasShown;
  },
  clock: () => {
    const now = new Date();
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();

    return { epoch: now.getTime(), offset: -now.getTimezoneOffset(), timeZone };
  },
};

/** Return whether the page is the home screen, which belongs to the launcher, not to an app. */
function isHome() {
  return 'home' in datasetOf();
}

/** Return the data of the root element: a document without one, such as an opened one, has none. */
function datasetOf() {
  return document.documentElement?.dataset ?? {};
}

/** Return whose page this is, if it is not the app's: the launcher's or, outside of the app's origin, the browser's. */
function ownerOf({ base, launcher, browser }) {
  if (isHome()) return { application: launcher };

  const { dialog } = datasetOf();
  if (dialog !== undefined) return dialog ? { application: dialog } : {};
  if (!base) return {};

  const { origin, pathname } = new URL(base);
  const folder = pathname.replace(/[^/]*$/, '');
  if (location.origin === origin && `${location.pathname}/`.startsWith(folder)) return {};

  return { application: browser, outside: location.origin };
}

/** The elements that the driver has a number for. */
const elements = [];
const numbers = new WeakMap();

/** Return the number of an element, by which the driver names it. */
function register(element) {
  if (!numbers.has(element)) numbers.set(element, elements.push(element) - 1);

  return numbers.get(element);
}

/** The document's scripts ask for a permission: tell the driver, which calls `permit` once that is decided. */
document.addEventListener(`${CHANNEL}-permission`, ({ detail }) => globalThis[ASK](JSON.stringify(detail)));

function permit(id) {
  document.dispatchEvent(new CustomEvent(`${CHANNEL}-permitted-${id}`));
}

/** Return { value }, { refused, message } or { isStale }; found elements are pairs of a number and the element. */
async function answer(request, number) {
  const element = number === null ? undefined : elements[number];
  if (element && !element.isConnected) return { isStale: true };

  const target = { ...request.target, ...ownerOf(request.target) };
  try {
    const value = (await ANSWERS[request.ask]({ ...request, target }, element)) ?? null;
    return { value: request.ask === 'find' ? value.map((hit) => [register(hit), hit]) : value };
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.kind, message: error.message };
    throw error;
  }
}
