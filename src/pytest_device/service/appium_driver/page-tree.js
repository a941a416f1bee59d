// Runs in the page. Builds the element tree of a native driver from the app's document.
// A node: { type, attributes, children, parent, element, rect, facts }; all attributes are strings.

const INPUTS = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
  range: 'slider', search: 'searchbox', hidden: '', file: 'button', color: 'button',
};
const TAGS = {
  button: 'button', summary: 'button', textarea: 'textbox', select: 'combobox', img: 'img', svg: 'img',
  canvas: 'img', video: 'img', progress: 'progressbar', meter: 'progressbar', iframe: 'document',
  ul: 'list', ol: 'list', li: 'listitem', table: 'table', tr: 'row', header: 'banner',
};
const KINDS = {
  button: 'button', tab: 'button', menuitem: 'button', option: 'button', link: 'link', textbox: 'edit',
  searchbox: 'edit', checkbox: 'checkbox', menuitemcheckbox: 'checkbox', switch: 'switch', radio: 'radio',
  menuitemradio: 'radio', img: 'image', image: 'image', combobox: 'picker', slider: 'slider',
  spinbutton: 'wheel', progressbar: 'progress', document: 'web', alert: 'group', heading: 'text',
  list: 'list', feed: 'feed', grid: 'grid', table: 'table', treegrid: 'table', listitem: 'cell', row: 'cell',
  gridcell: 'cell', banner: 'navigation', navigation: 'navigation', tablist: 'tabs', toolbar: 'toolbar',
  dialog: 'dialog', alertdialog: 'alert',
};
const ANDROID = {
  button: 'android.widget.Button', edit: 'android.widget.EditText', checkbox: 'android.widget.CheckBox',
  switch: 'android.widget.Switch', radio: 'android.widget.RadioButton', image: 'android.widget.ImageView',
  picker: 'android.widget.Spinner', wheel: 'android.widget.NumberPicker', slider: 'android.widget.SeekBar',
  progress: 'android.widget.ProgressBar', web: 'android.webkit.WebView', scroll: 'android.widget.ScrollView',
  sideways: 'android.widget.HorizontalScrollView', text: 'android.widget.TextView',
  link: 'android.widget.TextView', group: 'android.view.ViewGroup', list: 'android.widget.ListView',
  feed: 'androidx.recyclerview.widget.RecyclerView', grid: 'android.widget.GridView',
  table: 'android.widget.TableLayout', cell: 'android.view.ViewGroup', navigation: 'android.widget.Toolbar',
  toolbar: 'android.widget.Toolbar', tabs: 'android.widget.TabWidget', dialog: 'android.app.Dialog',
  alert: 'android.app.AlertDialog',
};
const IOS = {
  button: 'Button', edit: 'TextField', checkbox: 'Switch', switch: 'Switch', radio: 'Button', image: 'Image',
  picker: 'Picker', wheel: 'PickerWheel', slider: 'Slider', progress: 'ProgressIndicator', web: 'WebView',
  scroll: 'ScrollView', sideways: 'ScrollView', text: 'StaticText', link: 'Link', group: 'Other', list: 'Table',
  feed: 'CollectionView', grid: 'CollectionView', table: 'Table', cell: 'Cell', navigation: 'NavigationBar',
  toolbar: 'Toolbar', tabs: 'TabBar', dialog: 'Other', alert: 'Alert',
};
const IOS_PREFIX = 'XCUIElementType';
const ACTIVE = new Set(['button', 'link', 'checkbox', 'switch', 'radio', 'picker']);
const CONTAINERS = new Set([
  'group', 'scroll', 'sideways', 'list', 'feed', 'grid', 'table', 'cell', 'navigation', 'toolbar', 'tabs', 'dialog', 'alert',
]);
const CHECKABLE = new Set(['checkbox', 'switch', 'radio']);
/** The kinds of boxes; with a text of its own, such an element is a text. */
const BOXES = new Set(['text', 'cell', 'navigation', 'dialog', 'alert']);
const LEFT_OUT = new Set(['script', 'style', 'head', 'template', 'noscript', 'br', 'option', 'optgroup', 'source']);
/** A full resource ID: package, type and name. */
const RESOURCE_ID = /^[a-zA-Z_][\w.]*:[^/]+\/\S+$/;

