// Runs in the page. Builds the element tree of a native driver from the app's document.
// A node: { type, attributes, children, parent, element, rect, handles }; all attributes are strings.

const INPUTS = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
  range: 'slider', search: 'searchbox', hidden: '', file: 'button', color: 'button',
};
const TAGS = {
  button: 'button', summary: 'button', textarea: 'textbox', select: 'combobox', img: 'img', svg: 'img',
  canvas: 'img', video: 'img', progress: 'progressbar', meter: 'progressbar', iframe: 'document',
};
const KINDS = {
  button: 'button', tab: 'button', menuitem: 'button', option: 'button', link: 'link', textbox: 'edit',
  searchbox: 'edit', checkbox: 'checkbox', menuitemcheckbox: 'checkbox', switch: 'switch', radio: 'radio',
  menuitemradio: 'radio', img: 'image', image: 'image', combobox: 'picker', slider: 'slider',
  progressbar: 'progress', document: 'web', alert: 'group', heading: 'text',
};
const ANDROID = {
  button: 'android.widget.Button', edit: 'android.widget.EditText', checkbox: 'android.widget.CheckBox',
  switch: 'android.widget.Switch', radio: 'android.widget.RadioButton', image: 'android.widget.ImageView',
  picker: 'android.widget.Spinner', slider: 'android.widget.SeekBar', progress: 'android.widget.ProgressBar',
  web: 'android.webkit.WebView', scroll: 'android.widget.ScrollView', text: 'android.widget.TextView',
  link: 'android.widget.TextView', group: 'android.view.ViewGroup',
};
const IOS = {
  button: 'Button', edit: 'TextField', checkbox: 'Switch', switch: 'Switch', radio: 'Button', image: 'Image',
  picker: 'Picker', slider: 'Slider', progress: 'ProgressIndicator', web: 'WebView', scroll: 'ScrollView',
  text: 'StaticText', link: 'Link', group: 'Other',
};
const ACTIVE = new Set(['button', 'link', 'checkbox', 'switch', 'radio', 'picker']);
const CHECKABLE = new Set(['checkbox', 'switch', 'radio']);
const LEFT_OUT = new Set(['script', 'style', 'head', 'template', 'noscript', 'br', 'option', 'optgroup', 'source']);

function roleOf(element) {
  const role = (element.getAttribute('role') || '').trim().split(/\s+/)[0];
  if (role && role !== 'presentation' && role !== 'none') return role;
  if (element.isContentEditable && !element.parentElement?.isContentEditable) return 'textbox';
  if (element.localName === 'input') return INPUTS[element.type] ?? 'textbox';
  if (element.localName === 'a') return element.hasAttribute('href') ? 'link' : '';
  return TAGS[element.localName] ?? '';
}

function kindOf(element, style, text) {
  const kind = element.localName === 'input' && roleOf(element) === 'combobox' ? 'edit' : KINDS[roleOf(element)];
  if (kind) return kind === 'text' && !text ? 'group' : kind;
  if (text) return 'text';
  return scrolls(element, style) ? 'scroll' : 'group';
}

/** Return whether an element's content can be scrolled; the body stands for the whole page. */
function scrolls(element, style) {
  const box = element === document.body ? document.scrollingElement ?? element : element;
  const overflows = box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1;
  return overflows && (element === document.body || /auto|scroll/.test(style.overflowY + style.overflowX));
}

