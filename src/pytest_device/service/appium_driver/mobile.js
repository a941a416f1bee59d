// The `mobile:` scripts, and the older endpoints for the same commands.

import { errors } from 'appium/driver.js';
import { startActivity } from './activities.js';
import * as alerts from './alerts.js';
import { follow } from './background.js';
import { densityOf, toClient } from './density.js';
import { unlessDialog } from './dialogs.js';
import { enter } from './elements.js';
import { GESTURES } from './gestures.js';
import { ENTER, performEditorAction, pressButton, pressKeyCode, typeKeys, typeText } from './keys.js';
import { isMobile, parsed, refusal, setsCloudStatus } from './scripts.js';

/** Network conditions of the Chrome DevTools Protocol. */
const OFFLINE = { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 };
/** -1 is no limit. */
const ONLINE = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };

/** The browser's permissions by the names that Android and, in lower case, iOS have for them. */
const PERMISSIONS = {
  CAMERA: 'camera',
  RECORD_AUDIO: 'microphone',
  ACCESS_FINE_LOCATION: 'geolocation',
  ACCESS_COARSE_LOCATION: 'geolocation',
  POST_NOTIFICATIONS: 'notifications',
  camera: 'camera',
  microphone: 'microphone',
  location: 'geolocation',
  'location-always': 'geolocation',
  notifications: 'notifications',
};
const ANDROID_PERMISSIONS = Object.keys(PERMISSIONS).filter((name) => name === name.toUpperCase());
/** The browser's states of a permission by the words of `mobile: setPermission`. */
const STATES = { yes: 'granted', always: 'granted', inuse: 'granted', no: 'denied', never: 'denied', unset: 'prompt' };
/** The words of `mobile: getPermission` by the browser's states. */
const ANSWERS = { granted: 'yes', denied: 'no', prompt: 'unset' };

const APPS = {
  installApp: (driver, args) => driver.installApp(args.appPath ?? args.app),
  removeApp: (driver, args) => driver.removeApp(idOf(args)),
  isAppInstalled: (driver, args) => driver.isAppInstalled(idOf(args)),
  activateApp: (driver, args) => driver.activateApp(idOf(args)),
  launchApp: (driver, args, name) => {
    if (args.environment) throw refusal(name, 'a web app has no environment: give it arguments');
    return driver.launchApp(idOf(args), [args.arguments ?? []].flat().map(String));
  },
  terminateApp: (driver, args) => driver.terminateApp(idOf(args)),
  killApp: (driver, args) => driver.terminateApp(idOf(args)),
  queryAppState: (driver, args) => driver.queryAppState(idOf(args)),
  clearApp: (driver, args) => driver.clearApp(idOf(args)),
  backgroundApp: (driver, { seconds }) => driver.backgroundApp(seconds),
  startActivity,
  deepLink: (driver, args) => driver.deepLink(args.url, args.package ?? args.bundleId),
  getContexts: (driver) => driver.describeContexts(),
  getCurrentPackage: (driver) => driver.getCurrentPackage(),
  getCurrentActivity: (driver) => driver.getCurrentActivity(),
  listApps: async (driver) => {
    const ids = Object.keys(await driver.device.apps());
    return Object.fromEntries(ids.map((id) => [id, factsOfApp(id, driver.platform)]));
  },
  activeAppInfo: async (driver) => ({ bundleId: await driver.getCurrentPackage(), name: await driver.title() }),
};

