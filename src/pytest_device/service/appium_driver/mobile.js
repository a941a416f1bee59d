// The `mobile:` scripts, and the older endpoints for the same commands.

import { errors } from 'appium/driver.js';
import { startActivity } from './activities.js';
import * as alerts from './alerts.js';
import { follow } from './background.js';
import { densityOf, toClient } from './density.js';
import { unlessDialog } from './dialogs.js';
import { GESTURES } from './gestures.js';
import { performEditorAction, pressButton, pressKeyCode, typeKeys } from './keys.js';
import { isMobile, parsed, refusal, setsCloudStatus } from './scripts.js';

const OFFLINE = { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 };
const ONLINE = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
const PERMISSIONS = {
  CAMERA: 'camera', RECORD_AUDIO: 'microphone', ACCESS_FINE_LOCATION: 'geolocation',
  ACCESS_COARSE_LOCATION: 'geolocation', POST_NOTIFICATIONS: 'notifications', camera: 'camera',
  microphone: 'microphone', location: 'geolocation', 'location-always': 'geolocation', notifications: 'notifications',
};
const STATES = { yes: 'granted', always: 'granted', inuse: 'granted', no: 'denied', never: 'denied', unset: 'prompt' };

const idOf = ({ appId, bundleId }) => appId ?? bundleId;

