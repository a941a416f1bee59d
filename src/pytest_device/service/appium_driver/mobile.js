// The `mobile:` scripts, and the older endpoints for the same commands.

import { errors } from 'appium/driver.js';
import { DENSITY } from './apps.js';
import { GESTURES } from './gestures.js';
import { pressButton, pressKeyCode, typeKeys } from './keys.js';

const PREFIX = 'mobile:';
const DOCUMENT = 'docs/local-appium.md';
const OFFLINE = { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 };
const ONLINE = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
const CLIPBOARD = { permissions: ['clipboardReadWrite', 'clipboardSanitizedWrite'] };
const PERMISSIONS = {
  CAMERA: 'camera', RECORD_AUDIO: 'microphone', ACCESS_FINE_LOCATION: 'geolocation',
  ACCESS_COARSE_LOCATION: 'geolocation', POST_NOTIFICATIONS: 'notifications', camera: 'camera',
  microphone: 'microphone', location: 'geolocation', 'location-always': 'geolocation', notifications: 'notifications',
};
const STATES = { yes: 'granted', always: 'granted', inuse: 'granted', no: 'denied', never: 'denied', unset: 'prompt' };

const idOf = ({ appId, bundleId, appPackage, package: name }, otherwise) => {
  const id = appId ?? bundleId ?? appPackage ?? name ?? otherwise;
  if (!id) throw new errors.InvalidArgumentError('appId (or bundleId) is missing');
  return id;
};

const APPS = {
  installApp: (driver, args) => driver.installApp(args.appPath ?? args.app),
  removeApp: (driver, args) => driver.removeApp(idOf(args)),
  isAppInstalled: (driver, args) => driver.isAppInstalled(idOf(args)),
  activateApp: (driver, args) => driver.activateApp(idOf(args)),
  launchApp: (driver, args) => driver.launchApp(idOf(args), (args.arguments ?? []).map(String)),
  terminateApp: (driver, args) => driver.terminateApp(idOf(args)),
  killApp: (driver, args) => driver.terminateApp(idOf(args)),
  queryAppState: (driver, args) => driver.queryAppState(idOf(args)),
  clearApp: (driver, args) => driver.clearApp(idOf(args, driver.application)),
  backgroundApp: (driver, { seconds }) => driver.backgroundApp(seconds),
  startActivity: (driver, args) => driver.launchApp(idOf(args, (args.component ?? args.intent)?.split('/')[0])),
  deepLink: (driver, args) => driver.deepLink(args.url, args.package ?? args.bundleId),
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
  viewportScreenshot: (driver) => driver.toBrowser('/screenshot', 'GET'),
  getDisplayDensity: () => DENSITY,
  getOrientation: (driver) => driver.getOrientation(),
  hideKeyboard: (driver) => driver.hideKeyboard(),
  isKeyboardShown: (driver) => driver.isKeyboardShown(),
  pressKey: (driver, args) => pressKeyCode(driver, args),
  pressButton: (driver, args) => pressButton(driver, args),
  keys: (driver, { keys }) => typeKeys(driver, keys),
  type: (driver, { text }) => typeKeys(driver, [text]),
  performEditorAction: (driver) => pressKeyCode(driver, { keycode: 66 }),
  getClipboard: (driver, args) => driver.getClipboard(args.contentType),
  setClipboard: (driver, args) => driver.setClipboard(args.content, args.contentType),
  getPasteboard: async (driver) => Buffer.from(await driver.getClipboard(), 'base64').toString(),
  setPasteboard: (driver, { content }) => driver.setClipboard(Buffer.from(content).toString('base64')),
  setGeolocation: (driver, args) => driver.setGeoLocation(args),
  setSimulatedLocation: (driver, args) => driver.setGeoLocation(args),
  getGeolocation: (driver) => driver.getGeoLocation(),
  getSimulatedLocation: (driver) => driver.getGeoLocation(),
  getConnectivity: (driver) => driver.connectivity ?? { wifi: true, data: true, airplaneMode: false },
  setConnectivity: (driver, args) => connect(driver, args),
  isLocked: () => false,
  acceptAlert: (driver) => driver.postAcceptAlert(),
  dismissAlert: (driver) => driver.postDismissAlert(),
  alert: (driver, args) => alert(driver, args),
  changePermissions: (driver, args) => changePermissions(driver, args),
  getPermissions: (driver, args) => permissionsOf(driver, args),
  setPermission: (driver, { access }) => setPermission(driver, access),
  getPermission: (driver, { service }) => permissionOf(driver, service),
  startLogsBroadcast: refuse('logs can only be polled, not broadcast'),
  shell: refuse('a browser has no shell'),
  execEmuConsoleCommand: refuse('it is not an emulator'),
  toggleGps: refuse('it has no switch for location services: set a location, or revoke the permission'),
  lock: refuse('it has no lock screen'),
  unlock: refuse('it has no lock screen'),
  openNotifications: refuse('it has no notification shade'),
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
  selectPickerWheelValue: refuse('a web page has no picker wheels: send the keys of the value to the element'),
};

const CALLS = { ...APPS, ...DEVICE, ...GESTURES };