/** Return the text of an element with text of its own, including its plain inline content. */
function textOf(element) {
  if (element.localName === 'select') return element.selectedOptions[0]?.text ?? '';
  if (element.localName === 'input' && ['button', 'submit', 'reset'].includes(element.type)) return element.value;
  if (element.localName === 'svg') return '';
  const own = [...element.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
  return own ? tidy(inline(element)) : '';
}

function inline(element) {
  return [...element.childNodes].map((child) => {
    if (child.nodeType === Node.TEXT_NODE) return child.data;
    if (child.localName === 'br') return '\n';
    return child.nodeType === Node.ELEMENT_NODE && absorbed(child) ? inline(child) : ' ';
  }).join('');
}

function absorbed(element) {
  const named = element.dataset?.testid || element.getAttribute('aria-label') || roleOf(element);
  return !named && getComputedStyle(element).display.startsWith('inline');
}

function tidy(text) {
  return text.replace(/[^\S\n]+/g, ' ').replace(/ ?\n ?/g, '\n').trim();
}

function valueOf(element) {
  return 'value' in element ? String(element.value) : tidy(element.innerText || '');
}

/** Return an element's accessible description, beyond its own text. */
function describedBy(element, active, text) {
  const label = element.getAttribute('aria-label') || element.getAttribute('accessibilitylabel');
  if (label) return label.trim();
  const by = (element.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean);
  const words = by.map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? '');
  const labels = [...(element.labels ?? [])].map((one) => one.textContent);
  const said = tidy([...words, ...(words.length ? [] : labels)].join(' ')) || element.getAttribute('alt');
  if (said) return said.trim();
  if (element.localName === 'svg') return tidy(element.querySelector('title')?.textContent ?? '');
  return active && !text ? tidy(element.innerText ?? '').replace(/\n+/g, ', ') : '';
}

function checkedOf(element) {
  const said = element.getAttribute('aria-checked');
  return said === null ? Boolean(element.checked) : said === 'true';
}

function selectedOf(element) {
  const current = element.getAttribute('aria-current') ?? 'false';
  return element.getAttribute('aria-selected') === 'true' || current !== 'false';
}

function enabledOf(element) {
  return !element.matches(':disabled') && !element.closest('[aria-disabled="true"]');
}

function rectOf(element) {
  const box = element.getBoundingClientRect();
  const [x, y] = [Math.round(box.left), Math.round(box.top)];
  return { x, y, width: Math.round(box.right) - x, height: Math.round(box.bottom) - y };
}

