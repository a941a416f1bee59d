// The Appium driver: executes the commands of the native context itself, and forwards those of web pages to chromedriver.

import { BaseDriver, errors } from 'appium/driver.js';
import * as actions from './actions.js';
import * as alerts from './alerts.js';
import * as apps from './apps.js';
import * as background from './background.js';
import { Browser } from './browser.js';
import * as browserCommands from './browser-commands.js';
import * as capabilities from './capabilities.js';
import { constraintsOf } from './capability-types.js';
import { Chromedriver } from './chromedriver.js';
import * as contexts from './contexts.js';
import * as crash from './crash.js';
import * as density from './density.js';
import { Device } from './device.js';
import * as dialogs from './dialogs.js';
import * as elements from './elements.js';
import { FoundAgain } from './found-again.js';
import * as logs from './logs.js';
import * as mobile from './mobile.js';
import { DialogIsOpen } from './page.js';
import * as permissions from './permissions.js';
import * as recording from './recording.js';
import { STRATEGIES } from './selectors.js';

const HOST = '127.0.0.1';
const ONLY_IN_PAGES = 'the native context has no web page: set it in the context of a web view';
/** The defaults of the WebDriver standard. */
const SCRIPT_LIMIT_MS = 30_000;
const PAGE_LOAD_LIMIT_MS = 300_000;

/** The commands executed here in every context; the rest is forwarded to chromedriver. */
const OWN = routes([
  ['GET', '/appium/.*'],
  ['POST', '/appium/.*'],
  ['GET', '/(context|contexts|orientation|rotation|location|timeouts)'],
  ['POST', '/(context|contexts|orientation|rotation|location|timeouts)'],
  ['GET', ''],
  // chromedriver would answer with the browser's window, which does not rotate with the screen.
  ['GET', '/window/rect'],
  ['GET', '/se/log/types'],
  ['POST', '/se/log'],
  ['POST', '/execute/sync'],
  ['POST', '(/element/[^/]+)?/elements?'],
]);
/** The commands executed here in the native context. */
const OWN_IN_APP = [
  ...OWN,
  ...routes([
    ['GET', '/(source|screenshot|alert/text)'],
    ['GET', '/element/[^/]+/(text|name|rect|enabled|selected|displayed|location_in_view|screenshot|attribute/.*)'],
    ['GET', '/element/active'],
    ['POST', '/(url|back|actions|execute/async|goog/cdp/execute)'],
    ['POST', '/alert/(text|accept|dismiss)'],
    ['POST', '/element/[^/]+/(click|clear|value)'],
    ['DELETE', '/actions'],
    ...browserCommands.PATHS,
  ]),
];

/** The commands of UiAutomator2's endpoints that XCUITest does not have, by Appium's names. */
const ONLY_ON_ANDROID = new Set(['getCurrentActivity', 'getCurrentPackage', 'openNotifications', 'pressKeyCode']);

/** Return commands in the form of the base class; the paths are those below a session. */
function routes(paths) {
  return paths.map(([method, path]) => [method, new RegExp(`^/session/[^/]+${path}$`)]);
}

/** The drivers of this server's device, oldest first. The newest one answers dialogs for which its capabilities say how. */
const drivers = [];
/** What the device shows over the app. Shared, as `drivers` is: a server has one device, which all of its drivers control. */
const overlay = new dialogs.Overlay();

export class LocalDriver extends BaseDriver {
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
    '/session/:sessionId/appium/execute_driver': {
      POST: { command: 'executeDriverScript', payloadParams: { required: ['script'], optional: ['type', 'timeout'] } },
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
    for (const module of [actions, alerts, apps, background, contexts, elements, logs, mobile, recording]) {
      Object.assign(this, module.commands);
    }
    // After them: it replaces two.
    Object.assign(this, density.translated(this));

    this.locatorStrategies = STRATEGIES;
    this.proxyReqRes = async (...request) => await (await this.chromedriver()).proxy.proxyReqRes(...request);
    this.device = new Device(process.env.PYTEST_DEVICE_DEVICE_URL, async () => await this.browser?.sync());
    /** The connection to the browser. */
    this.browser = null;
    /** The page that the last command used. */
    this.shown = null;
    this.overlay = overlay;
    /** The start of chromedriver, null until a web context needs it. */
    this.starting = null;
    /** Aborted at the end of the session: a start of chromedriver is not waited for. */
    this.end = new AbortController();
    this.pageLoadMs = PAGE_LOAD_LIMIT_MS;
    this.scriptMs = SCRIPT_LIMIT_MS;
    this.foundAgain = new FoundAgain();
    /** The ID of the session's app, null without one. */
    this.application = null;
    /** Whether the client has sent a command. */
    this.isInUse = false;
    /** Whether the installation of the app has just cleared its data. */
    this.isClear = false;
    this.context = contexts.NATIVE;
    this.recorder = null;
    /** The browser windows of the app in the background and of the launcher, null while the app is in front. */
    this.away = null;
    /** What was decided about permissions: granted, denied or prompt, by the browser's names. */
    this.permissions = new Map();
    /** The IDs of the apps, by the locations that they were installed from. */
    this.ids = new Map();
  }

