// The app under test: its capabilities, installation, launch, deep links, and device commands.

import { errors } from 'appium/driver.js';
import { activityOf } from './activities.js';
import { follow } from './background.js';
import { densityOf, scaleOf, toClient } from './density.js';
import { permit } from './mobile.js';

/** The rotations of a screen around its z axis, in degrees. */
const ROTATIONS = [0, 90, 180, 270];
const GRANTED = ['geolocation', 'notifications', 'camera', 'microphone', 'clipboard-read', 'clipboard-write'];

/** Prepare the device as the session's capabilities require. */
export async function prepare() {
  const { opts } = this;
  await speak(this);
  const named = this.platform === 'iOS' ? opts.bundleId : opts.appPackage; // each driver ignores the other's
  if (opts.app) {
    if (opts.fullReset && named) await this.device.remove(named);
    const { applicationId, isClear } = await install(this, String(opts.app), named);
    this.application = applicationId;
    this.isClear = isClear;
  } else if (named) {
    this.application = await installed(this, named);
  }
  for (const other of listOf(opts.otherApps, 'otherApps')) await install(this, other);
  if (opts.orientation) await this.device.rotate(opts.orientation.toUpperCase());
  if (this.application) await start(this);
  else if (opts.browserName) await browse(this);
  await grant(this);
}

/** Return details of the device and the app for the session's capabilities. */
export async function facts() {
  const { width, height, userAgent, system } = await this.askPage('screen');
  const screen = toClient(this, { width, height });
  const id = this.application;
  const udid = this.opts.udid ?? process.env.PYTEST_DEVICE_UDID;
  return {
    platformVersion: this.opts.platformVersion ?? versionOf(userAgent, system),
    deviceName: this.opts.deviceName ?? process.env.PYTEST_DEVICE_DEVICE_NAME ?? 'Chromium',
    ...(udid ? { udid, deviceUDID: udid } : {}),
    deviceScreenSize: `${screen.width}x${screen.height}`,
    deviceScreenDensity: densityOf(this),
    pixelRatio: scaleOf(this),
    statBarHeight: 0,
    viewportRect: { left: 0, top: 0, ...screen },
    ...(id ? { [this.platform === 'iOS' ? 'bundleId' : 'appPackage']: id } : {}),
    ...(id && this.platform === 'Android' ? { appActivity: activityOf(this, id) } : {}),
  };
}

export const commands = {
  async installApp(app) {
    if (typeof app !== 'string' || !app) throw new errors.InvalidArgumentError('the app to install must be a path or a URL');

    await install(this, app);
  },

  /** Bring an app to the front, or start it if it is not running. */
  async activateApp(id) {
    await installed(this, id);
    await this.device.launch(id);
    await show(this, id);
  },

  async launchApp(id, args = []) {
    await installed(this, id);
    if (args.length) await this.device.terminate(id);
    await this.device.launch(id, args);
    await show(this, id);
  },

  async terminateApp(id) {
    const wasRunning = await this.device.terminate(id);
    await follow(this);
    return wasRunning;
  },

  async removeApp(id) {
    const wasInstalled = await this.device.remove(id);
    await follow(this);
    return wasInstalled;
  },

  async clearApp(id) {
    await clear(this, await installed(this, id));
    await follow(this);
  },

  async isAppInstalled(id) {
    return id in (await this.device.apps());
  },

  async queryAppState(id) {
    return (await this.device.apps())[id] ?? 0;
  },

  async getCurrentActivity() {
    return activityOf(this, await this.getCurrentPackage());
  },

  /** Open a deep link or a web URL. */
  async deepLink(url, id) {
    await this.device.openUrl(url, id);
    await show(this, id ?? this.application);
  },

  async setUrl(url) {
    await this.deepLink(url);
  },

  async getOrientation() {
    return await this.device.orientation();
  },

  async setOrientation(orientation) {
    const name = String(orientation).toUpperCase();
    if (!['PORTRAIT', 'LANDSCAPE'].includes(name)) {
      throw new errors.InvalidArgumentError(`orientation must be PORTRAIT or LANDSCAPE, not ${orientation}`);
    }

    await this.device.rotate(name);
  },

  async getRotation() {
    return { x: 0, y: 0, z: (await this.device.orientation()) === 'PORTRAIT' ? 0 : 90 };
  },

  async setRotation(x, y, z) {
    if (x !== 0 || y !== 0 || !ROTATIONS.includes(z)) {
      const expected = `x and y must be 0, and z one of ${ROTATIONS.join(', ')}`;
      throw new errors.InvalidArgumentError(`Unable to Rotate Device. Note: ${expected}, not ${JSON.stringify({ x, y, z })}`);
    }

    await this.device.rotate(z % 180 === 0 ? 'PORTRAIT' : 'LANDSCAPE');
  },

  async getDeviceTime(format = 'YYYY-MM-DDTHH:mm:ssZ') {
    const { epoch, offset } = await this.askPage('clock');
    return timeIn(format, new Date(epoch + offset * 60_000), offset);
  },

  async getGeoLocation() {
    if (!this.location) throw new errors.UnknownError('no location is set: set one first');
    return this.location;
  },

  async setGeoLocation(location) {
    const { latitude, longitude, altitude = 0 } = location ?? {};
    this.location = {
      latitude: degrees('latitude', latitude, 90),
      longitude: degrees('longitude', longitude, 180),
      altitude: Number(altitude) || 0,
    };
    await this.cdp('Emulation.setGeolocationOverride', { ...this.location, accuracy: 1 });
    return this.location;
  },

  async resetGeoLocation() {
    this.location = null;
    await this.cdp('Emulation.clearGeolocationOverride');
  },

  /** Set a permission of the page in front: granted, denied or prompt. */
  async allow(name, state) {
    await this.browser.send('Browser.setPermission', { permission: { name }, setting: state });
    this.permissions.set(name, state);
  },
};

