// Runs in the page, after page-press.js. The alert on the screen, as the drivers of phones look for one: alert commands
// also apply to alerts that the app draws itself.

/** The IDs by which UiAutomator2 knows the parts of an alert. */
const FULL_ID = /.+:id\/.+/;
const REGULAR = /.+:id\/(alertTitle|alert_title|custom)$/;
const PERMISSION = /.+:id\/permission_message$/;
const REGULAR_BUTTON = /^android:id\/button\d+$/;
const PERMISSION_BUTTON = /.+:id\/permission_\w+_button$/;
const ALERTS = ['Alert', 'Sheet'].map((name) => IOS_PREFIX + name);
const TEXTS = ['StaticText', 'TextView'].map((name) => IOS_PREFIX + name);

/** Return the alert on the screen as { kind, text, buttons, fields } with nodes, null without one. */
function alertOf(target) {
  const nodes = descendants(treeOf(target));

  return target.platform === 'Android' ? androidAlert(nodes) : iosAlert(nodes);
}

/** UiAutomator2 knows an alert by the ID of its title or its question. */
function androidAlert(nodes) {
  const idOf = ({ attributes }) => attributes['resource-id'] ?? '';
  const isRegular = nodes.some((node) => REGULAR.test(idOf(node)));
  const isPermission = nodes.some((node) => PERMISSION.test(idOf(node)));
  if (!isRegular && !isPermission) return null;

  const pattern = isRegular ? REGULAR_BUTTON : PERMISSION_BUTTON;
  const buttons = nodes.filter((node) => pattern.test(idOf(node)));
  const texts = nodes
    .filter((node) => FULL_ID.test(idOf(node)) && !buttons.includes(node))
    .map(({ attributes }) => attributes.text)
    .filter((text) => text.trim());

  return {
    kind: isRegular ? 'regular' : 'permission',
    text: texts.join('\n'),
    buttons: buttons.map((node) => ({ node, id: idOf(node), label: node.attributes.text })),
    fields: [],
  };
}

/** WebDriverAgent takes an element of the type of an alert, or of a sheet. */
function iosAlert(nodes) {
  const shown = nodes.filter((node) => node.facts.displayed);
  const [alert] = ALERTS.map((type) => shown.findLast((node) => node.type === type)).filter(Boolean);
  if (!alert) return null;

  const inner = descendants(alert);
  const isButton = ({ type }) => type === `${IOS_PREFIX}Button`;
  const texts = inner.filter((node) => TEXTS.includes(node.type) && !isButton(node.parent));

  return {
    kind: alert.type === ALERTS[0] ? 'alert' : 'sheet',
    text: texts.map(({ attributes }) => attributes.label || attributes.value || '').join('\n'),
    buttons: inner.filter(isButton).map((node) => ({ node, id: '', label: node.attributes.label ?? '' })),
    fields: inner.filter(({ facts }) => facts.edit),
  };
}