function roleOf(element) {
  const role = (element.getAttribute('role') || '').trim().split(/\s+/)[0];
  if (role && role !== 'presentation' && role !== 'none') return role;
  if (element.isContentEditable && !element.parentElement?.isContentEditable) return 'textbox';
  if (element.localName === 'input') return INPUTS[element.type] ?? 'textbox';
  if (element.localName === 'a') return element.hasAttribute('href') ? 'link' : '';
  return TAGS[element.localName] ?? '';
}

function kindOf(element, style, text) {
  const isEdit = element.localName === 'input' && roleOf(element) === 'combobox';
  const kind = isEdit ? 'edit' : KINDS[roleOf(element)];
  if (kind === 'text') return text ? 'text' : 'group';
  if (kind && !BOXES.has(kind)) return kind;
  if (text) return 'text';

  return kind ?? scrollKindOf(style);
}

/** Return the kind of a box without a role: a scroll view is one by its style, even while it is empty. */
function scrollKindOf(style) {
  const scrolling = new Set(['auto', 'scroll']);
  if (scrolling.has(style.overflowY)) return 'scroll';

  return scrolling.has(style.overflowX) ? 'sideways' : 'group';
}

/** Return whether an element's content can be scrolled; the body stands for the whole page. */
function scrolls(element, style) {
  const box = element === document.body ? document.scrollingElement ?? element : element;
  const overflows = box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1;
  return overflows && (element === document.body || /auto|scroll/.test(style.overflowY + style.overflowX));
}

/** Return the text of an element with text of its own, including its plain inline content. */
function textOf(element, style = getComputedStyle(element)) {
  if (element.localName === 'select') return element.selectedOptions[0]?.text ?? '';
  if (element.localName === 'input' && ['button', 'submit', 'reset'].includes(element.type)) return element.value;
  if (element.localName === 'svg') return '';

  const hasText = [...element.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
  const isText = hasText || (element.matches(TEXT_VIEW) && [...element.children].some(isNestedText));
  if (!isText) return '';

  const text = inline(element, style);
  // Of React Native, too: a text view has all spaces of its text.
  return ['pre', 'pre-wrap', 'break-spaces'].includes(style.whiteSpace) ? text : tidy(text);
}

function inline(element, style = getComputedStyle(element)) {
  return [...element.childNodes].map((child) => {
    if (child.nodeType === Node.TEXT_NODE) return shown(child.data, style);
    if (child.localName === 'br') return '\n';
    const isPart = child.nodeType === Node.ELEMENT_NODE && (absorbed(child) || isNestedText(child));
    return isPart ? inline(child) : ' ';
  }).join('');
}

/** Return a text as its style shows it, except for spaces at its ends. */
function shown(data, { whiteSpace, textTransform }) {
  const text = /^(pre|break)/.test(whiteSpace) ? data : data.replace(/\s+/g, ' ');
  switch (textTransform) {
    case 'uppercase': return text.toUpperCase();
    case 'lowercase': return text.toLowerCase();
    case 'capitalize': return text.replace(/(?<![\p{L}\p{N}])\p{L}/gu, (letter) => letter.toUpperCase());
    default: return text;
  }
}

/** A text of React Native for Web. On a phone it is one view with the texts in it, of which only links are views, too. */
const TEXT_VIEW = '[dir="auto"][class^="css-"]';

/** Return whether an element is a text within one of React Native for Web. */
function isNestedText(element) {
  const outer = element.parentElement;
  return element.matches('span, a') && outer !== null && (outer.matches(TEXT_VIEW) || isNestedText(outer));
}

/** Return whether an inline element is a part of the text around it, as in a text view of a phone. */
function absorbed(element) {
  const hasName = element.dataset?.testid || element.getAttribute('aria-label');
  const isView = roleOf(element) || (hasName && !isNestedText(element));
  return !isView && getComputedStyle(element).display.startsWith('inline');
}

function tidy(text) {
  return text.replace(/[^\S\n]+/g, ' ').replace(/ ?\n ?/g, '\n').trim();
}

function valueOf(element) {
  const value = propertyOf(element, 'value');
  return value === undefined ? tidy(element.innerText || '') : String(value);
}

/** Return an element's accessible description, beyond its own text. */
function describedBy(element, active, text) {
  const label = element.getAttribute('aria-label') || element.getAttribute('accessibilitylabel');
  if (label) return label.trim();

  const ids = (element.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean);
  const texts = ids.length > 0
    ? ids.map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? '')
    : [...(element.labels ?? [])].map(({ textContent }) => textContent);
  const description = tidy(texts.join(' ')) || element.getAttribute('alt');
  if (description) return description.trim();

  if (element.localName === 'svg') return tidy(element.querySelector('title')?.textContent ?? '');

  // A button that draws its text in parts is described by all of them.
  return active && !text ? tidy(element.innerText ?? '').replace(/\n+/g, ', ') : '';
}

