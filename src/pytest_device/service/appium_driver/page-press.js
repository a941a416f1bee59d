// Runs in the page, after page-find.js. Prepares elements for touches and keys.

/** Return the first line of an element that has a size: the center of all lines of a link may be beside them. */
function firstBox(element) {
  return [...element.getClientRects()].find(({ width, height }) => width > 0 && height > 0) ?? null;
}

function centerOfBox({ left, top, right, bottom }) {
  return { x: (left + right) / 2, y: (top + bottom) / 2 };
}

function contains(part, { x, y }) {
  return x >= part.left && x < part.right && y >= part.top && y < part.bottom;
}

/** Scroll an element into view if its center is not; return the point to touch, in CSS pixels. */
function pointToPress(element) {
  refuseFile(element);
  let box = firstBox(element);
  if (!box) throw new Refusal('interactable', 'the element has no size, so it cannot be touched');

  const visible = visiblePart(element, box);
  if (!visible || !contains(visible, centerOfBox(box))) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    box = firstBox(element);
  }

  // Of an element that is larger than the screen, the center of what can be seen.
  return centerOfBox(visiblePart(element, box) ?? box);
}

/** How long after a touch its click comes at the latest, in milliseconds. */
const CLICK_MS = 100;
/** The events that a touch ends with. */
const OF_CLICK = ['mousedown', 'mouseup', 'click'];

/** Do what a browser does for a finger that rests: ask for a menu; the end of the touch is no click then. */
function longPress({ x, y }) {
  swallowClick(x, y);

  const event = { bubbles: true, cancelable: true, composed: true, view: window, clientX: x, clientY: y };
  innermostAt(document, x, y)?.dispatchEvent(new PointerEvent('contextmenu', { ...event, pointerType: 'touch' }));
}

/** Return the element at a point, also one within a custom element. */
function innermostAt(root, x, y) {
  const element = root.elementFromPoint(x, y);
  const isInner = element?.shadowRoot && element.shadowRoot !== root;

  return (isInner && innermostAt(element.shadowRoot, x, y)) || element;
}

/** Keep the click of the touch at a point from the page. A field is focused all the same. */
function swallowClick(x, y) {
  const swallow = (event) => {
    if (Math.abs(event.clientX - x) > 1 || Math.abs(event.clientY - y) > 1) return;

    event.stopImmediatePropagation();
    if (event.type !== 'click') return;
    event.preventDefault();
    end();
  };
  const end = () => {
    for (const type of OF_CLICK) removeEventListener(type, swallow, true);
  };

  for (const type of OF_CLICK) addEventListener(type, swallow, true);
  // The page may have prevented the click itself.
  const options = { capture: true, once: true };
  for (const type of ['touchend', 'touchcancel']) addEventListener(type, () => setTimeout(end, CLICK_MS), options);
}

/** Focus a field for typing, with the caret at the end of its text. */
function focus(element, { platform }) {
  const root = element.getRootNode();
  // XCUITest types where the caret is; UiAutomator2 sets the field to its text and the keys after it.
  if (root.activeElement === element && platform === 'iOS') return;

  element.focus();
  if (root.activeElement !== element && !element.shadowRoot?.activeElement) {
    throw new Refusal('interactable', 'the element cannot be focused, so it takes no keys');
  }

  if (element.isContentEditable) {
    getSelection().selectAllChildren(element);
    getSelection().collapseToEnd();
  } else if (typeof element.value === 'string' && 'setSelectionRange' in element) {
    try {
      element.setSelectionRange(element.value.length, element.value.length);
    } catch {
      // A field without a caret, such as that of a number.
    }
  }
}

/**
 * Return the selection list that a press opens, without hidden options; null for any other element.
 *
 * Phones open one whatever the size of the element.
 */
function listOf(element, { platform }) {
  if (element.localName !== 'select' || !enabledOf(element)) return null;
  if (element.multiple && platform === 'iOS') return null; // a wheel has one value

  const shown = [...element.options].filter((option) => getComputedStyle(option).display !== 'none');
  const options = shown.map((option) => ({
    index: option.index, text: option.text, isSelected: option.selected, isEnabled: enabledOf(option),
  }));

  return { options, isMultiple: element.multiple };
}

/** Choose the options of a selection list at some indexes, as a user does; others keep their state if they cannot be chosen. */
function chooseAt(element, indexes) {
  element.focus();
  const selected = ({ index }) => indexes.includes(index);
  const changed = [...element.options].filter((option) => enabledOf(option) && option.selected !== selected(option));
  // A browser dispatches no events for options that are chosen already. Of a list for one choice, only a new one is a change.
  if (!changed.some((option) => element.multiple || selected(option))) return;

  for (const option of changed) option.selected = selected(option);
  notify(element);
}

/** Turn a picker wheel to its next or previous option. */
function turn(element, order, target) {
  const { type } = nodeOf(element, null, target);
  if (type !== `${IOS_PREFIX}PickerWheel`) {
    throw new Refusal('argument', `The element is expected to be a valid Picker Wheel control. '${type}' was given instead`);
  }
  if (element.localName !== 'select') {
    throw new Refusal('state', 'the app draws this picker wheel itself, so only it knows its values: swipe it, or send it keys');
  }

  const { selectedIndex } = element;
  const enabled = [...element.options].filter(enabledOf).map((option) => option.index);
  const index = order === 'next'
    ? enabled.find((other) => other > selectedIndex)
    : enabled.findLast((other) => other < selectedIndex);
  if (index === undefined) throw new Refusal('state', `the picker wheel has no ${order} value: it is at '${textOf(element)}'`);

  chooseAt(element, [index]);
}
