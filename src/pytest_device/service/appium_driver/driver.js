// The Appium driver: executes some commands itself, and forwards the others to chromedriver.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';
import { ChromiumDriver } from 'appium-chromium-driver';
import * as alerts from './alerts.js';
import * as apps from './apps.js';
import * as background from './background.js';
import * as capabilities from './capabilities.js';
import * as contexts from './contexts.js';
import * as crash from './crash.js';
import { Device } from './device.js';
import * as elements from './elements.js';
import * as logs from './logs.js';
import * as mobile from './mobile.js';
import * as recording from './recording.js';
import { STRATEGIES } from './selectors.js';

const HOST = '127.0.0.1';
const REFUSALS = {
  selector: errors.InvalidSelectorError, argument: errors.InvalidArgumentError, state: errors.InvalidElementStateError,
};
const SCRIPT_LIMIT_MS = 60_000;

const PAGE_SCRIPT = ['page-tree.js', 'page-fields.js', 'page-find.js', 'page-answer.js']
  .map((name) => readFileSync(new URL(name, import.meta.url), 'utf8'))
  .concat('return answer(...arguments);')
  .join('\n');

const SESSION = '^/session/[^/]+';
const pairs = (method, paths) => paths.map((path) => [method, new RegExp(`${SESSION}${path}$`)]);

/** The commands executed here in every context; the rest is forwarded to chromedriver. */
const OWN = ['GET', 'POST']
  .flatMap((method) => pairs(method, ['/appium/.*', '/(context|contexts|orientation|rotation|location|timeouts)']))
  .concat(pairs('GET', ['/se/log/types']))
  .concat(pairs('POST', ['/se/log', '/execute/sync', '(/element/[^/]+)?/elements?']));
/** The commands executed here in the native context. */
const OWN_IN_APP = [
  ...OWN,
  ...pairs('GET', [
    '/(source|url|title|window/rect)',
    '/element/[^/]+/(text|name|rect|enabled|selected|displayed|location_in_view|attribute/.*)',
  ]),
  ...pairs('POST', ['/url', '/execute/async', '/element/[^/]+/(click|clear|value)']),
];

export class LocalDriver extends ChromiumDriver {
  static newMethodMap = {
    '/session/:sessionId/se/log': { POST: { command: 'getLog', payloadParams: { required: ['type'] } } },
    '/session/:sessionId/se/log/types': { GET: { command: 'getLogTypes' } },
    '/session/:sessionId/element/:elementId/location_in_view': { GET: { command: 'getLocationInView' } },
    '/session/:sessionId/appium/start_recording_screen': {
      POST: { command: 'startRecordingScreen', payloadParams: { optional: ['options'] } },
    },
    '/session/:sessionId/appium/stop_recording_screen': {
      POST: { command: 'stopRecordingScreen', payloadParams: { optional: ['options'] } },
    },
    '/session/:sessionId/appium/device/open_notifications': { POST: { command: 'openNotifications' } },
    '/session/:sessionId/appium/device/current_package': { GET: { command: 'getCurrentPackage' } },
    '/session/:sessionId/appium/device/current_activity': { GET: { command: 'getCurrentActivity' } },
    '/session/:sessionId/appium/app/background': {
      POST: { command: 'backgroundApp', payloadParams: { optional: ['seconds'] } },
    },
    '/session/:sessionId/appium/device/press_keycode': {
      POST: { command: 'pressKeyCode', payloadParams: { required: ['keycode'], optional: ['metastate', 'flags'] } },
    },
    '/session/:sessionId/appium/device/get_clipboard': {
      POST: { command: 'getClipboard', payloadParams: { optional: ['contentType'] } },
    },
    '/session/:sessionId/appium/device/set_clipboard': {
      POST: { command: 'setClipboard', payloadParams: { required: ['content'], optional: ['contentType', 'label'] } },
    },
  };

  constructor(...args) {
    super(...args);
    // On the instance: the base class sets some of these as fields, which hide methods.
    Object.assign(
      this,
      ...[alerts, apps, background, contexts, elements, logs, mobile, recording].map(({ commands }) => commands),
    );
    this.locatorStrategies = STRATEGIES;
    this.device = new Device(process.env.PYTEST_DEVICE_DEVICE_URL);
    this.application = null;
    this.context = contexts.NATIVE;
    this.recorder = null;
    /** The browser windows of the app in the background and of the launcher, null while the app is in front. */
    this.away = null;
    this.permissions = new Map();
    /** The IDs of the apps, by the locations that they were installed from. */
    this.ids = new Map();
  }