function checkedOf(element) {
  const stated = element.getAttribute('aria-checked');

  return stated === null ? Boolean(propertyOf(element, 'checked')) : stated === 'true';
}

function selectedOf(element) {
  const current = element.getAttribute('aria-current') ?? 'false';

  return element.getAttribute('aria-selected') === 'true' || current !== 'false';
}

function enabledOf(element) {
  // React Native for Web makes a field that is not editable read-only: on a phone, it is disabled.
  return !element.matches(':disabled') && !element.readOnly && !element.closest('[aria-disabled="true"]');
}

function rectOf(element) {
  const box = element.getBoundingClientRect();
  const x = Math.round(box.left);
  const y = Math.round(box.top);

  // From the rounded edges, so that neighbors neither overlap nor have a gap.
  return { x, y, width: Math.round(box.right) - x, height: Math.round(box.bottom) - y };
}

/** Return whether a part of an element is visible, not scrolled away or clipped by its container. */
function onScreen(element) {
  return visiblePart(element, element.getBoundingClientRect()) !== null;
}

/** Return the part of a box that is on the screen and inside of the element's containers, null if there is none. */
function visiblePart(element, box) {
  let part = intersection(box, { left: 0, top: 0, right: innerWidth, bottom: innerHeight });
  for (let outer = element.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflow === 'visible') continue;

    part = intersection(part, outer.getBoundingClientRect());
  }

  return part.right > part.left && part.bottom > part.top ? part : null;
}

/** Return the part of a box that is also in another one; it may be empty. */
function intersection(box, other) {
  return {
    left: Math.max(box.left, other.left),
    top: Math.max(box.top, other.top),
    right: Math.min(box.right, other.right),
    bottom: Math.min(box.bottom, other.bottom),
  };
}

/** The resource IDs of an alert's buttons on Android, from the last one on. */
const ALERT_BUTTONS = ['android:id/button1', 'android:id/button2', 'android:id/button3'];

/** Return the resource ID of a part of an alert: of its title, its message, or one of up to three buttons; else ''. */
function alertIdOf(element, kind) {
  const alert = element.closest('[role="alertdialog"]');
  if (!alert || alert === element || element.dataset?.testid) return '';

  const isNamedBy = (attribute) => (alert.getAttribute(attribute) ?? '').split(/\s+/).includes(element.id);
  if (element.id && isNamedBy('aria-labelledby')) return 'android:id/alertTitle';
  if (element.id && isNamedBy('aria-describedby')) return 'android:id/message';
  if (kind !== 'button') return '';

  const buttons = [...alert.querySelectorAll('button, [role="button"]')];

  return ALERT_BUTTONS[buttons.length - 1 - buttons.indexOf(element)] ?? '';
}

/** Return the properties from which both platforms' attributes are derived. */
function factsOf(element) {
  const style = getComputedStyle(element);
  const text = textOf(element, style);
  const kind = kindOf(element, style, text);
  const active = ACTIVE.has(kind);
  const edit = kind === 'edit';

  return {
    kind, text, active, edit,
    checkable: CHECKABLE.has(kind),
    described: describedBy(element, active, text),
    testId: element.dataset?.testid ?? '',
    id: element.id,
    alertId: alertIdOf(element, kind),
    classes: classesOf(element),
    range: rangeOf(element, kind),
    value: edit ? valueOf(element) : '',
    hint: edit ? element.placeholder || element.getAttribute('aria-placeholder') || '' : '',
    password: element.type === 'password',
    checked: checkedOf(element),
    selected: selectedOf(element),
    enabled: enabledOf(element),
    focused: element.getRootNode().activeElement === element && element !== document.body,
    focusable: element.tabIndex >= 0,
    clickable: active || edit || element.hasAttribute('onclick') || style.cursor === 'pointer',
    scrollable: scrolls(element, style),
    displayed: onScreen(element),
    rect: rectOf(element),
  };
}

