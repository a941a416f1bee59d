// The start of chromedriver: fails if the program exits or hangs, which the base class would wait for without a limit.

import { errors } from 'appium/driver.js';

/** It takes one second, and several on a busy machine. Clients wait for a command for two minutes or more. */
const LIMIT_MS = 30_000;
/** How long the end of a killed program may take. */
const END_MS = 2_000;
const FIX = 'Fix: start it in a terminal to see why, or put another one first on PATH';

export class ChromedriverStart {
  #chromedriver = null;
  #fail;
  #failed = new Promise((_, reject) => {
    this.#fail = (reason) => reject(new Error(reason));
  });

  /** Watch an object of the base class that has not started its program yet. */
  watch(chromedriver) {
    this.#chromedriver = chromedriver;
    const { EVENT_CHANGED, EVENT_ERROR, STATE_STOPPED } = chromedriver.constructor;
    chromedriver.on(EVENT_CHANGED, ({ state }) => {
      if (state === STATE_STOPPED) this.#fail(`${ending(chromedriver.proc)} before it accepted commands`);
    });
    // The base class then only requests the end of the program, and forgets it.
    chromedriver.on(EVENT_ERROR, ({ message }) => {
      this.#fail(message);
      this.#end();
    });
  }

  /** Wait for the start. Throws UnknownError, with the program ended, if it fails or takes too long. */
  async finish(starting) {
    const timer = setTimeout(() => this.#fail(`did not accept commands within ${LIMIT_MS / 1000} s`), LIMIT_MS);
    try {
      await Promise.race([starting, this.#failed]);
    } catch (error) {
      const program = this.#chromedriver?.chromedriver ?? '';
      await this.#end();
      throw new errors.UnknownError(`chromedriver did not start: ${program}: ${error.message}. ${FIX}`, error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Kill the program: one that hangs may ignore a request to end. */
  async #end() {
    await this.#chromedriver?.proc?.stop('SIGKILL', END_MS).catch(() => {});
  }
}

function ending(subprocess) {
  const { exitCode, signalCode } = subprocess?.proc ?? {};
  return signalCode ? `was ended by ${signalCode}` : `exited with status ${exitCode}`;
}