  get platform() {
    return String(this.opts.platformName).toLowerCase() === 'ios' ? 'iOS' : 'Android';
  }

  get inApp() {
    return this.context === contexts.NATIVE;
  }

  getProxyAvoidList() {
    return this.inApp ? OWN_IN_APP : OWN;
  }

  /** Start the session: attach to the browser, then install and launch the app the capabilities name. */
  async createSession(...args) {
    args.slice(0, 3).forEach(capabilities.check);
    await this.device.closeOthers(); // chromedriver attaches to the page that was opened last
    const [sessionId] = await super.createSession(...args);
    try {
      this.heldBefore = await this.device.orientation();
      await apps.prepare.call(this);
    } catch (error) {
      await this.deleteSession(sessionId);
      throw new errors.SessionNotCreatedError(error.message, error);
    }
    this.caps = { ...this.caps, ...(await apps.facts.call(this)) };
    return [sessionId, this.caps];
  }

  async deleteSession(sessionId) {
    this.recorder?.stop();
    if (this._cd && this.application && this.opts.shouldTerminateApp !== false) {
      await this.device.terminate(this.application).catch((error) => this.log.warn(error.message));
    }
    if (this.heldBefore) await hold(this, this.heldBefore).catch((error) => this.log.warn(error.message));
    await super.deleteSession(sessionId);
  }

  async startChromedriverSession() {
    Object.assign(this.opts, {
      executable: process.env.PYTEST_DEVICE_CHROMEDRIVER,
      chromedriverPort: await freePort(), // two sessions on one port would stop each other's chromedriver
      autodownloadEnabled: false,
      disableBuildCheck: true,
    });
    const capabilities = await super.startChromedriverSession();
    crash.explain(this, this.cd.jwproxy);
    return capabilities;
  }

  async getBrowserInfo() {
    return undefined; // the browser is running already: do not start one to get its version
  }

  getSessionCaps() {
    const debuggerAddress = `${HOST}:${process.env.PYTEST_DEVICE_DEBUGGING_PORT}`;
    return {
      browserName: 'chrome',
      pageLoadStrategy: this.opts.pageLoadStrategy ?? 'normal',
      unhandledPromptBehavior: alerts.behavior(this.opts),
      'goog:chromeOptions': { debuggerAddress },
    };
  }

  /** Query the page's scripts; `element` is an ID, or null. Throws an error if they refuse it. */
  async askPage(ask, request = {}, element = null) {
    const target = {
      platform: this.platform, application: this.application ?? '', launcher: background.LAUNCHERS[this.platform],
    };
    const args = [{ ask, target, ...request }, ...(element ? [util.wrapElement(element)] : [])];
    const query = () => this.toBrowser('/execute/sync', 'POST', { script: PAGE_SCRIPT, args });
    // A page that is closed meanwhile does not respond; the next query returns the reason.
    const { value, refused, message } = (await query()) ?? (await query()) ?? {};
    if (refused) throw new REFUSALS[refused](message);
    return value;
  }

  async toBrowser(path, method, body = {}) {
    return await this.proxyCommand(path, method, method === 'GET' ? undefined : body);
  }

  /** Send a command of the Chrome DevTools Protocol. */
  async cdp(cmd, params = {}) {
    return await this.toBrowser('/goog/cdp/execute', 'POST', { cmd, params });
  }

  async implicitWaitW3C(ms) {
    await super.implicitWaitW3C(ms);
    await this.toBrowser('/timeouts', 'POST', { implicit: this.implicitWaitMs });
  }

  async pageLoadTimeoutW3C(ms) {
    await this.toBrowser('/timeouts', 'POST', { pageLoad: this.parseTimeoutArgument(ms) });
  }

  async scriptTimeoutW3C(ms) {
    await this.toBrowser('/timeouts', 'POST', { script: this.parseTimeoutArgument(ms) });
  }

  async getTimeouts() {
    return { ...(await super.getTimeouts()), ...(await this.toBrowser('/timeouts', 'GET')), script: SCRIPT_LIMIT_MS };
  }
}

/** Restore the orientation for the next session on the device. */
async function hold({ device }, orientation) {
  if ((await device.orientation()) !== orientation) await device.rotate(orientation);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, HOST, () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