const DEVICE = {
  getDeviceTime: (driver, { format }) => driver.getDeviceTime(format),
  deviceInfo: (driver) => driver.deviceInfo(),
  deviceScreenInfo: async (driver) => {
    const { width, height } = await driver.askPage('screen');
    return { statusBarSize: { width, height: 0 }, scale: 1, screenSize: { width, height } };
  },
  source: sourceOf,
  viewportRect: (driver) => driver.getViewport(),
  viewportScreenshot: (driver) => driver.getScreenshot(),
  startScreenRecording: (driver, args) => driver.startRecordingScreen(args),
  stopScreenRecording: (driver, args) => driver.stopRecordingScreen(args),
  getDisplayDensity: densityOf,
  isLocked: () => false,
  isBiometricEnrolled: () => false,
  getPerformanceDataTypes: () => [],

  hideKeyboard: (driver, { keys }) => hideKeyboard(driver, [keys ?? []].flat()),
  isKeyboardShown: (driver) => driver.isKeyboardShown(),
  pressKey: pressKeyCode,
  pressButton,
  performEditorAction,
  keys: async (driver, { keys, elementId }) => {
    if (elementId) await driver.click(elementId);
    await typeKeys(driver, keys);
  },
  type: (driver, { text }) => typeText(driver, text),
  replaceElementValue: (driver, { elementId, text }) => enter(driver, elementId, String(text), { isReplaced: true }),
  selectPickerWheelValue: turnWheel,

  getClipboard: (driver, args) => driver.getClipboard(args.contentType),
  setClipboard: (driver, args) => driver.setClipboard(args.content, args.contentType),
  getPasteboard: async (driver, { encoding }) => Buffer.from(await driver.getClipboard(), 'base64').toString(encoding),
  setPasteboard: (driver, { content, encoding }) => driver.setClipboard(Buffer.from(content, encoding).toString('base64')),

  setGeolocation: (driver, args) => driver.setGeoLocation(args),
  setSimulatedLocation: (driver, args) => driver.setGeoLocation(args),
  resetGeolocation: (driver) => driver.resetGeoLocation(),
  resetSimulatedLocation: (driver) => driver.resetGeoLocation(),
  getGeolocation: (driver) => driver.getGeoLocation(),
  getSimulatedLocation: (driver) => driver.getGeoLocation(),
  getConnectivity: (driver, { services }) => connectivityOf(driver, services),
  setConnectivity,

  localNotifications,
  acceptAlert: (driver, { buttonLabel }) => alerts.pressLabelled(driver, 'accept', buttonLabel),
  dismissAlert: (driver, { buttonLabel }) => alerts.pressLabelled(driver, 'dismiss', buttonLabel),
  alert,

  changePermissions,
  getPermissions,
  setPermission,
  getPermission: (driver, { service }) => ANSWERS[stateOf(driver, permissionNamed(service))],
  resetPermission: (driver, { service }) => driver.allow(permissionNamed(service), 'prompt'),
};

/** The scripts by their names without `mobile:`: functions of the driver, the arguments, which are checked, and the name. */
const HANDLERS = { ...APPS, ...DEVICE, ...GESTURES };

export const commands = {
  /** Execute a `mobile:` script, or in the web context a script of the page; ignore a cloud's status scripts. */
  async execute(script, args = []) {
    if (typeof script !== 'string') throw new errors.InvalidArgumentError(`script must be a text, not ${JSON.stringify(script)}`);
    if (setsCloudStatus(script)) {
      this.log.warn(`ignored: ${script.split(/[=:]/)[0]} sets a test's status at another service`);
      return null;
    }
    if (!isMobile(script)) return await inPage(this, '/execute/sync', { script, args });

    const [name, options] = parsed(script, args, this.platform);
    return (await HANDLERS[name](this, options, name)) ?? null;
  },

  async executeAsync(script, args = []) {
    return await inPage(this, '/execute/async', { script, args });
  },

  async deviceInfo() {
    const { width, height, language } = await this.askPage('screen');
    const { offset, timeZone } = await this.askPage('clock');
    const { deviceName, platformVersion } = this.caps;
    const locale = localeOf(language, this.platform);
    const info = { model: deviceName, timeZone, timeZoneOffset: offset, isSimulator: true };
    if (this.platform === 'iOS') return { ...info, name: deviceName, currentLocale: locale };

    const real = toClient(this, { width, height });
    return {
      ...info,
      platformVersion,
      locale,
      realDisplaySize: `${real.width}x${real.height}`,
      displayDensity: densityOf(this),
    };
  },

  async getViewport() {
    const { width, height } = await this.askPage('screen');

    return toClient(this, { left: 0, top: 0, width, height });
  },

  async hideKeyboard(strategy, ...keys) {
    return await hideKeyboard(this, keys);
  },

  async isKeyboardShown() {
    return await this.askPage('keyboard');
  },

  async pressKeyCode(keycode, metastate) {
    await pressKeyCode(this, { keycode, metastate });
  },

  /** Return the clipboard's text, in Base64. Throws InvalidArgument for another type of content. */
  async getClipboard(contentType = 'plaintext') {
    checkContentType(contentType);
    await allowClipboard(this);
    const read = 'window.focus(); navigator.clipboard.readText()';
    const text = await this.onPage((page) => (this.overlay.view ? page.paste() : page.evaluate(read)));

    return Buffer.from(text ?? '').toString('base64');
  },

  /** Set the clipboard's text, given in Base64. Throws InvalidArgument for another type of content. */
  async setClipboard(content, contentType = 'plaintext') {
    checkContentType(contentType);
    await allowClipboard(this);
    const text = Buffer.from(String(content), 'base64').toString();
    const write = `window.focus(); navigator.clipboard.writeText(${JSON.stringify(text)})`;
    await this.onPage((page) => (this.overlay.view ? page.copy(text) : page.evaluate(write)));
  },

  /** A command of a plugin of Appium, which runs a script in Appium's own process. */
  async executeDriverScript() {
    const why = "Appium runs it in its own process only with the plugin 'execute-driver', which the local device has not";
    throw new errors.UnknownCommandError(`the local device does not support execute_driver: ${why}. Send the commands`);
  },

  async openNotifications() {
    return await this.execute('mobile: openNotifications');
  },
};

