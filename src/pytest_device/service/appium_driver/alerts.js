// Alerts of the page, which block all other commands, as native elements.

import { readFileSync } from 'node:fs';
import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';

const PREFIX = 'alert:';
const BUTTONS = { accept: 'OK', dismiss: 'Cancel' };
const ONE_BUTTON = { accept: 'OK' };
const ANDROID_IDS = { accept: 'android:id/button1', dismiss: 'android:id/button2', message: 'android:id/message' };

const pageFile = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const { walked, descendants } = new Function(
  `${['page-tree.js', 'page-fields.js', 'page-find.js'].map(pageFile).join('\n')}\nreturn { walked, descendants };`,
)();

/** WebDriver does not report the position of an alert. */
export const rect = { x: 0, y: 0, width: 0, height: 0 };

export const commands = {
  async postAcceptAlert() {
    await this.toBrowser('/alert/accept', 'POST');
  },

  async postDismissAlert() {
    await this.toBrowser('/alert/dismiss', 'POST');
  },

  async getAlertText() {
    return await this.toBrowser('/alert/text', 'GET');
  },
};

/** The behavior for an unexpected alert. */
export function behavior(opts) {
  if (opts.autoAcceptAlerts) return 'accept';
  if (opts.autoDismissAlerts) return 'dismiss';
  return opts.unhandledPromptBehavior ?? 'ignore';
}

export function is(element) {
  return element.startsWith(PREFIX);
}

/** Return whether an error is of a kind; chromedriver's errors have other classes. */
export function isError(error, kind) {
  return error.error === kind.error();
}

/** Query the page; while an alert blocks it, answer from the alert. */
export async function unless(driver, ask, otherwise) {
  try {
    return await ask();
  } catch (error) {
    if (!isError(error, errors.UnexpectedAlertOpenError)) throw error;
    return await otherwise(await treeOf(driver));
  }
}

/** Return the elements of an alert that match a query. */
export async function found(root, query) {
  const steps = query.steps ?? query.scroll?.to?.steps ?? [];
  const nodes = query.xpath ? await byXPath(root, query.xpath) : walked(steps, root);
  return nodes.filter((node) => node.element).map((node) => util.wrapElement(node.element));
}

export async function source(root) {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${xmlOf(root)}`;
}

/** Return the labels of an alert's buttons. */
export async function labelsOf(driver) {
  return Object.values(await buttonsOf(driver));
}

async function buttonsOf(driver) {
  await driver.getAlertText(); // without an alert, its error
  return (await driver.device.dialogType()) === 'alert' ? ONE_BUTTON : BUTTONS;
}

/** Press the alert button with a label, or else the usual one: `accept` or `dismiss`. */
export async function pressLabelled(driver, usual, label) {
  const buttons = await buttonsOf(driver);
  const part = label ? Object.keys(buttons).find((name) => buttons[name] === label) : usual;
  if (!part) {
    const there = Object.values(buttons).map((one) => `'${one}'`).join(', ');
    throw new errors.InvalidArgumentError(`the alert has no button '${label}': its buttons are ${there}`);
  }
  await driver.toBrowser(`/alert/${part}`, 'POST');
}

export async function press(driver, element) {
  const part = element.slice(PREFIX.length);
  if (part in BUTTONS) await driver.toBrowser(`/alert/${part}`, 'POST');
}

export async function textOf(driver, element) {
  return (await partOf(driver, element)).said;
}

export async function attributeOf(driver, element, name) {
  const { attributes, type } = await partOf(driver, element);
  return name === 'class' || name === 'type' ? type : attributes[name] ?? null;
}

async function partOf(driver, element) {
  const root = await treeOf(driver);
  return descendants(root).find((node) => node.element === element);
}

async function treeOf(driver) {
  const message = await driver.getAlertText();
  return (driver.platform === 'Android' ? androidTree : iosTree)(message, await buttonsOf(driver));
}

function androidTree(message, buttons) {
  const widget = (part, type, text) => node(part, `android.widget.${type}`, text, {
    class: `android.widget.${type}`, text, 'resource-id': ANDROID_IDS[part], 'content-desc': '', enabled: 'true',
    clickable: String(type === 'Button'), displayed: 'true',
  });
  const parts = [widget('message', 'TextView', message)];
  for (const [part, label] of Object.entries(buttons).toReversed()) parts.push(widget(part, 'Button', label));
  const box = node('', 'android.widget.FrameLayout', '', { class: 'android.widget.FrameLayout' }, parts);
  return node('', 'hierarchy', '', {}, [box]);
}

function iosTree(message, buttons) {
  const widget = (part, type, label, children = []) => node(part, `XCUIElementType${type}`, label, {
    type: `XCUIElementType${type}`, name: label, label, enabled: 'true', visible: 'true', accessible: 'true',
  }, children);
  const parts = [widget('message', 'StaticText', message)];
  for (const [part, label] of Object.entries(buttons).toReversed()) parts.push(widget(part, 'Button', label));
  const type = 'XCUIElementTypeApplication';
  return node('', type, '', { type }, [widget('box', 'Alert', message, parts)]);
}

function node(part, type, said, attributes, children = []) {
  const ids = [attributes['resource-id']].filter(Boolean);
  const made = {
    type, said, attributes, children, element: part && `${PREFIX}${part}`,
    handles: { ids: [...ids, ...ids.map((id) => id.replace(/^.*\//, ''))], labels: [], text: said },
  };
  children.forEach((child, index) => {
    child.parent = made;
    child.attributes.index = String(index);
  });
  return made;
}

function xmlOf({ type, attributes, children, element }) {
  const said = Object.entries({ ...attributes, ...(element ? { 'alert-part': element } : {}) });
  const marked = said.map(([name, value]) => ` ${name}="${escaped(value)}"`).join('');
  return `<${type}${marked}>${children.map(xmlOf).join('')}</${type}>`;
}

function escaped(text) {
  return text.replace(/[&<>"\n]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

async function byXPath(root, expression) {
  const [{ DOMParser }, { default: xpath }] = await Promise.all([import('@xmldom/xmldom'), import('xpath')]);
  const document = new DOMParser().parseFromString(xmlOf(root), 'text/xml');
  let hits;
  try {
    hits = xpath.select(expression, document);
  } catch (error) {
    throw new errors.InvalidSelectorError(`${expression}: ${error.message}`);
  }
  const parts = descendants(root);
  return hits.map((hit) => parts.find((part) => part.element === hit.getAttribute?.('alert-part'))).filter(Boolean);
}