/** Return a coordinate of a place. Throws InvalidArgument for one that no place has. */
function degrees(name, value, max) {
  const number = value === null || value === '' ? NaN : Number(value);
  if (Math.abs(number) <= max) return number;

  throw new errors.InvalidArgumentError(`${name} must be a number from -${max} to ${max}, not ${value}`);
}

async function installed(driver, id) {
  const apps = Object.keys(await driver.device.apps());
  if (apps.includes(id)) return id;
  const there = apps.join(', ') || 'none';
  throw new errors.UnknownError(`the app ${id} is not installed on this device; installed: ${there}. Give appium:app`);
}

/** Install an app; one from the same location keeps its previous ID. Return its ID, and whether its data was cleared. */
async function install(driver, app, named) {
  const place = app.replace(/^file:\/\//, '').replace(/\/+$/, '');
  const installed = await driver.device.install(app, named ?? driver.ids.get(place));
  driver.ids.set(place, installed.applicationId);
  return installed;
}

/** Continue with an app that was brought to the front. */
async function show(driver, id) {
  driver.application = id;
  await follow(driver);
}

async function start(driver) {
  const { opts, application } = driver;
  const android = driver.platform === 'Android';
  const keep = opts.noReset || (!android && !opts.app);
  if (!keep) {
    if (driver.isClear) await resetPermissions(driver);
    else await clear(driver, application);
  }
  if (opts.autoLaunch === false) return;
  const args = android ? intentArguments(opts) : processArguments(opts);
  if (keep && (args.length || opts.forceAppLaunch)) await driver.device.terminate(application);
  await driver.page(); // the app may ask for a permission at once: the page's scripts must be there before
  await driver.device.launch(application, args);
  if (opts.autoWebview) await driver.setContext('WEBVIEW');
}

async function browse(driver) {
  if (driver.opts.initialUrl) await driver.device.openUrl(driver.opts.initialUrl);
  await driver.setContext('CHROMIUM');
}

/** Clear the data of an app: with it go the permissions that it was given. */
async function clear(driver, id) {
  await driver.device.clear(id);
  await resetPermissions(driver);
}

async function resetPermissions(driver) {
  await driver.browser.send('Browser.resetPermissions');
  driver.permissions.clear();
}

/** Grant all permissions of an app on Android; on iOS set those that the capability `permissions` names for it. */
async function grant(driver) {
  const { autoGrantPermissions, permissions = '{}' } = driver.opts;
  if (driver.platform === 'iOS') {
    await permit(driver, parsed('permissions', permissions)?.[driver.application] ?? {});
    return;
  }

  if (!autoGrantPermissions) return;
  for (const name of GRANTED) await driver.allow(name, 'granted');
}

/** Set the requested language, region and time zone. Throws InvalidArgument for a language that does not exist. */
async function speak(driver) {
  const zone = driver.platform === 'iOS' ? 'appTimeZone' : 'timeZone';
  if (driver.opts[zone]) await setTimeZone(driver, zone, driver.opts[zone]);

  const language = languageOf(driver.opts);
  if (language === null) return;

  const { userAgent } = await driver.askPage('screen');
  await driver.cdp('Emulation.setLocaleOverride', { locale: language });
  await driver.cdp('Emulation.setUserAgentOverride', { userAgent, acceptLanguage: language });
}

async function setTimeZone(driver, capability, name) {
  try {
    Intl.DateTimeFormat(undefined, { timeZone: name });
  } catch {
    throw new errors.InvalidArgumentError(`${capability} must be the name of a time zone, such as Europe/Vienna, not ${name}`);
  }

  await driver.cdp('Emulation.setTimezoneOverride', { timezoneId: name });
}

/**
 * Return the language of the page, such as de-CH, null for the browser's own.
 *
 * On Android, the locale is a region (CH), on iOS a language with a region (de_CH), of which only the region counts if
 * there is a language, too: an iPhone may have another language than its region.
 */
function languageOf({ language, locale, localeScript }) {
  const tag = (name) => String(name).replace(/@.*$/, '').replaceAll('_', '-');
  try {
    if (language && locale) {
      const region = /[-_]/.test(locale) ? new Intl.Locale(tag(locale)).region : locale;
      return new Intl.Locale(tag(language), { script: localeScript, region }).toString();
    }
    if (language || locale) return new Intl.Locale(tag(language ?? locale)).toString();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new errors.InvalidArgumentError(`language ${language} and locale ${locale} are no language: write de and CH, or de_CH`);
  }

  return null;
}

/** Split `--es name value` as a shell does. */
function intentArguments({ optionalIntentArguments }) {
  const parts = String(optionalIntentArguments ?? '').match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];

  return parts.map((part) => part.replace(/"([^"]*)"|'([^']*)'/g, (_, inDouble, inSingle) => inDouble ?? inSingle));
}