/** Return the ID of an app: the client sends both names to either driver. */
function idOf({ appId, bundleId }) {
  return appId ?? bundleId;
}

/** Describe an app by its ID as the platform does; a web app has no version. */
function factsOfApp(id, platform) {
  return platform === 'iOS' ? { CFBundleIdentifier: id } : { packageName: id, versionCode: null };
}

/** Write a locale as the platform does: with a script, zh-Hant_TW on iOS and zh_TW_#Hant on Android. */
function localeOf(tag, platform) {
  const { language, script, region } = new Intl.Locale(tag.replace(/@.*$/, ''));
  const parts = platform === 'iOS'
    ? [[language, script].filter(Boolean).join('-'), region]
    : [language, region, script && `#${script}`];

  return parts.filter(Boolean).join('_');
}

/**
 * Hide the keyboard; on an iPhone by its return key, which must be among the keys that are named, or be `done`.
 *
 * Returns whether it was shown. Throws InvalidElementState as WebDriverAgent does: no other key of an iPhone hides it.
 */
async function hideKeyboard(driver, keys) {
  const isIphone = driver.platform === 'iOS' && !/ipad/i.test(driver.caps.deviceName);
  if (!isIphone) return await driver.askPage('blur');

  const returnKey = await driver.askPage('returnKey');
  if (!returnKey) return false;

  const { label, isLast } = returnKey;
  const names = [label, label[0].toUpperCase() + label.slice(1)];
  if (!isLast || ![...keys, 'done'].some((key) => names.includes(key))) {
    const instead = isLast ? `name its return key, '${label}', or ` : '';
    throw new errors.InvalidElementStateError(`Did not know how to dismiss the keyboard. Note: ${instead}tap outside of the field`);
  }

  await typeText(driver, ENTER);
  return await driver.askPage('blur');
}

/** Return the page source as XML, without some attributes, whose names have commas between them. */
async function sourceOf(driver, { format = 'xml', excludedAttributes = '' }, name) {
  if (format !== 'xml') throw refusal(name, `it has the format xml, not ${format}`);

  const excluded = excludedAttributes.split(',').map((attribute) => attribute.trim()).filter(Boolean);
  return await driver.askPage('source', { excluded });
}

/** Run a script in the page of a web context. Throws UnknownMethod in the native context. */
async function inPage(driver, path, body) {
  if (!driver.inApp) return await driver.toBrowser(path, 'POST', body);

  const how = "switch to the web view's context first, as with a native driver";
  throw new errors.UnknownMethodError(`scripts run in web pages: ${how}`);
}

/** Allow the clipboard, which is no question on a phone. `Browser.grantPermissions` would deny everything else. */
async function allowClipboard(driver) {
  await driver.allow('clipboard-read', 'granted');
  await driver.allow('clipboard-write', 'granted');
}

function checkContentType(contentType) {
  if (String(contentType).toLowerCase() === 'plaintext') return;

  throw new errors.InvalidArgumentError(`the clipboard supports plaintext only, not ${contentType}`);
}

/** Connect or disconnect the page: it has a network, unless airplane mode is on, or Wi-Fi and mobile data are off. */
async function setConnectivity(driver, { wifi, data, airplaneMode }) {
  const before = connectivityOf(driver);
  const now = {
    wifi: wifi ?? before.wifi,
    data: data ?? before.data,
    airplaneMode: airplaneMode ?? before.airplaneMode,
  };
  const isOffline = now.airplaneMode || !(now.wifi || now.data);

  await driver.cdp('Network.enable');
  await driver.cdp('Network.emulateNetworkConditions', isOffline ? OFFLINE : ONLINE);
  driver.connectivity = now;
}

