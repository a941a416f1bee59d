// Asks the service for what the device does: install, launch, open, terminate, turn.

import { errors } from 'appium/driver.js';

const LIMIT_MS = 120_000;

export class Device {
  #url;

  constructor(url) {
    this.#url = url;
  }

  /** Ask one thing; return its answer. */
  async #ask(method, path, body) {
    return await (await this.#reply(method, path, body)).json();
  }

  /** Throws UnknownError with the service's words; the address is a secret. */
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
      throw new errors.UnknownError(`the device did not answer to ${path}: ${error.cause?.code ?? error.name}`);
    }
    if (reply.ok) return reply;
    const { message } = await reply.json().catch(() => ({}));
    throw new errors.UnknownError(message ?? `the device refused ${path}: HTTP ${reply.status}`);
  }

  /** Install an app from a path or an address; return its id. */
  async install(app, applicationId) {
    return (await this.#ask('POST', 'install', { app, ...(applicationId ? { applicationId } : {}) })).applicationId;
  }

  async launch(applicationId, args = []) {
    await this.#ask('POST', 'launch', { applicationId, arguments: args });
  }

  async openUrl(url, applicationId) {
    await this.#ask('POST', 'open-url', { url, ...(applicationId ? { applicationId } : {}) });
  }

  /** End an app; tell whether it ran. */
  async terminate(applicationId) {
    return (await this.#ask('POST', 'terminate', { applicationId })).done;
  }

  /** Remove an app; tell whether it was there. */
  async remove(applicationId) {
    return (await this.#ask('POST', 'remove', { applicationId })).done;
  }

  async clear(applicationId) {
    await this.#ask('POST', 'clear', applicationId ? { applicationId } : {});
  }

  /** Return the states of the installed apps by their ids, in Appium's numbers. */
  async apps() {
    return (await this.#ask('GET', 'apps')).apps;
  }

  /** Close the pages that were opened beside the app's. */
  async closeOthers() {
    await this.#ask('POST', 'close-others');
  }

  async orientation() {
    return (await this.#ask('GET', 'orientation')).orientation;
  }

  async rotate(orientation) {
    await this.#ask('POST', 'orientation', { orientation });
  }

  /** Return a picture of the screen. */
  async picture() {
    return Buffer.from(await (await this.#reply('GET', 'screenshot')).arrayBuffer());
  }

  /** Return what the app has said on its console: [{ timestamp, level, message }]. */
  async log() {
    return (await this.#ask('GET', 'log')).lines;
  }
}
