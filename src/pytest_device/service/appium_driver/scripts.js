// The `mobile:` scripts of each platform's driver, and their arguments.
//
// In a list of arguments, `name` is mandatory and `name?` is optional; of `one|two+three`, one alternative is mandatory:
// `one`, or `two` with `three`. The names are those that UiAutomator2 and XCUITest document.

import { errors } from 'appium/driver.js';

const PREFIX = 'mobile:';
const DOCUMENT = 'docs/local-appium.md';
const MAX_DISTANCE = 2;
const ELEMENT_KEY = 'element-6066-11e4-a52e-4f735466cecf';

const android = (list = '') => ({ Android: list });
const ios = (list = '') => ({ iOS: list });
const both = (list = '') => ({ Android: list, iOS: list });
/** In place of the arguments: why the device cannot execute the script. */
const refused = (why) => ({ why });

// The client sends both names to either driver.
const app = (more = '') => ({ Android: `appId bundleId? ${more}`, iOS: `bundleId appId? ${more}` });
const AREA = 'elementId|left+top+width+height speed?';
const POINT = 'elementId|x+y';
const UPLOAD = 'remotePath? user? pass? headers? fileFieldName? formFields? method?';
const VIDEO = 'videoType? videoQuality? videoFps? videoFilters? videoScale? pixelFormat? hardwareAcceleration?';

const SCRIPTS = {
  acceptAlert: android('buttonLabel?'),
  activateApp: app(),
  activeAppInfo: ios(),
  alert: ios('action buttonLabel?'),
  backgroundApp: both('seconds?'),
  batteryInfo: both(refused('it has no battery')),
  changePermissions: android('permissions appPackage? action?'),
  clearApp: app(),
  clickGesture: android(POINT),
  deepLink: { Android: 'url package? waitForLaunch?', iOS: 'url bundleId?' },
  deviceInfo: both(),
  deviceScreenInfo: ios(),
  dismissAlert: android('buttonLabel?'),
  doubleClickGesture: android(POINT),
  doubleTap: ios('elementId? x? y?'),
  dragFromToForDuration: ios('duration fromX fromY toX toY elementId?'),
  dragGesture: android('endX endY elementId|startX+startY speed?'),
  enrollBiometric: ios(refused('it has no biometric sensor')),
  execEmuConsoleCommand: android(refused('it is not an emulator')),
  fingerprint: android(refused('it has no fingerprint sensor')),
  flingGesture: android(`direction ${AREA}`),
  getAppStrings: both(refused('a web app has no string resources')),
  getClipboard: { Android: 'contentType?', iOS: 'contentType? mode?' },
  getConnectivity: android('services?'),
  getContexts: both('waitForWebviewMs?'),
  getCurrentActivity: android(),
  getCurrentPackage: android(),
  getDeviceTime: both('format?'),
  getDisplayDensity: android(),
  getGeolocation: android(),
  getPasteboard: ios('encoding?'),
  getPerformanceData: android(refused('it has no performance data')),
  getPerformanceDataTypes: android(),
  getPermission: ios('service bundleId'),
  getPermissions: android('type? appPackage?'),
  getSimulatedLocation: ios(),
  getSystemBars: android(refused('it has no system bars')),
  gsmCall: android(refused('it has no telephone')),
  gsmSignal: android(refused('it has no telephone')),
  gsmVoice: android(refused('it has no telephone')),
  hideKeyboard: both('keys?'),
  installApp: {
    Android: 'appPath app? timeout? allowTestPackages? useSdcard? grantPermissions? replace? checkVersion? noIncremental?',
    iOS: 'app appPath? strategy? timeoutMs? checkVersion?',
  },
  isAppInstalled: app('user?'),
  isBiometricEnrolled: ios(),
  isKeyboardShown: both(),
  isLocked: both(),
  keys: ios('keys elementId?'),
  killApp: ios('bundleId'),
  launchApp: ios('bundleId arguments? environment?'),
  listApps: { Android: 'user?', iOS: 'applicationType? returnAttributes?' },
  localNotifications: both('do data? appId? key? action? text?'),
  lock: both(refused('it has no lock screen')),
  longClickGesture: android(`${POINT} duration?`),
  networkSpeed: android(refused('it has no telephone')),
  openNotifications: android(refused("it shows none: list them with 'mobile: localNotifications'")),
  performEditorAction: android('action'),
  pinch: ios('scale velocity elementId?'),
  pinchCloseGesture: android(`percent ${AREA}`),
  pinchOpenGesture: android(`percent ${AREA}`),
  powerAc: android(refused('it has no battery')),
  powerCapacity: android(refused('it has no battery')),
  pressButton: ios('name durationSeconds?'),
  pressKey: android('keycode metastate? flags? isLongPress? source?'),
  pullFile: both(refused('a web app has no files of its own')),
  pullFolder: both(refused('a web app has no files of its own')),
  pushFile: both(refused('a web app has no files of its own')),
  pushNotification: ios(refused("a web app gets web pushes: use 'mobile: localNotifications', or the fixture device_push")),
  queryAppState: app(),
  removeApp: app('timeout? keepData? skipInstallCheck?'),
  replaceElementValue: android('elementId text'),
  resetGeolocation: android(),
  resetPermission: ios('service'),
  resetSimulatedLocation: ios(),
  scroll: {
    Android: 'strategy selector elementId? maxSwipes?',
    iOS: 'name|direction|predicateString|toVisible distance? elementId?',
  },
  scrollGesture: android(`direction percent ${AREA}`),
  scrollToElement: ios('elementId'),
  selectPickerWheelValue: ios('elementId order offset?'),
  sendBiometricMatch: ios(refused('it has no biometric sensor')),
  sendSms: android(refused('it has no telephone')),
  setClipboard: { Android: 'content contentType? label?', iOS: 'content contentType? label? mode?' },
  setConnectivity: android('wifi|data|airplaneMode'),
  setGeolocation: android('latitude longitude altitude? satellites? speed? bearing? accuracy?'),
  setPasteboard: ios('content encoding?'),
  setPermission: ios('access bundleId'),
  setSimulatedLocation: ios('latitude longitude'),
  shake: ios(refused('it has no motion sensor')),
  shell: android(refused('a browser has no shell')),
  source: ios('format? excludedAttributes?'),
  startActivity: android('intent|component|uri action? package? extras? categories? stop? wait?'),
  startLogsBroadcast: both(refused('logs can only be polled, not broadcast')),
  startMediaProjectionRecording: android(refused('record with start_recording_screen')),
  startScreenRecording: ios(`timeLimit? forceRestart? ${VIDEO} ${UPLOAD}`),
  startXCTestScreenRecording: ios(refused('record with start_recording_screen')),
  statusBar: android(refused('it has no status bar')),
  stopScreenRecording: ios(UPLOAD),
  swipe: ios('direction velocity? elementId?'),
  swipeGesture: android(`direction percent ${AREA}`),
  tap: ios('x y elementId?'),
  tapWithNumberOfTaps: ios('numberOfTaps numberOfTouches elementId?'),
  terminateApp: app('timeout?'),
  toggleGps: android(refused('it has no switch for location services: set a location, or revoke the permission')),
  touchAndHold: ios('duration elementId? x? y?'),
  twoFingerTap: ios('elementId?'),
  type: android('text'),
  unlock: both(refused('it has no lock screen')),
  viewportRect: both(),
  viewportScreenshot: both(),
};