  get platform() {
    return String(this.opts.platformName).toLowerCase() === 'ios' ? 'iOS' : 'Android';
  }

  /** Whether this driver decides about dialogs: else each driver of the device would ask, or answer. */
  get isNewest() {
    return drivers.at(-1) === this;
  }

  get inApp() {
    return this.context === contexts.NATIVE;
  }

  getProxyAvoidList() {
    return this.inApp ? OWN_IN_APP : OWN;
  }

  proxyActive() {
    return this.browser !== null;
  }

  canProxy() {
    return true;
  }

  /** Start the session: connect to the browser, then install and launch the app the capabilities name. */
  async createSession(...args) {
    // Appium passes the capabilities up to three times, since older protocols had other ones.
    const requests = args.slice(0, 3);
    for (const request of requests) capabilities.check(request);
    this.desiredCapConstraints = constraintsOf(requests.some(isForIos) ? 'iOS' : 'Android');

    dialogs.erase(this);
    await overlay.drawing;
    await this.device.closeOthers(); // the app is on the page that was opened first

    const [sessionId] = await super.createSession(...args);
    try {
      await this.#connect();
      this.orientationBefore = await this.device.orientation();
      await apps.prepare.call(this);
      this.caps = { ...this.caps, ...(await apps.facts.call(this)) };
    } catch (error) {
      await this.deleteSession(sessionId);
      throw new errors.SessionNotCreatedError(error.message, error);
    }

    return [sessionId, this.caps];
  }

  /** Execute a command of a client; refuse those that the platform's driver does not have in this context. */
  async executeCommand(command, ...args) {
    this.isInUse = true;
    if (this.platform === 'iOS' && ONLY_ON_ANDROID.has(command)) {
      throw new errors.UnknownCommandError(`${command} is a command of Android, this is iOS`);
    }
    if (!this.inApp || !browserCommands.isForPages(command)) return await super.executeCommand(command, ...args);

    // As the base class does for its commands.
    await this.clearNewCommandTimeout();
    await this.startNewCommandTimeout();
    return browserCommands.answerTo(command, this.platform);
  }

  /** End the session: the app is terminated, the screen is as before, and the browser goes on running. */
  async deleteSession(sessionId) {
    const warn = (error) => this.log.warn(error.message);
    this.recorder?.stop().catch(warn); // not awaited: nobody reads the video
    if (this.browser && this.application && this.opts.shouldTerminateApp !== false) {
      await this.device.terminate(this.application).catch(warn);
    }
    if (this.orientationBefore) await rotateBack(this.device, this.orientationBefore).catch(warn);
    await dialogs.leave(this);

    await super.deleteSession(sessionId);
    this.end.abort(new Error('the session has ended'));
    const chromedriver = await this.starting?.catch(() => null);
    await chromedriver?.stop();
    this.starting = null;
    await this.browser?.close();
    this.browser = null;
    if (drivers.includes(this)) drivers.splice(drivers.indexOf(this), 1);
  }