/** Return the classes that an element's data-class names, of both platforms. */
function classesOf(element) {
  return (element.dataset?.class ?? '').split(/\s+/).filter(Boolean);
}

/** Return the position of a slider or a progress bar, if it has one. */
function rangeOf(element, kind) {
  if (kind !== 'slider' && kind !== 'progress') return null;

  const stated = element.getAttribute('aria-valuenow');
  if (stated !== null) return Number(stated);

  const isIndeterminate = element.localName === 'progress' && !element.hasAttribute('value');
  return isIndeterminate || element.value === undefined ? null : Number(element.value);
}

function dots(text) {
  return '•'.repeat(text.length);
}

function androidClass(facts) {
  const ownClass = facts.classes.find((name) => !name.startsWith(IOS_PREFIX));
  if (ownClass) return ownClass;

  return facts.kind === 'link' && !facts.text ? ANDROID.group : ANDROID[facts.kind];
}

function androidText(facts) {
  if (facts.range !== null) return float(facts.range);
  if (!facts.edit) return facts.text;

  return (facts.password ? dots(facts.value) : facts.value) || facts.hint;
}

/** Write a number as Java's Float.toString does. */
function float(number) {
  const single = Number(Math.fround(number).toPrecision(7));

  return Number.isInteger(single) ? `${single}.0` : String(single);
}

/** A test ID is a resource ID without a package; an ID has that of the app, but not on a web page of another origin. */
function resourceIdOf({ testId, id, alertId }, { application, outside }) {
  if (alertId) return alertId;
  if (testId) return testId;

  const isWhole = RESOURCE_ID.test(id) || !application || outside;
  if (!id || isWhole) return id;

  return `${application}:id/${id}`;
}

/** Return a box in the client's pixels. */
function boundsOf({ x, y, width, height }, { scale }) {
  const [left, top, right, bottom] = [x, y, x + width, y + height].map((length) => Math.round(length * scale));

  return `[${left},${top}][${right},${bottom}]`;
}

function androidAttributes(facts, target) {
  const resourceId = resourceIdOf(facts, target);

  return {
    package: target.application,
    class: androidClass(facts),
    text: androidText(facts),
    ...(facts.described ? { 'content-desc': facts.described } : {}),
    ...(resourceId ? { 'resource-id': resourceId } : {}),
    ...(facts.hint ? { hint: facts.hint } : {}),
    checkable: String(facts.checkable),
    checked: String(facts.checkable && facts.checked),
    clickable: String(facts.clickable),
    enabled: String(facts.enabled),
    focusable: String(facts.focusable),
    focused: String(facts.focused),
    'long-clickable': String(facts.clickable),
    password: String(facts.password),
    scrollable: String(facts.scrollable),
    selected: String(facts.selected),
    bounds: boundsOf(facts.rect, target),
    displayed: String(facts.displayed),
  };
}

function iosType(facts, element) {
  const ownType = facts.classes.find((name) => name.startsWith(IOS_PREFIX));
  if (ownType) return ownType;

  if (!facts.edit) return `${IOS_PREFIX}${IOS[facts.kind]}`;
  if (facts.password) return 'XCUIElementTypeSecureTextField';
  if (element.type === 'search' || element.getAttribute('role') === 'searchbox') return 'XCUIElementTypeSearchField';
  return element.localName === 'textarea' ? 'XCUIElementTypeTextView' : 'XCUIElementTypeTextField';
}

/** Return the position of a slider or a progress bar between its ends as iOS reports it; '' without one. */
function percentage({ kind, range }, element) {
  const position = range ?? Number.parseFloat(propertyOf(element, 'value'));
  const limit = (end, otherwise) => {
    const stated = Number.parseFloat(element.getAttribute(`aria-value${end}`) ?? propertyOf(element, end));
    return Number.isNaN(stated) ? otherwise : stated;
  };
  const min = limit('min', 0);
  const max = limit('max', kind === 'slider' ? 100 : 1);
  if (Number.isNaN(position) || max <= min) return '';

  return `${Math.round((100 * (position - min)) / (max - min))}%`;
}