/** The arguments of Android's gestures that are positions or lengths. */
export const LENGTHS = new Set(['x', 'y', 'left', 'top', 'width', 'height', 'startX', 'startY', 'endX', 'endY']);

/** The arguments that are numbers, also in the form of a text. */
const NUMBERS = new Set([
  ...LENGTHS, 'fromX', 'fromY', 'toX', 'toY', 'numberOfTaps', 'numberOfTouches', 'percent', 'distance', 'duration', 'scale',
  'velocity', 'speed', 'latitude', 'longitude', 'altitude', 'maxSwipes',
]);

/** The arguments that are texts. */
const TEXTS = new Set([
  'app', 'appId', 'appPackage', 'appPath', 'bundleId', 'buttonLabel', 'component', 'contentType', 'encoding',
  'excludedAttributes', 'format',
  'intent', 'name', 'package', 'predicateString', 'selector', 'strategy', 'uri', 'url',
]);

/** Scripts that only a cloud of devices executes, by their prefix. */
const CLOUD = /^(lambda-|sauce:|browserstack_executor:)/;
/** Those that set the status or the name of a test there, or annotate it. */
const CLOUD_STATUS = [
  /^lambda-(status|name|build|comment|testCase-start|testCase-end)=/,
  /^lambda-hook:.*"action"\s*:\s*"setTest(Status|Name)"/s,
  /^sauce:(job-(result|name|tags|build|info)|context)=/,
  /^browserstack_executor:.*"action"\s*:\s*"(setSessionStatus|setSessionName|annotate)"/s,
];

/** Whether a script only sets a test's status or name at a cloud; throw an error if it does anything else there. */
export function setsCloudStatus(script) {
  if (!CLOUD.test(script)) return false;
  if (CLOUD_STATUS.some((pattern) => pattern.test(script))) return true;
  const why = "it is for another service. Only scripts that set a test's status or name there are ignored";
  throw new errors.UnknownMethodError(`the local device does not support the script ${script.slice(0, 40)}: ${why}`);
}