/** Return whether a part of an element is visible, not scrolled away or clipped by its container. */
function onScreen(element) {
  let { left, top, right, bottom } = element.getBoundingClientRect();
  [left, top] = [Math.max(left, 0), Math.max(top, 0)];
  [right, bottom] = [Math.min(right, innerWidth), Math.min(bottom, innerHeight)];
  for (let outer = element.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflow === 'visible') continue;
    const box = outer.getBoundingClientRect();
    [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
    [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
  }
  return right > left && bottom > top;
}

/** Return the properties from which both platforms' attributes are derived. */
function factsOf(element) {
  const style = getComputedStyle(element);
  const text = textOf(element);
  const kind = kindOf(element, style, text);
  const active = ACTIVE.has(kind);
  const edit = kind === 'edit';
  return {
    kind, text, active, edit,
    checkable: CHECKABLE.has(kind),
    described: describedBy(element, active, text),
    id: element.dataset?.testid || element.id || '',
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

function dots(text) {
  return '•'.repeat(text.length);
}

function androidAttributes(facts, application) {
  const { x, y, width, height } = facts.rect;
  const typed = facts.password ? dots(facts.value) : facts.value;
  return {
    package: application,
    class: facts.kind === 'link' && !facts.text ? ANDROID.group : ANDROID[facts.kind],
    text: facts.edit ? typed || facts.hint : facts.text,
    'resource-id': facts.id,
    'content-desc': facts.described,
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
    bounds: `[${x},${y}][${x + width},${y + height}]`,
    displayed: String(facts.displayed),
  };
}

function iosType(facts, element) {
  if (!facts.edit) return `XCUIElementType${IOS[facts.kind]}`;
  if (facts.password) return 'XCUIElementTypeSecureTextField';
  if (element.type === 'search' || element.getAttribute('role') === 'searchbox') return 'XCUIElementTypeSearchField';
  return element.localName === 'textarea' ? 'XCUIElementTypeTextView' : 'XCUIElementTypeTextField';
}

function iosValue(facts, element) {
  if (facts.edit) return (facts.password ? dots(facts.value) : facts.value) || facts.hint;
  if (facts.checkable) return facts.checked ? '1' : '0';
  if (facts.kind === 'slider' || facts.kind === 'progress') {
    const said = element.getAttribute('aria-valuetext') ?? element.getAttribute('aria-valuenow');
    return said ?? String(element.value ?? '');
  }
  return facts.kind === 'picker' || facts.kind === 'text' ? facts.text : '';
}

function iosAttributes(facts, element) {
  const label = facts.described || (facts.edit ? '' : facts.text);
  const value = iosValue(facts, element);
  const name = facts.id || label;
  return {
    type: iosType(facts, element),
    ...(value ? { value } : {}),
    ...(name ? { name } : {}),
    ...(label ? { label } : {}),
    ...(facts.hint ? { placeholderValue: facts.hint } : {}),
    enabled: String(facts.enabled),
    visible: String(facts.displayed),
    accessible: String(facts.kind !== 'group' && facts.kind !== 'scroll'),
    selected: String(facts.selected),
    focused: String(facts.focused),
    x: String(facts.rect.x),
    y: String(facts.rect.y),
    width: String(facts.rect.width),
    height: String(facts.rect.height),
  };
}

/** Return the names of an element: as accessibility id, and as id. */
function handlesOf(element, facts) {
  const ids = [element.dataset?.testid, element.id].filter(Boolean);
  const labels = [facts.described, element.getAttribute('name')].filter(Boolean);
  return { ids, labels, text: facts.edit ? '' : facts.text };
}

function nodeOf(element, parent, target) {
  const facts = factsOf(element);
  const android = target.platform === 'Android';
  const attributes = android ? androidAttributes(facts, target.application) : iosAttributes(facts, element);
  const type = android ? attributes.class : attributes.type;
  const handles = handlesOf(element, facts);
  return { type, attributes, element, parent, rect: facts.rect, children: [], handles, facts };
}

function hidden(element, style) {
  return LEFT_OUT.has(element.localName) || style.display === 'none' || element.ariaHidden === 'true'
    || (element.localName === 'input' && element.type === 'hidden') || style.contentVisibility === 'hidden';
}

function childrenOf(element) {
  if (element.shadowRoot) return [...element.shadowRoot.children];
  if (element.localName === 'slot' && element.assignedElements().length) return element.assignedElements();
  return element.localName === 'svg' || element.localName === 'iframe' ? [] : [...element.children];
}

/** Add the nodes of elements and of their descendants to a parent. */
function grow(elements, parent, target) {
  for (const element of elements) {
    const style = getComputedStyle(element);
    if (hidden(element, style)) continue;
    let node = parent;
    const shown = style.visibility !== 'hidden' && style.visibility !== 'collapse' && style.display !== 'contents';
    const part = parent.facts?.text && absorbed(element);
    if (shown && !part) {
      node = nodeOf(element, parent, target);
      node.attributes.index = String(parent.children.length);
      parent.children.push(node);
    }
    grow(childrenOf(element), node, target);
  }
}

/** Return the root of the tree; its element is the body. */
function treeOf(target) {
  const rect = { x: 0, y: 0, width: innerWidth, height: innerHeight };
  const [width, height] = [String(innerWidth), String(innerHeight)];
  const at = { parent: null, children: [], element: document.body, rect, handles: { ids: [], labels: [], text: '' } };
  if (target.platform === 'Android') {
    const attributes = { index: '0', class: 'hierarchy', rotation: innerWidth > innerHeight ? '1' : '0', width, height };
    const root = { ...at, type: 'hierarchy', attributes };
    grow([document.body], root, target);
    root.children.forEach((body) => {
      body.type = body.attributes.class = 'android.widget.FrameLayout';
    });
    return root;
  }
  const name = target.application || document.title;
  const type = 'XCUIElementTypeApplication';
  const box = { x: '0', y: '0', width, height };
  const attributes = { type, name, label: name, enabled: 'true', visible: 'true', ...box, index: '0' };
  const root = { ...at, type, attributes };
  grow([document.body], root, target);
  root.children.forEach((body) => {
    body.type = body.attributes.type = 'XCUIElementTypeWindow';
  });
  return root;
}

function descendants(node) {
  return node.children.flatMap((child) => [child, ...descendants(child)]);
}