function processArguments(caps) {
  const capability = caps.processArguments;
  const value = typeof capability === 'string' ? parsed('processArguments', capability) : capability;
  const args = value?.args ?? (Array.isArray(value) ? value : []);

  return listOf(args, 'processArguments').map(String);
}

function listOf(value, capability) {
  if (typeof value !== 'string') return value ?? [];

  return value.startsWith('[') ? parsed(capability, value) : [value];
}

/** Return the value of a capability that is written as JSON. Throws InvalidArgument. */
function parsed(capability, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new errors.InvalidArgumentError(`${capability} must be JSON, not ${text}: ${error.message}`, error);
  }
}

function versionOf(userAgent, system) {
  if (system) return system.replace(/(\.0)+$/, '');
  const [, android, ios] = /Android (\d+(?:\.\d+)*)|OS (\d+(?:_\d+)*) like Mac/.exec(userAgent) ?? [];
  return android ?? ios?.replaceAll('_', '.') ?? '';
}

/** The parts of a time by their tokens in a format of Moment.js, which the drivers of phones use; texts are in brackets. */
const TIME_TOKENS = /\[([^\]]*)\]|YYYY|YY|Q|M{1,4}|Do|D{1,4}|d{1,4}|E|HH?|hh?|kk?|mm?|ss?|S{1,3}|A|a|ZZ?|X|x/g;

/** Write a time, given as if it were UTC, with its offset from UTC in minutes. */
function timeIn(format, local, offset) {
  const digits = (number, width = 2) => String(Math.abs(number)).padStart(width, '0');
  const named = (options) => local.toLocaleString('en-US', { ...options, timeZone: 'UTC' });

  const [year, month, day] = [local.getUTCFullYear(), local.getUTCMonth() + 1, local.getUTCDate()];
  const [weekday, weekdayName] = [local.getUTCDay(), named({ weekday: 'long' })];
  const dayOfYear = Math.round((Date.UTC(year, month - 1, day) - Date.UTC(year, 0, 0)) / 86_400_000);
  const [hour, minute, second] = [local.getUTCHours(), local.getUTCMinutes(), local.getUTCSeconds()];
  const milliseconds = digits(local.getUTCMilliseconds(), 3);
  const half = hour < 12 ? 'AM' : 'PM';
  const hourOfHalf = hour % 12 || 12;
  const zone = `${offset < 0 ? '-' : '+'}${digits(Math.trunc(offset / 60))}:${digits(offset % 60)}`;
  const epoch = local.getTime() - offset * 60_000;

  const parts = {
    YYYY: digits(year, 4), YY: digits(year % 100), Q: Math.ceil(month / 3),
    MMMM: named({ month: 'long' }), MMM: named({ month: 'short' }), MM: digits(month), M: month,
    DDDD: digits(dayOfYear, 3), DDD: dayOfYear, DD: digits(day), D: day, Do: ordinal(day),
    dddd: weekdayName, ddd: weekdayName.slice(0, 3), dd: weekdayName.slice(0, 2), d: weekday, E: weekday || 7,
    HH: digits(hour), H: hour, hh: digits(hourOfHalf), h: hourOfHalf, kk: digits(hour || 24), k: hour || 24,
    mm: digits(minute), m: minute, ss: digits(second), s: second,
    SSS: milliseconds, SS: milliseconds.slice(0, 2), S: milliseconds.slice(0, 1),
    A: half, a: half.toLowerCase(), ZZ: zone.replace(':', ''), Z: zone, X: Math.floor(epoch / 1000), x: epoch,
  };
  return format.replace(TIME_TOKENS, (token, text) => text ?? parts[token]);
}

function ordinal(number) {
  const isTeen = Math.floor(number / 10) === 1;
  const ending = (!isTeen && { 1: 'st', 2: 'nd', 3: 'rd' }[number % 10]) || 'th';

  return `${number}${ending}`;
}
