// What the drivers of phones answer to commands for web pages in the native context.
//
// UiAutomator2 and XCUITest execute none of these there. Some they refuse themselves, others they send on to their
// server on the device, which does not know them either. tests/spec/phones names the source of each answer.

import { errors } from 'appium/driver.js';

const HINT = 'the native context has no web page: switch to the context of a web view first';

/** The driver itself refuses the command. */
const notImplemented = () => new errors.NotImplementedError(`Method is not implemented. Note: ${HINT}`);
/** The driver has no such command. */
const notYet = () => new errors.NotYetImplementedError(`Method has not yet been implemented. Note: ${HINT}`);
/** UiAutomator2 sends it on to its server, which answers with an empty 404. */
const notOnAndroid = () => new errors.UnknownError(`Request failed with status code 404. Note: ${HINT}`);
/** XCUITest sends it on to WebDriverAgent, which has no such endpoint. */
const notOnIos = (command) => new errors.UnknownCommandError(`Unhandled endpoint: ${command}. Note: ${HINT}`);
/** XCUITest sizes windows of Safari only. */
const onlyInSafari = () => {
  const needs = "requires an active automation session (see 'mobile: startAutomationSession')";
  return new errors.NotImplementedError(`Setting the window rect ${needs}. Note: the screen of a device has one size`);
};

const NOT_ON_DEVICE = { Android: notOnAndroid, iOS: notOnIos };
const NOT_ON_ANDROID = { Android: notOnAndroid, iOS: notImplemented };
const NO_SIZE = { Android: notOnAndroid, iOS: onlyInSafari };

/** The answers by Appium's name of the command: a function that returns an error, or a value. */
const ANSWERS = {
  closeWindow: NOT_ON_ANDROID,
  createNewWindow: { Android: notOnAndroid, iOS: notYet },
  deleteCookie: NOT_ON_ANDROID,
  deleteCookies: NOT_ON_ANDROID,
  elementShadowRoot: NOT_ON_DEVICE,
  forward: NOT_ON_DEVICE,
  fullScreenWindow: NO_SIZE,
  getComputedLabel: NOT_ON_DEVICE,
  getComputedRole: NOT_ON_DEVICE,
  getCookie: { Android: notOnAndroid, iOS: notYet },
  getCookies: NOT_ON_ANDROID,
  getCssProperty: NOT_ON_DEVICE,
  getProperty: NOT_ON_DEVICE,
  getUrl: { Android: notYet, iOS: notImplemented },
  getWindowHandle: { Android: notOnAndroid, iOS: '1' },
  getWindowHandles: { Android: notOnAndroid, iOS: ['1'] },
  maximizeWindow: NO_SIZE,
  minimizeWindow: NO_SIZE,
  printPage: NOT_ON_DEVICE,
  refresh: NOT_ON_DEVICE,
  setCookie: NOT_ON_ANDROID,
  setFrame: NOT_ON_DEVICE,
  setWindow: { Android: notOnAndroid, iOS: null },
  setWindowRect: NO_SIZE,
  switchToParentFrame: NOT_ON_DEVICE,
  title: NOT_ON_DEVICE,
};

/** The paths of these commands below the session: none of them may reach the page. */
export const PATHS = [
  ['GET', '/(title|url|window|window/handles|cookie|cookie/.*)'],
  ['GET', '/element/[^/]+/(shadow|computedrole|computedlabel|css/.*|property/.*)'],
  ['POST', '/(refresh|forward|print|frame|frame/parent|cookie)'],
  ['POST', '/(window|window/(new|rect|maximize|minimize|fullscreen))'],
  ['DELETE', '/(window|cookie|cookie/.*)'],
];

/** Whether a command is for web pages only. */
export const isForPages = (command) => Object.hasOwn(ANSWERS, command);

/** Return the answer of a platform's driver in the native context; throw it if it is an error. */
export function answerTo(command, platform) {
  const answer = ANSWERS[command][platform];
  if (typeof answer === 'function') throw answer(command);
  return answer;
}