  /** Connect to the browser; chromedriver starts when it is needed. */
  async #connect() {
    this.browser = await Browser.connect(process.env.PYTEST_DEVICE_DEBUGGING_PORT, {
      limits: () => ({ pageLoad: this.pageLoadMs, strategy: this.opts.pageLoadStrategy ?? 'normal' }),
      onDialog: (page) => {
        dialogs.onDialog(this, page);
        if (this.isNewest) alerts.onDialog(this, page);
      },
      onDialogClosed: (page) => dialogs.onDialogClosed(this, page),
      onAnswer: (payload) => dialogs.onAnswer(this, payload),
      onQuestion: (page, question) => {
        if (this.isNewest) permissions.onQuestion(this, page, question);
      },
      onLeft: (page) => dialogs.forget(this, page),
    });
    drivers.push(this);
  }

  /** Return chromedriver, which runs from its first use until the end of the session; one that has ended starts again. */
  async chromedriver() {
    const { starting } = this;
    const earlier = await starting?.catch(() => null);
    // The browser is a process of its own: the app is as it was, and a new chromedriver sees it. Another command may have
    // started that already.
    if (earlier?.hasEnded && this.starting === starting) this.starting = null;

    this.starting ??= this.#startChromedriver();
    try {
      return await this.starting;
    } catch (error) {
      this.starting = null; // the next command tries again
      throw error;
    }
  }

  async #startChromedriver() {
    const requested = {
      browserName: 'chrome',
      pageLoadStrategy: this.opts.pageLoadStrategy ?? 'normal',
      unhandledPromptBehavior: alerts.behavior(this),
      timeouts: this.#timeouts,
      'goog:chromeOptions': { debuggerAddress: `${HOST}:${process.env.PYTEST_DEVICE_DEBUGGING_PORT}` },
    };
    const executable = process.env.PYTEST_DEVICE_CHROMEDRIVER;
    const chromedriver = await Chromedriver.start(executable, requested, this.log, this.end.signal);
    crash.explain(this, chromedriver.proxy);

    return chromedriver;
  }

  /** Return the page on the screen. Throws UnknownError while the app that was there has crashed. */
  async page() {
    await overlay.drawing;
    if (this.inApp) await dialogs.draw(this);

    const page = await this.browser.front();
    const isLost = page !== this.shown && this.shown?.isGone;
    if (page.hasCrashed || (isLost && (await this.device.crash()))) throw crash.crashed(this);

    this.shown = page;
    page.report();

    return page;
  }

  /** Do something with the page on the screen; explain an error because of its end. */
  async onPage(work) {
    return await crash.explained(this, async () => await work(await this.page()));
  }

  /** Query the scripts of the page that finds see; `element` is an ID, or null. Throws an error if they refuse it. */
  async askPage(ask, request = {}, element = null) {
    const target = await this.#target();
    if (element !== null) {
      await this.page();
      dialogs.check(overlay.view, element);
    }

    const query = (current) => this.onPage((front) => {
      const page = dialogs.isPassed(this) ? overlay.view.page : front;
      return page.query({ ask, target, ...request }, current);
    });
    if (element !== null) return await this.foundAgain.use(element, query);

    try {
      return await query(null);
    } catch (error) {
      // The page of a dialog closes once that is answered, here or by another driver: the app is behind it.
      const hasClosed = error instanceof errors.NoSuchWindowError;
      // A dialog that opens during the query is a view like others, as it is for a query that comes after it.
      const hasOpened = error instanceof DialogIsOpen;
      if (!hasClosed && !hasOpened) throw error;

      return await query(null);
    }
  }

  /** Query the scripts of the page on the screen, even if finds see the app behind it. */
  async askScreen(ask, request = {}) {
    const target = await this.#target();

    return await this.onPage((page) => page.query({ ask, target, ...request }));
  }

  /** Return what the page scripts must know of the device: the platform, the app and its address, and the density. */
  async #target() {
    const { platform, application } = this;

    return {
      platform,
      application: application ?? '',
      base: application && (await this.device.base(application)),
      scale: density.scaleOf(this),
      launcher: background.LAUNCHERS[platform],
      browser: background.BROWSERS[platform],
    };
  }

  /** Send a command to chromedriver. */
  async toBrowser(path, method, body = {}) {
    const { proxy } = await this.chromedriver();

    return await proxy.command(path, method, method === 'GET' ? undefined : body);
  }

  /** Send a command of the Chrome DevTools Protocol to the page on the screen. */
  async cdp(cmd, params = {}) {
    return await this.onPage((page) => page.send(cmd, params));
  }

  async executeCdp(cmd, params = {}) {
    // The browser would close the connection.
    if (typeof cmd !== 'string' || params === null || typeof params !== 'object' || Array.isArray(params)) {
      throw new errors.InvalidArgumentError('cmd must be the name of a command, and params an object');
    }

    return await this.cdp(cmd, params);
  }

  async updateSettings(settings) {
    try {
      density.check(settings);
    } catch (error) {
      if (this.isInUse) throw error;

      // Appium applies the settings of the capabilities to the session that has started. Nobody would end it: its client gets
      // this error, and at its time limit it would terminate the app of the next one.
      await this.deleteSession(this.sessionId);
      throw new errors.SessionNotCreatedError(error.message, error);
    }

    await super.updateSettings(settings);
  }

  async implicitWaitW3C(ms) {
    await super.implicitWaitW3C(ms);
    await this.#limit({ implicit: this.implicitWaitMs });
  }

  async pageLoadTimeoutW3C(ms) {
    this.#checkTimeout('pageLoad');
    this.pageLoadMs = this.parseTimeoutArgument(ms);
    await this.#limit({ pageLoad: this.pageLoadMs });
  }

  async scriptTimeoutW3C(ms) {
    this.#checkTimeout('script');
    this.scriptMs = this.parseTimeoutArgument(ms);
    await this.#limit({ script: this.scriptMs });
  }

  /** Throw NotImplemented for a timeout that UiAutomator2 does not have in the native context. */
  #checkTimeout(name) {
    if (!this.inApp || this.platform === 'iOS') return;

    throw new errors.NotImplementedError(`Not implemented yet for ${name}. Note: ${ONLY_IN_PAGES}`);
  }

  /** Return the timeouts; in the native context, the drivers of phones answer with two that they have themselves. */
  async getTimeouts() {
    return this.inApp ? await super.getTimeouts() : this.#timeouts;
  }

  get #timeouts() {
    return { implicit: this.implicitWaitMs, pageLoad: this.pageLoadMs, script: this.scriptMs };
  }

  /** Tell chromedriver if it runs already: it gets all limits when it starts. */
  async #limit(timeouts) {
    if (this.starting) await this.toBrowser('/timeouts', 'POST', timeouts);
  }
}

/** Whether a request for a session is one for iOS. */
function isForIos(request) {
  const parts = [request?.alwaysMatch, ...(request?.firstMatch ?? [])];

  return parts.some((part) => String(part?.platformName).toLowerCase() === 'ios');
}

/** Restore the orientation for the next session on the device. */
async function rotateBack(device, orientation) {
  if ((await device.orientation()) !== orientation) await device.rotate(orientation);
}
