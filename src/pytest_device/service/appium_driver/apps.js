// The app under test: its capabilities, installation, launch, deep links, and device commands.

import { errors } from 'appium/driver.js';
import { activityOf } from './activities.js';
import { follow } from './background.js';
import { densityOf, scaleOf, toClient } from './density.js';

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
  for (const other of listOf(opts.otherApps)) await install(this, other);
  if (opts.orientation) await this.device.rotate(opts.orientation.toUpperCase());
  if (this.application) await start(this);
  else if (opts.browserName) await browse(this);
  if (opts.autoGrantPermissions) await grant(this);
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

  async setGeoLocation({ latitude, longitude, altitude = 0 }) {
    this.location = { latitude: Number(latitude), longitude: Number(longitude), altitude: Number(altitude) };
    await this.cdp('Emulation.setGeolocationOverride', { ...this.location, accuracy: 1 });
    return this.location;
  },

  /** Set a permission of the page in front: granted, denied or prompt. */
  async allow(name, state) {
    await this.browser.send('Browser.setPermission', { permission: { name }, setting: state });
    this.permissions.set(name, state);
  },
};

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

async function grant(driver) {
  for (const name of GRANTED) await driver.allow(name, 'granted');
}

/** Set the requested language, region and time zone. Throws InvalidArgument for a language that does not exist. */
async function speak(driver) {
  const { timeZone } = driver.opts;
  if (timeZone) await driver.cdp('Emulation.setTimezoneOverride', { timezoneId: timeZone });

  const language = languageOf(driver.opts);
  if (language === null) return;

  const { userAgent } = await driver.askPage('screen');
  await driver.cdp('Emulation.setLocaleOverride', { locale: language });
  await driver.cdp('Emulation.setUserAgentOverride', { userAgent, acceptLanguage: language });
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
  if (Array.isArray(optionalIntentArguments)) return optionalIntentArguments.map(String);
  const parts = String(optionalIntentArguments ?? '').match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];

  return parts.map((part) => part.replace(/"([^"]*)"|'([^']*)'/g, (_, inDouble, inSingle) => inDouble ?? inSingle));
}

function processArguments(caps) {
  const capability = caps.processArguments;
  const value = typeof capability === 'string' ? JSON.parse(capability) : capability;
  const args = value?.args ?? (Array.isArray(value) ? value : []);

  return listOf(args).map(String);
}

function listOf(value) {
  if (typeof value !== 'string') return value ?? [];

  return value.startsWith('[') ? JSON.parse(value) : [value];
}

function versionOf(userAgent, system) {
  if (system) return system.replace(/(\.0)+$/, '');
  const [, android, ios] = /Android (\d+(?:\.\d+)*)|OS (\d+(?:_\d+)*) like Mac/.exec(userAgent) ?? [];
  return android ?? ios?.replaceAll('_', '.') ?? '';
}

function timeIn(format, local, offset) {
  const two = (number, width = 2) => String(Math.abs(number)).padStart(width, '0');
  const zone = `${offset < 0 ? '-' : '+'}${two(Math.trunc(offset / 60))}:${two(offset % 60)}`;
  const parts = {
    YYYY: two(local.getUTCFullYear(), 4), MM: two(local.getUTCMonth() + 1), DD: two(local.getUTCDate()),
    HH: two(local.getUTCHours()), mm: two(local.getUTCMinutes()), ss: two(local.getUTCSeconds()),
    SSS: two(local.getUTCMilliseconds(), 3), ZZ: zone.replace(':', ''), Z: zone,
  };
  return format.replace(/YYYY|MM|DD|HH|mm|SSS|ss|ZZ|Z/g, (part) => parts[part]);
}