export const commands = {
  /** Execute a `mobile:` script, or in the web context a script of the page. */
  async execute(script, args = []) {
    if (!script.startsWith(PREFIX)) return await inPage(this, '/execute/sync', { script, args });
    const name = script.slice(PREFIX.length).trim();
    const call = Object.hasOwn(CALLS, name) ? CALLS[name] : null;
    if (!call) throw new errors.UnknownMethodError(`'${script}' is not supported by the local device: see ${DOCUMENT}`);
    const given = (Array.isArray(args) ? args[0] : args) ?? {};
    return (await call(this, unwrapped(given), name)) ?? null;
  },

  async executeAsync(script, args = []) {
    return await inPage(this, '/execute/async', { script, args });
  },

  async deviceInfo() {
    const { width, height, language } = await this.askPage('screen');
    const { deviceName, platformVersion } = this.caps;
    const { offset } = await this.askPage('clock');
    return {
      model: deviceName, platformVersion, locale: language, timeZoneOffset: offset, isSimulator: true,
      realDisplaySize: `${width}x${height}`, displayDensity: DENSITY,
    };
  },

  async getViewport() {
    const { width, height } = await this.askPage('screen');
    return { left: 0, top: 0, width, height };
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
    await this.cdp('Browser.grantPermissions', CLIPBOARD);
    const script = 'window.focus(); return navigator.clipboard.readText();';
    const text = await this.toBrowser('/execute/sync', 'POST', { script, args: [] });
    return Buffer.from(text ?? '').toString('base64');
  },

  /** Set the clipboard's text, given in Base64. */
  async setClipboard(content, contentType = 'plaintext') {
    plain(contentType);
    await this.cdp('Browser.grantPermissions', CLIPBOARD);
    const script = 'window.focus(); return navigator.clipboard.writeText(arguments[0]);';
    const text = Buffer.from(String(content), 'base64').toString();
    await this.toBrowser('/execute/sync', 'POST', { script, args: [text] });
  },

  async openNotifications() {
    DEVICE.openNotifications(this, {}, 'openNotifications');
  },
};

async function inPage(driver, path, body) {
  if (!driver.inApp) return await driver.toBrowser(path, 'POST', body);
  const how = "switch to the web view's context first, as with a native driver";
  throw new errors.UnknownMethodError(`scripts run in web pages: ${how}`);
}

function refuse(why) {
  return (_driver, _args, name) => {
    throw new errors.UnsupportedOperationError(`the local device does not support '${PREFIX} ${name}': ${why}. See ${DOCUMENT}`);
  };
}

/** Elements are accepted in place of their ids. */
function unwrapped(args) {
  const isElement = (value) => value && typeof value === 'object' && 'element-6066-11e4-a52e-4f735466cecf' in value;
  const bare = (value) => (isElement(value) ? value['element-6066-11e4-a52e-4f735466cecf'] : value);
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, bare(value)]));
}

function plain(contentType) {
  if (String(contentType).toLowerCase() !== 'plaintext') {
    throw new errors.InvalidArgumentError(`the clipboard supports plaintext only, not ${contentType}`);
  }
}

async function connect(driver, { wifi, data, airplaneMode }) {
  const before = driver.connectivity ?? { wifi: true, data: true, airplaneMode: false };
  const now = { wifi: wifi ?? before.wifi, data: data ?? before.data, airplaneMode: airplaneMode ?? before.airplaneMode };
  await driver.cdp('Network.enable');
  await driver.cdp('Network.emulateNetworkConditions', now.airplaneMode || !(now.wifi || now.data) ? OFFLINE : ONLINE);
  driver.connectivity = now;
}

async function alert(driver, { action }) {
  if (action === 'accept') return await driver.postAcceptAlert();
  if (action === 'dismiss') return await driver.postDismissAlert();
  if (action === 'getButtons') return (await driver.getAlertText(), ['OK', 'Cancel']);
  throw new errors.InvalidArgumentError(`action must be accept, dismiss or getButtons, not ${action}`);
}

function permissionNamed(name) {
  const permission = PERMISSIONS[String(name).replace(/^android\.permission\./, '')];
  if (permission) return permission;
  const known = Object.keys(PERMISSIONS).join(', ');
  throw new errors.InvalidArgumentError(`unknown permission ${name}: the permissions are ${known}`);
}

async function changePermissions(driver, { permissions, action = 'grant' }) {
  const names = permissions === 'all' ? Object.keys(PERMISSIONS) : [permissions].flat();
  for (const name of new Set(names.map(permissionNamed))) {
    await driver.allow(name, action === 'grant' ? 'granted' : 'denied');
  }
}

function permissionsOf(driver, { type = 'requested' }) {
  const wanted = { granted: ['granted'], denied: ['denied'], requested: ['granted', 'denied', 'prompt'] }[type] ?? [];
  const names = Object.keys(PERMISSIONS).filter((name) => /^[A-Z_]+$/.test(name));
  return names
    .filter((name) => wanted.includes(driver.permissions.get(PERMISSIONS[name]) ?? 'prompt'))
    .map((name) => `android.permission.${name}`);
}

async function setPermission(driver, access) {
  for (const [name, state] of Object.entries(access)) {
    await driver.allow(permissionNamed(name), STATES[String(state).toLowerCase()] ?? 'prompt');
  }
}

function permissionOf(driver, service) {
  return { granted: 'yes', denied: 'no', prompt: 'unset' }[driver.permissions.get(permissionNamed(service)) ?? 'prompt'];
}