/** Return which of the services are on, by default of all. Throws InvalidArgument for an unknown one. */
function connectivityOf(driver, services) {
  const all = driver.connectivity ?? { wifi: true, data: true, airplaneMode: false };
  if (!services) return all;

  const states = {};
  for (const service of [services].flat()) {
    states[oneOf('services', service, Object.keys(all))] = all[service];
  }

  return states;
}

/** Turn a picker wheel by one option. The errors are those of WebDriverAgent. */
async function turnWheel(driver, { elementId, order, offset = 0.2 }) {
  const direction = String(order).toLowerCase();
  if (!['next', 'previous'].includes(direction)) {
    throw new errors.InvalidArgumentError(`Only 'previous' and 'next' order values are supported. '${order}' was given instead`);
  }
  // How far the finger moves, in heights of the wheel: it has no effect here.
  if (!(offset > 0 && offset <= 0.5)) {
    throw new errors.InvalidArgumentError(`'offset' value is expected to be in range (0.0, 0.5]. '${offset}' was given instead`);
  }

  await unlessDialog(driver.askPage('turn', { order: direction }, elementId));
}

/** Accept or dismiss the alert on the screen, by a button's label if there is one; or return the labels of its buttons. */
async function alert(driver, { action, buttonLabel }) {
  oneOf('action', action, ['accept', 'dismiss', 'getButtons']);
  if (action === 'getButtons') return await alerts.labelsOf(driver);

  return await alerts.pressLabelled(driver, action, buttonLabel);
}

/** Push a message to the device, or list, answer or dismiss its notifications: `mobile: localNotifications`. */
async function localNotifications(driver, { do: verb, data, appId, key, action, text }) {
  const { device } = driver;
  switch (oneOf('do', verb, ['push', 'list', 'answer', 'dismiss'])) {
    case 'push':
      return await device.push(data, appId);
    case 'list':
      return await device.notifications();
    case 'answer':
      await device.answerNotification(key, action, text);
      await follow(driver);
      return null;
    default:
      return await device.dismissNotification(key);
  }
}

/** Return a value if it is one of the choices. Throws InvalidArgument. */
function oneOf(argument, value, choices) {
  if (choices.includes(value)) return value;

  throw new errors.InvalidArgumentError(`${argument} must be one of ${choices.join(', ')}, not ${value}`);
}

/** Return the browser's permission for a name of Android or iOS. Throws InvalidArgument. */
function permissionNamed(name) {
  const shortName = String(name).replace(/^android\.permission\./, '');
  if (Object.hasOwn(PERMISSIONS, shortName)) return PERMISSIONS[shortName];

  const names = Object.keys(PERMISSIONS).join(', ');
  throw new errors.InvalidArgumentError(`unknown permission ${name}: the permissions are ${names}`);
}

/** Return what is decided about a permission of the browser: granted, denied, or prompt for nothing. */
function stateOf(driver, permission) {
  return driver.permissions.get(permission) ?? 'prompt';
}

async function changePermissions(driver, { permissions, action = 'grant' }) {
  oneOf('action', action, ['grant', 'revoke']);
  const names = permissions === 'all' ? ANDROID_PERMISSIONS : [permissions].flat();
  const state = action === 'grant' ? 'granted' : 'denied';

  // All names are checked before the first change; several of Android's are one of the browser's.
  for (const permission of new Set(names.map(permissionNamed))) await driver.allow(permission, state);
}

/** Return the names of Android's permissions that are granted, denied, or, as `requested`, all that an app may ask for. */
function getPermissions(driver, { type = 'requested' }) {
  const statesOfType = { granted: ['granted'], denied: ['denied'], requested: ['granted', 'denied', 'prompt'] };
  const states = statesOfType[oneOf('type', type, Object.keys(statesOfType))];
  const names = ANDROID_PERMISSIONS.filter((name) => states.includes(stateOf(driver, PERMISSIONS[name])));

  return names.map((name) => `android.permission.${name}`);
}

/** Set those permissions of a capability that a web app can have. */
export async function permit(driver, access) {
  const known = Object.entries(access).filter(([name]) => Object.hasOwn(PERMISSIONS, name));

  await setPermission(driver, { access: Object.fromEntries(known) });
}

/** Set permissions by their names: `access` is an object such as { camera: 'yes' }. */
async function setPermission(driver, { access }) {
  for (const [name, word] of Object.entries(access)) {
    const state = STATES[oneOf(`access of ${name}`, String(word).toLowerCase(), Object.keys(STATES))];
    await driver.allow(permissionNamed(name), state);
  }
}