function iosValue(facts, element) {
  if (facts.edit) return (facts.password ? dots(facts.value) : facts.value) || facts.hint;
  if (facts.checkable && facts.kind !== 'radio') return facts.checked ? '1' : '0';
  if (facts.kind === 'slider' || facts.kind === 'progress') {
    return element.getAttribute('aria-valuetext') ?? percentage(facts, element);
  }
  if (facts.kind === 'button' || facts.kind === 'radio') return facts.selected || facts.checked ? '1' : '';
  if (facts.kind === 'wheel') return element.getAttribute('aria-valuetext') ?? facts.text;
  if (facts.kind === 'picker') return facts.text;

  return facts.kind === 'text' ? facts.described || facts.text : '';
}

function iosAttributes(facts, element) {
  const label = facts.described || (facts.edit ? '' : facts.text);
  const value = iosValue(facts, element);
  // The ID of a part of an alert is for Android alone.
  const name = facts.testId || (facts.alertId ? '' : facts.id) || label;

  return {
    type: iosType(facts, element),
    ...(value ? { value } : {}),
    ...(name ? { name } : {}),
    ...(label ? { label } : {}),
    ...(facts.hint ? { placeholderValue: facts.hint } : {}),
    enabled: String(facts.enabled),
    visible: String(facts.displayed),
    accessible: String(!CONTAINERS.has(facts.kind)),
    selected: String(facts.selected || (facts.kind === 'radio' && facts.checked)),
    focused: String(facts.focused),
    x: String(facts.rect.x),
    y: String(facts.rect.y),
    width: String(facts.rect.width),
    height: String(facts.rect.height),
  };
}

function nodeOf(element, parent, target) {
  const facts = factsOf(element);
  const isAndroid = target.platform === 'Android';
  const attributes = isAndroid ? androidAttributes(facts, target) : iosAttributes(facts, element);
  const type = isAndroid ? attributes.class : attributes.type;

  return { type, attributes, element, parent, rect: facts.rect, children: [], facts };
}

/** Controls that apps make transparent to draw them themselves, as React Native for Web does with a switch. */
const DRAWN_BY_APP = ['checkbox', 'radio', 'range', 'file', 'date', 'time', 'month', 'week', 'datetime-local', 'color']
  .map((type) => `input[type="${type}"]`).concat('select').join();

/** Return whether an element is no view of Android, with all that is in it, because it is entirely transparent. */
function isTransparent(element, style, { platform }) {
  return platform === 'Android' && style.opacity === '0' && !element.matches(DRAWN_BY_APP);
}

function isHidden(element, style) {
  if (LEFT_OUT.has(element.localName) || element.ariaHidden === 'true' || element.inert) return true;
  // Closed details hide their content in a box of the browser, not by a style of it.
  if (element.matches('details:not([open]) > :not(summary:first-of-type)')) return true;
  if (style.display === 'none' || style.contentVisibility === 'hidden') return true;

  return element.localName === 'input' && element.type === 'hidden';
}

function childrenOf(element) {
  if (element.shadowRoot) return [...element.shadowRoot.children];
  if (element.localName === 'slot' && element.assignedElements().length) return element.assignedElements();
  // A picture is one view, and a frame has a tree of its own.
  if (element.localName === 'svg' || element.localName === 'iframe') return [];

  return [...element.children];
}

/** Add the nodes of elements and of their descendants to a parent. */
function grow(elements, parent, target) {
  for (const element of elements) {
    const style = getComputedStyle(element);
    if (isHidden(element, style) || isTransparent(element, style, target)) continue;

    // An element that is not drawn itself may have descendants that are.
    const isDrawn = style.visibility !== 'hidden' && style.visibility !== 'collapse' && style.display !== 'contents';
    const isPartOfText = parent.facts?.text && absorbed(element);
    let node = parent;
    if (isDrawn && !isPartOfText) {
      node = nodeOf(element, parent, target);
      node.attributes.index = String(parent.children.length);
      parent.children.push(node);
    }

    grow(childrenOf(element), node, target);
  }
}

