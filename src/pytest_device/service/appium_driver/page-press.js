// Runs in the page, after page-find.js. Prepares elements for touches and keys.

/** Return the part of a box that is on the screen and inside of the element's containers, null if there is none. */
function visiblePart(element, box) {
  let { left, top, right, bottom } = box;
  [left, top, right, bottom] = [Math.max(left, 0), Math.max(top, 0), Math.min(right, innerWidth), Math.min(bottom, innerHeight)];
  for (let outer = element.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflow === 'visible') continue;
    const clip = outer.getBoundingClientRect();
    [left, top] = [Math.max(left, clip.left), Math.max(top, clip.top)];
    [right, bottom] = [Math.min(right, clip.right), Math.min(bottom, clip.bottom)];
  }
  return right > left && bottom > top ? { left, top, right, bottom } : null;
}

/** Return the first line of an element that has a size: the center of all lines of a link may be beside them. */
function firstBox(element) {
  return [...element.getClientRects()].find(({ width, height }) => width > 0 && height > 0) ?? null;
}

/** Scroll an element into view if its center is not; return the point to touch, in CSS pixels. */
function pressed(element) {
  refuseFile(element);
  if (!firstBox(element)) throw new Refusal('interactable', 'the element has no size, so it cannot be touched');
  const isWhole = (box, part) => part && (box.left + box.right) / 2 < part.right && (box.left + box.right) / 2 >= part.left
    && (box.top + box.bottom) / 2 < part.bottom && (box.top + box.bottom) / 2 >= part.top;
  let box = firstBox(element);
  if (!isWhole(box, visiblePart(element, box))) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    box = firstBox(element);
  }
  const { left, top, right, bottom } = visiblePart(element, box) ?? box;
  return { x: (left + right) / 2, y: (top + bottom) / 2 };
}

/** Focus a field for typing, with the caret at the end of its text. */
function focused(element) {
  const root = element.getRootNode();
  if (root.activeElement === element) return;
  element.focus();
  if (root.activeElement !== element && !element.shadowRoot?.activeElement) {
    throw new Refusal('interactable', 'the element cannot be focused, so it takes no keys');
  }
  if (element.isContentEditable) getSelection().selectAllChildren(element), getSelection().collapseToEnd();
  else if (typeof element.value === 'string' && 'setSelectionRange' in element) {
    try {
      element.setSelectionRange(element.value.length, element.value.length);
    } catch {
      // a field without a caret, such as that of a number
    }
  }
}

/** Return the options of a selection list that a press opens, null for any other element. */
function optionsOf(element) {
  if (element.localName !== 'select' || element.multiple || element.size > 1 || !enabledOf(element)) return null;
  return [...element.options].map(({ text, selected }) => ({ text, isSelected: selected }));
}

/** Choose the option of a selection list at an index, as a user does. */
function chosenAt(element, index) {
  element.focus();
  const option = element.options[index];
  if (!option || option.selected) return;
  option.selected = true;
  changed(element);
}

/** Turn a picker wheel to its next or previous option. */
function turned(element, order, target) {
  const { type } = nodeOf(element, null, target);
  if (type !== `${IOS_PREFIX}PickerWheel`) {
    throw new Refusal('argument', `The element is expected to be a valid Picker Wheel control. '${type}' was given instead`);
  }
  if (element.localName !== 'select') {
    throw new Refusal('state', 'the app draws this picker wheel itself, so only it knows its values: swipe it, or send it keys');
  }
  const index = element.selectedIndex + (order === 'next' ? 1 : -1);
  if (!element.options[index]) throw new Refusal('state', `the picker wheel has no ${order} value: it is at '${textOf(element)}'`);
  chosenAt(element, index);
}
