// Runs in the page, after the other scripts. Answers one query of the driver.

function descriptionOf(element, target) {
  const node = nodeOf(element, null, target);
  const { facts } = node;
  const { text, value, label } = node.attributes;
  const said = (target.platform === 'Android' ? text : value || label) ?? '';
  const parent = element.parentElement;
  const index = String(parent ? [...parent.children].indexOf(element) : 0);
  return { type: node.type, attributes: { index, ...node.attributes }, rect: facts.rect, text: said, facts };
}

/** Scroll an element into view; return its center. */
function middleOf(element) {
  if (!onScreen(element)) element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  const box = element.getBoundingClientRect();
  return { x: Math.round(box.left + box.width / 2), y: Math.round(box.top + box.height / 2) };
}

function keyboardShown() {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return Boolean(active) && KINDS[roleOf(active)] === 'edit' && !active.readOnly;
}

const ANSWERS = {
  find: async ({ query, target, many }, element) => {
    const all = query.scroll ? await foundByScrolling(query, target) : found(query, target, element);
    return many ? all : all.slice(0, 1);
  },
  source: ({ target }) => {
    const xml = new XMLSerializer().serializeToString(xmlOf(treeOf(target)).document);
    return `<?xml version="1.0" encoding="UTF-8"?>\n${xml}`;
  },
  describe: ({ target }, element) => descriptionOf(element, target),
  middle: (_, element) => middleOf(element),
  empty: (_, element) => emptied(element),
  fill: ({ text, target }, element) => filled(element, text, target.platform),
  press: (_, element) => refuseFile(element),
  scroll: async ({ right, down, at }, element) => {
    const box = scrollerOf(element ?? document.elementFromPoint(at.x, at.y));
    scrollBy(box, right, down);
    await nextFrame();
    return canScroll(box, Math.sign(right), Math.sign(down));
  },
  canScroll: ({ right, down, at }, element) => {
    return canScroll(scrollerOf(element ?? document.elementFromPoint(at.x, at.y)), right, down);
  },
  rect: (_, element) => rectOf(element),
  screen: async () => ({
    width: innerWidth, height: innerHeight,
    userAgent: navigator.userAgent, language: navigator.language,
    // The user agent no longer contains it; the client hints do, in secure contexts.
    system: (await navigator.userAgentData?.getHighEntropyValues(['platformVersion']))?.platformVersion ?? null,
  }),
  isHome: () => isHome(),
  keyboard: keyboardShown,
  blur: () => {
    const shown = keyboardShown();
    document.activeElement?.blur();
    return shown;
  },
  clock: () => {
    const now = new Date();
    return { epoch: now.getTime(), offset: -now.getTimezoneOffset() };
  },
};

/** Return whether the page is the home screen, which belongs to the launcher, not to an app. */
function isHome() {
  return 'home' in document.documentElement.dataset;
}

async function answer(request, element) {
  const target = { ...request.target, ...(isHome() ? { application: request.target.launcher } : {}) };
  try {
    return { value: (await ANSWERS[request.ask]({ ...request, target }, element)) ?? null };
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.kind, message: error.message };
    throw error;
  }
}