/** Return the root of the tree: the hierarchy of Android, the application of iOS. */
function treeOf(target) {
  const isAndroid = target.platform === 'Android';
  const root = isAndroid ? hierarchy(target) : applicationNode(target);
  grow(document.body ? [document.body] : [], root, target);

  for (const body of root.children) {
    if (body.facts.classes.length === 0) {
      body.type = isAndroid ? 'android.widget.FrameLayout' : `${IOS_PREFIX}Window`;
      body.attributes[isAndroid ? 'class' : 'type'] = body.type;
    }
    if (isAndroid) isolateWindow(body);
  }
  if (target.platform === 'iOS' && keyboardShown(target)) root.children.push(keyboardNode(root));

  return root;
}

/** Modal dialogs: of the browser, and those that React Native for Web renders for a Modal. */
const MODALS = 'dialog:modal, [role="dialog"][aria-modal="true"]';
/** What is a window of its own on Android. */
const WINDOWS = `[role="alertdialog"], ${MODALS}`;

/** The views behind a window of Android are out of reach. */
function isolateWindow(body) {
  if (!document.querySelector(WINDOWS)) return;

  const top = descendants(body).findLast(({ element, facts }) => element.matches(WINDOWS) && facts.displayed);
  if (!top) return;

  body.children = [top];
  top.parent = body;
  top.attributes.index = '0';
}

/** Return whether a modal dialog is on the screen. */
function hasModal() {
  return [...document.querySelectorAll(MODALS)].some(onScreen);
}

/** The hierarchy is no view: no locator finds it. */
function hierarchy({ scale }) {
  const rotation = innerWidth > innerHeight ? '1' : '0';
  const attributes = {
    index: '0', class: 'hierarchy', rotation, width: String(Math.round(innerWidth * scale)),
    height: String(Math.round(innerHeight * scale)),
  };

  return { type: 'hierarchy', attributes, element: null, parent: null, rect: screenRect(), children: [] };
}

function applicationNode({ application }) {
  const name = application || document.title;

  return iosNode('Application', document.documentElement, null, screenRect(), { name, label: name });
}

/** The keyboard covers the lower third of the screen. The page does not render it: its head stands for it. */
function keyboardNode(parent) {
  const height = Math.round(innerHeight / 3);
  const rect = { x: 0, y: innerHeight - height, width: innerWidth, height };

  return iosNode('Keyboard', document.head, parent, rect, {});
}

/** Return a node for a view that is not rendered by the page. */
function iosNode(kind, element, parent, rect, names) {
  const type = `${IOS_PREFIX}${kind}`;
  const [x, y, width, height] = [rect.x, rect.y, rect.width, rect.height].map(String);
  const attributes = {
    type, ...names, enabled: 'true', visible: 'true', accessible: 'false', selected: 'false', focused: 'false',
    x, y, width, height, index: String(parent?.children.length ?? 0),
  };
  const facts = { enabled: true, displayed: true, selected: false, rect };

  return { type, attributes, element, parent, rect, children: [], facts };
}

function screenRect() {
  return { x: 0, y: 0, width: innerWidth, height: innerHeight };
}

/** Return the field that the keyboard types into, null without one: the keyboard is hidden then. */
function editedField() {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;

  return active && KINDS[roleOf(active)] === 'edit' && !active.readOnly ? active : null;
}

/** Return whether the keyboard is shown. A browser shows none for a field that a page focuses itself, before a touch. */
function keyboardShown(target) {
  const isOpened = navigator.userActivation.hasBeenActive || !('outside' in ownerOf(target));

  return isOpened && editedField() !== null;
}

/** The labels that the return key of iOS's keyboard has for the hints of a field. */
const RETURN_KEYS = new Set(['done', 'go', 'next', 'search', 'send']);
/** The keyboards of an iPhone for digits alone, which have no return key. */
const PADS = new Set(['numeric', 'decimal', 'tel']);

/** Return what the return key of iOS's keyboard is labelled, and whether it ends the input; null without a keyboard. */
function returnKey() {
  const field = editedField();
  if (!field) return null;

  const label = RETURN_KEYS.has(field.enterKeyHint) ? field.enterKeyHint : 'return';
  const hasPad = PADS.has(field.inputMode || field.type);
  return { label, isLast: field.localName === 'input' && !hasPad };
}

function descendants(node) {
  return node.children.flatMap((child) => [child, ...descendants(child)]);
}
