// Sends device commands to the service: install, launch, open, terminate, rotate.

import { errors } from 'appium/driver.js';

const FOREGROUND = 4;
const LIMIT_MS = 120_000;

export class Device {
  #url;
  /** The addresses of the apps, until the next installation. */
  #bases = null;
  #afterChange;

  /** `afterChange` is called after each command that may open or close pages. */
  constructor(url, afterChange) {
    this.#url = url;
    this.#afterChange = afterChange;
  }

  /** Send a command; return its result. */
  async #ask(method, path, body) {
    const reply = await this.#reply(method, path, body);
    if (method === 'POST') await this.#afterChange();
    return await reply.json();
  }

  /** Throws UnknownError with the service's message; the URL is a secret. */
  async #reply(method, path, body) {
    let reply;
    try {
      reply = await fetch(`${this.#url}/${path}`, {
        method,
        headers: body ? { 'content-type': 'application/json' } : {},
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(LIMIT_MS),
      });
    } catch (error) {
      throw new errors.UnknownError(`the device did not respond to ${path}: ${error.cause?.code ?? error.name}`);
    }
    if (reply.ok) return reply;
    const { message } = await reply.json().catch(() => ({}));
    throw new errors.UnknownError(message ?? `the device refused ${path}: HTTP ${reply.status}`);
  }

  /** Install an app from a path or a URL; return its `applicationId`, and whether that has cleared its data: `isClear`. */
  async install(app, applicationId) {
    this.#bases = null;
    return (await this.#ask('POST', 'install', { app, ...(applicationId ? { applicationId } : {}) })).installed;
  }

  async launch(applicationId, args = []) {
    await this.#ask('POST', 'launch', { applicationId, arguments: args });
  }

  async openUrl(url, applicationId) {
    await this.#ask('POST', 'open-url', { url, ...(applicationId ? { applicationId } : {}) });
  }

  /** Terminate an app; return whether it was running. */
  async terminate(applicationId) {
    return (await this.#ask('POST', 'terminate', { applicationId })).done;
  }

  /** Remove an app; return whether it was installed. */
  async remove(applicationId) {
    return (await this.#ask('POST', 'remove', { applicationId })).done;
  }

  async clear(applicationId) {
    await this.#ask('POST', 'clear', applicationId ? { applicationId } : {});
  }

  /** Return the states of the installed apps by id, as Appium's numbers. */
  async apps() {
    return (await this.#ask('GET', 'apps')).apps;
  }

  /** Return the address that an app's pages begin with, null if the app is not installed. */
  async base(applicationId) {
    this.#bases ??= (await this.#ask('GET', 'bases')).bases;
    return this.#bases?.[applicationId] ?? null;
  }

  /** Return the id of the installed app in front, if there is one. */
  async front() {
    return Object.entries(await this.apps()).find(([, state]) => state === FOREGROUND)?.[0] ?? null;
  }

  /** Put the app in front in the background. */
  async background() {
    await this.#ask('POST', 'background');
  }

  async foreground() {
    await this.#ask('POST', 'foreground');
  }

  /** Close all pages except the app's. */
  async closeOthers() {
    await this.#ask('POST', 'close-others');
  }

  /** Open an empty page over all others, which remain the app's. */
  async openOverlay() {
    await this.#ask('POST', 'open-overlay');
  }

  async removeOverlay() {
    await this.#ask('POST', 'remove-overlay');
  }

  async orientation() {
    return (await this.#ask('GET', 'orientation')).orientation;
  }

  async rotate(orientation) {
    await this.#ask('POST', 'orientation', { orientation });
  }

  /** Return a screenshot. */
  async picture() {
    return Buffer.from(await (await this.#reply('GET', 'screenshot')).arrayBuffer());
  }

  /** Return how the app in front has crashed, null if it has not. */
  async crash() {
    return (await this.#ask('GET', 'crash')).crash;
  }

  /** Deliver a web push to an app, by default the one in front. */
  async push(data, applicationId) {
    await this.#ask('POST', 'push', { data, ...(applicationId ? { applicationId } : {}) });
  }

  /** Return what is in the list of notifications, and the address of the page in front. */
  async notifications() {
    return (await this.#ask('GET', 'notifications')).notifications;
  }

  /** Tap a notification, or one of its actions, with a text if it takes one. */
  async answerNotification(key, action, text) {
    await this.#ask('POST', 'answer-notification', { key, action, text });
  }

  async dismissNotification(key) {
    await this.#ask('POST', 'dismiss-notification', { key });
  }

  /** Return the app's console: [{ timestamp, level, message }]. */
  async log() {
    return (await this.#ask('GET', 'log')).lines;
  }
}