export const isMobile = (script) => script.startsWith(PREFIX);
export const shown = (name) => `'${PREFIX} ${name}'`;

/** Return the error for a script that the device cannot execute. */
export function refusal(name, why) {
  return new errors.UnsupportedOperationError(`the local device does not support ${shown(name)}: ${why}. See ${DOCUMENT}`);
}

/**
 * Return the name of a `mobile:` script and its arguments: elements as their IDs, and without those that are null, which
 * stands for an argument that is left out.
 *
 * Throws UnknownMethod for a script that the platform does not have, UnsupportedOperation for one that the device cannot
 * execute, InvalidArgument for arguments that the script does not take.
 */
export function parsed(script, args, platform) {
  const name = script.slice(PREFIX.length).trim();
  const list = argumentsOf(name, platform);
  if (list.why) throw refusal(name, list.why);

  const options = objectIn(name, args);
  check(name, list, options, platform);

  const present = {};
  for (const [key, value] of Object.entries(options)) {
    if (value !== null) present[key] = value[ELEMENT_KEY] ?? value;
  }

  return [name, present];
}

function argumentsOf(name, platform) {
  if (!Object.hasOwn(SCRIPTS, name)) {
    const near = nearest(name, Object.keys(SCRIPTS).filter((other) => platform in SCRIPTS[other]));
    const hint = near ? `did you mean ${shown(near)}? See ${DOCUMENT}` : `see ${DOCUMENT}`;
    throw new errors.UnknownMethodError(`${shown(name)} is not supported by the local device: ${hint}`);
  }

  const script = SCRIPTS[name];
  if (platform in script) return script[platform];

  throw new errors.UnknownMethodError(`${shown(name)} is a script of ${Object.keys(script)[0]}, this is ${platform}`);
}

function objectIn(name, args) {
  const [options = {}, ...more] = Array.isArray(args) ? args : [args];
  if (more.length || typeof options !== 'object' || Array.isArray(options)) {
    throw new errors.InvalidArgumentError(`the arguments of ${shown(name)} must be an object, not ${JSON.stringify(args)}`);
  }

  return options ?? {};
}

function check(name, list, options, platform) {
  const words = list.split(' ').filter(Boolean);
  const names = words.flatMap((word) => word.replace('?', '').split(/[|+]/));
  const unknown = Object.keys(options).find((key) => !names.includes(key));
  if (unknown !== undefined) {
    const near = nearest(unknown, names);
    const all = names.length ? `its arguments are ${quoted(names)}` : 'it has no arguments';
    const hint = near ? `did you mean '${near}'?` : all;
    throw new errors.InvalidArgumentError(`${shown(name)} has no argument '${unknown}': ${hint}`);
  }

  for (const [key, value] of Object.entries(options)) {
    // UiAutomator2 ignores positions and lengths that are texts.
    const mayBeText = platform === 'iOS' || value === null || !LENGTHS.has(key);
    if (NUMBERS.has(key) && !Number.isFinite(mayBeText ? Number(value) : value)) {
      throw new errors.InvalidArgumentError(`'${key}' of ${shown(name)} must be a number, not ${JSON.stringify(value)}`);
    }
    if (value !== null && TEXTS.has(key) && typeof value !== 'string') {
      throw new errors.InvalidArgumentError(`'${key}' of ${shown(name)} must be a text, not ${JSON.stringify(value)}`);
    }
  }

  const isPresent = (key) => (options[key] ?? null) !== null;
  for (const word of words) {
    if (word.endsWith('?')) continue;

    const ways = word.split('|').map((way) => way.split('+'));
    if (ways.some((way) => way.every(isPresent))) continue;

    const missing = ways.length > 1 ? `needs ${ways.map(quoted).join(' or ')}` : `does not work: '${word}' is missing`;
    throw new errors.InvalidArgumentError(`${shown(name)} ${missing}`);
  }
}

function quoted(names) {
  return names.map((name) => `'${name}'`).join(', ');
}

/** Return the name that was probably meant, if there is one. */
function nearest(name, names) {
  const word = name.toLowerCase();
  const distances = names.map((candidate) => {
    const other = candidate.toLowerCase();
    // A part of a name probably means it, however long the rest is.
    return word.length > 2 && other.includes(word) ? 1 : distance(word, other);
  });
  const min = Math.min(...distances);

  return min <= MAX_DISTANCE ? names[distances.indexOf(min)] : null;
}

/** Return the Levenshtein distance of two words. */
function distance(word, other) {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [above, letter] of [...word].entries()) {
    const next = [above + 1];
    for (const [index, sign] of [...other].entries()) {
      next.push(Math.min(next[index] + 1, row[index + 1] + 1, row[index] + (letter === sign ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1);
}