const APPS = {
  installApp: (driver, args) => driver.installApp(args.appPath ?? args.app),
  removeApp: (driver, args) => driver.removeApp(idOf(args)),
  isAppInstalled: (driver, args) => driver.isAppInstalled(idOf(args)),
  activateApp: (driver, args) => driver.activateApp(idOf(args)),
  launchApp: (driver, args, name) => {
    if (args.environment) throw refusal(name, 'a web app has no environment: give it arguments');
    return driver.launchApp(idOf(args), (args.arguments ?? []).map(String));
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
  listApps: (driver) => driver.device.apps(),
  activeAppInfo: async (driver) => ({ bundleId: await driver.getCurrentPackage(), name: await driver.title() }),
};

const DEVICE = {
  getDeviceTime: (driver, { format }) => driver.getDeviceTime(format),
  deviceInfo: (driver) => driver.deviceInfo(),
  deviceScreenInfo: async (driver) => {
    const { width, height } = await driver.askPage('screen');
    return { statusBarSize: { width, height: 0 }, scale: 1, screenSize: { width, height } };
  },
  viewportRect: (driver) => driver.getViewport(),
  viewportScreenshot: (driver) => driver.getScreenshot(),
  getDisplayDensity: densityOf,
  getOrientation: (driver) => driver.getOrientation(),
  hideKeyboard: (driver) => driver.hideKeyboard(),
  isKeyboardShown: (driver) => driver.isKeyboardShown(),
  pressKey: (driver, args) => pressKeyCode(driver, args),
  pressButton: (driver, args) => pressButton(driver, args),
  keys: async (driver, { keys, elementId }) => {
    if (elementId) await driver.click(elementId);
    await typeKeys(driver, keys);
  },
  type: (driver, { text }) => typeKeys(driver, [text]),
  performEditorAction,
  getClipboard: (driver, args) => driver.getClipboard(args.contentType),
  setClipboard: (driver, args) => driver.setClipboard(args.content, args.contentType),
  getPasteboard: async (driver, { encoding }) => Buffer.from(await driver.getClipboard(), 'base64').toString(encoding),
  setPasteboard: (driver, { content, encoding }) => driver.setClipboard(Buffer.from(content, encoding).toString('base64')),
  setGeolocation: (driver, args) => driver.setGeoLocation(args),
  setSimulatedLocation: (driver, args) => driver.setGeoLocation(args),
  getGeolocation: (driver) => driver.getGeoLocation(),
  getSimulatedLocation: (driver) => driver.getGeoLocation(),
  getConnectivity: (driver, { services }) => connectivityOf(driver, services),
  setConnectivity: (driver, args) => connect(driver, args),
  isLocked: () => false,
  localNotifications: notify,
  acceptAlert: (driver, { buttonLabel }) => alerts.pressLabelled(driver, 'accept', buttonLabel),
  dismissAlert: (driver, { buttonLabel }) => alerts.pressLabelled(driver, 'dismiss', buttonLabel),
  alert: (driver, args) => alert(driver, args),
  changePermissions: (driver, args) => changePermissions(driver, args),
  getPermissions: (driver, args) => permissionsOf(driver, args),
  setPermission: (driver, { access }) => setPermission(driver, access),
  getPermission: (driver, { service }) => permissionOf(driver, service),
  resetPermission: (driver, { service }) => driver.allow(permissionNamed(service), 'prompt'),
  startLogsBroadcast: refuse('logs can only be polled, not broadcast'),
  shell: refuse('a browser has no shell'),
  execEmuConsoleCommand: refuse('it is not an emulator'),
  pushNotification: refuse("a web app gets web pushes: use 'mobile: localNotifications', or the fixture device_push"),
  toggleGps: refuse('it has no switch for location services: set a location, or revoke the permission'),
  lock: refuse('it has no lock screen'),
  unlock: refuse('it has no lock screen'),
  openNotifications: refuse("it shows none: list them with 'mobile: localNotifications'"),
  statusBar: refuse('it has no status bar'),
  getSystemBars: refuse('it has no system bars'),
  batteryInfo: refuse('it has no battery'),
  powerAc: refuse('it has no battery'),
  powerCapacity: refuse('it has no battery'),
  gsmCall: refuse('it has no telephone'),
  gsmSignal: refuse('it has no telephone'),
  gsmVoice: refuse('it has no telephone'),
  sendSms: refuse('it has no telephone'),
  networkSpeed: refuse('it has no telephone'),
  fingerprint: refuse('it has no fingerprint sensor'),
  sendBiometricMatch: refuse('it has no biometric sensor'),
  enrollBiometric: refuse('it has no biometric sensor'),
  isBiometricEnrolled: () => false,
  shake: refuse('it has no motion sensor'),
  pushFile: refuse('a web app has no files of its own'),
  pullFile: refuse('a web app has no files of its own'),
  pullFolder: refuse('a web app has no files of its own'),
  getAppStrings: refuse('a web app has no string resources'),
  getPerformanceData: refuse('it has no performance data'),
  getPerformanceDataTypes: () => [],
  startMediaProjectionRecording: refuse('record with start_recording_screen'),
  startXCTestScreenRecording: refuse('record with start_recording_screen'),
  selectPickerWheelValue: turnWheel,
};

const CALLS = { ...APPS, ...DEVICE, ...GESTURES };

export const commands = {
  /** Execute a `mobile:` script, or in the web context a script of the page; ignore a cloud's status scripts. */
  async execute(script, args = []) {
    if (setsCloudStatus(script)) {
      this.log.warn(`ignored: ${script.split(/[=:]/)[0]} sets a test's status at another service`);
      return null;
    }
    if (!isMobile(script)) return await inPage(this, '/execute/sync', { script, args });

    const [name, options] = parsed(script, args, this.platform);

    return (await CALLS[name](this, options, name)) ?? null;
  },

  async executeAsync(script, args = []) {
    return await inPage(this, '/execute/async', { script, args });
  },

  async deviceInfo() {
    const { width, height, language } = await this.askPage('screen');
    const { deviceName, platformVersion } = this.caps;
    const { offset, timeZone } = await this.askPage('clock');
    const model = { model: deviceName, timeZone, timeZoneOffset: offset, isSimulator: true };
    const locale = localeOf(language, this.platform);
    if (this.platform === 'iOS') return { ...model, name: deviceName, currentLocale: locale };
    const real = toClient(this, { width, height });
    const display = { realDisplaySize: `${real.width}x${real.height}`, displayDensity: densityOf(this) };
    return { ...model, ...display, platformVersion, locale };
  },

  async getViewport() {
    const { width, height } = await this.askPage('screen');
    return toClient(this, { left: 0, top: 0, width, height });
  },

  async hideKeyboard() {
    return await this.askPage('blur');
  },

  async isKeyboardShown() {
    return await this.askPage('keyboard');
  },

  async pressKeyCode(keycode, metastate) {
    await pressKeyCode(this, { keycode, metastate });
  },

  /** Return the clipboard's text, in Base64. */
  async getClipboard(contentType = 'plaintext') {
    plain(contentType);
    await allowClipboard(this);
    const text = await this.onPage((page) => (this.overlay.view ? page.paste() : page.evaluate('window.focus(); navigator.clipboard.readText()')));
    return Buffer.from(text ?? '').toString('base64');
  },

  /** Set the clipboard's text, given in Base64. */
  async setClipboard(content, contentType = 'plaintext') {
    plain(contentType);
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
    DEVICE.openNotifications(this, {}, 'openNotifications');
  },
};

/** Write a locale as the platform does: with a script, zh-Hant_TW on iOS and zh_TW_#Hant on Android. */
function localeOf(tag, platform) {
  const { language, script, region } = new Intl.Locale(tag.replace(/@.*$/, ''));
  if (platform === 'iOS') return [[language, script].filter(Boolean).join('-'), region].filter(Boolean).join('_');
  return [language, region, script && `#${script}`].filter(Boolean).join('_');
}

async function inPage(driver, path, body) {
  if (!driver.inApp) return await driver.toBrowser(path, 'POST', body);
  const how = "switch to the web view's context first, as with a native driver";
  throw new errors.UnknownMethodError(`scripts run in web pages: ${how}`);
}

function refuse(why) {
  return (_driver, _args, name) => {
    throw refusal(name, why);
  };
}

/** Allow the clipboard, which is no question on a phone. `Browser.grantPermissions` would deny everything else. */
async function allowClipboard(driver) {
  for (const name of ['clipboard-read', 'clipboard-write']) await driver.allow(name, 'granted');
}

function plain(contentType) {
  if (String(contentType).toLowerCase() !== 'plaintext') {
    throw new errors.InvalidArgumentError(`the clipboard supports plaintext only, not ${contentType}`);
  }
}

async function connect(driver, { wifi, data, airplaneMode }) {
  const before = connectivityOf(driver);
  const now = { wifi: wifi ?? before.wifi, data: data ?? before.data, airplaneMode: airplaneMode ?? before.airplaneMode };
  await driver.cdp('Network.enable');
  await driver.cdp('Network.emulateNetworkConditions', now.airplaneMode || !(now.wifi || now.data) ? OFFLINE : ONLINE);
  driver.connectivity = now;
}

function connectivityOf(driver, services) {
  const all = driver.connectivity ?? { wifi: true, data: true, airplaneMode: false };
  const names = services ? [services].flat() : Object.keys(all);

  return Object.fromEntries(names.map((name) => [oneOf('services', name, Object.keys(all)), all[name]]));
}

/** Turn a picker wheel by one option. */
async function turnWheel(driver, { elementId, order, offset = 0.2 }) {
  const way = String(order).toLowerCase();
  if (!['next', 'previous'].includes(way)) {
    throw new errors.InvalidArgumentError(`Only 'previous' and 'next' order values are supported. '${order}' was given instead`);
  }
  if (!(offset > 0 && offset <= 0.5)) {
    throw new errors.InvalidArgumentError(`'offset' value is expected to be in range (0.0, 0.5]. '${offset}' was given instead`);
  }
  await unlessDialog(driver.askPage('turn', { order: way }, elementId));
}

async function alert(driver, { action, buttonLabel }) {
  if (oneOf('action', action, ['accept', 'dismiss', 'getButtons']) !== 'getButtons') {
    return await alerts.pressLabelled(driver, action, buttonLabel);
  }
  return await alerts.labelsOf(driver);
}

/** Push a message to the device, or list, answer or dismiss its notifications. */
async function notify(driver, { do: what, data, appId, key, action, text }) {
  const { device } = driver;
  const doing = {
    push: () => device.push(data, appId),
    list: () => device.notifications(),
    answer: async () => {
      await device.answerNotification(key, action, text);
      await follow(driver);
    },
    dismiss: () => device.dismissNotification(key),
  };
  return await doing[oneOf('do', what, Object.keys(doing))]();
}

function oneOf(argument, value, choices) {
  if (choices.includes(value)) return value;

  throw new errors.InvalidArgumentError(`${argument} must be one of ${choices.join(', ')}, not ${value}`);
}

function permissionNamed(name) {
  const permission = PERMISSIONS[String(name).replace(/^android\.permission\./, '')];
  if (permission) return permission;

  const names = Object.keys(PERMISSIONS).join(', ');
  throw new errors.InvalidArgumentError(`unknown permission ${name}: the permissions are ${names}`);
}

async function changePermissions(driver, { permissions, action = 'grant' }) {
  oneOf('action', action, ['grant', 'revoke']);
  const names = permissions === 'all' ? Object.keys(PERMISSIONS) : [permissions].flat();
  for (const name of new Set(names.map(permissionNamed))) {
    await driver.allow(name, action === 'grant' ? 'granted' : 'denied');
  }
}

function permissionsOf(driver, { type = 'requested' }) {
  const statesOfType = { granted: ['granted'], denied: ['denied'], requested: ['granted', 'denied', 'prompt'] };
  const states = statesOfType[oneOf('type', type, Object.keys(statesOfType))];
  // Those of Android, not of iOS.
  const names = Object.keys(PERMISSIONS).filter((name) => /^[A-Z_]+$/.test(name));

  return names
    .filter((name) => states.includes(driver.permissions.get(PERMISSIONS[name]) ?? 'prompt'))
    .map((name) => `android.permission.${name}`);
}

async function setPermission(driver, access) {
  for (const [name, state] of Object.entries(access)) {
    const word = oneOf(`access of ${name}`, String(state).toLowerCase(), Object.keys(STATES));
    await driver.allow(permissionNamed(name), STATES[word]);
  }
}

function permissionOf(driver, service) {
  return { granted: 'yes', denied: 'no', prompt: 'unset' }[driver.permissions.get(permissionNamed(service)) ?? 'prompt'];
}
