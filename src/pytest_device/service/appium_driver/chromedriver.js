// chromedriver: the program that executes the commands for web pages, with a session of its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { errors, WebDriverProxy } from 'appium/driver.js';

const HOST = '127.0.0.1';
const POLL_MS = 50;
/** It takes one second, and several on a busy machine. Clients wait for a command for two minutes or more. */
const LIMIT_MS = 30_000;
/** How long the program may take to end its session, and then to end itself. */
const END_MS = 2_000;
const FIX = 'Fix: start it in a terminal to see why, or put another one first on PATH';

export class Chromedriver {
  #program;

  constructor(program, proxy) {
    this.#program = program;
    /** Sends it commands. */
    this.proxy = proxy;
  }

  /**
   * Start the program and its session.
   *
   * Throws UnknownError, with the program ended, if it fails, takes too long, or is not needed any more: `isEnded` is aborted.
   */
  static async start(executable, capabilities, log, isEnded) {
    const port = await freePort(); // two programs on one port would stop each other
    const program = spawn(executable, [`--port=${port}`, '--disable-build-check'], { stdio: 'ignore' });
    const chromedriver = new Chromedriver(program, new WebDriverProxy({ server: HOST, port, log }));

    const failure = new AbortController();
    const fail = (reason) => failure.abort(new Error(reason));
    program.once('error', ({ message }) => fail(message));
    program.once('exit', (status, signal) => {
      fail(`${signal ? `was ended by ${signal}` : `exited with status ${status}`} before it accepted commands`);
    });
    const timer = setTimeout(fail, LIMIT_MS, `did not accept commands within ${LIMIT_MS / 1000} s`);
    const signal = AbortSignal.any([failure.signal, isEnded]);

    try {
      await Promise.race([chromedriver.#begin(capabilities, signal), rejection(signal)]);
    } catch (error) {
      await chromedriver.#end('SIGKILL'); // one that hangs may ignore a request to end
      const { message } = signal.reason ?? error;
      throw new errors.UnknownError(`chromedriver did not start: ${executable}: ${message}. ${FIX}`, error);
    } finally {
      clearTimeout(timer);
    }

    return chromedriver;
  }

  /** Whether the program has ended, because it crashed or was killed. */
  get hasEnded() {
    const { pid, exitCode, signalCode } = this.#program;

    return pid === undefined || exitCode !== null || signalCode !== null;
  }

  /** End its session and the program, also one that hangs. */
  async stop() {
    const deletion = this.proxy.command('', 'DELETE').catch(() => {}); // the program has ended already
    const isDeleted = deletion.then(() => true);
    const hangs = !(await Promise.race([isDeleted, pause(END_MS, false, { ref: false })]));
    await this.#end(hangs ? 'SIGKILL' : 'SIGTERM');
  }

  async #begin(capabilities, signal) {
    const status = `http://${HOST}:${this.proxy.port}/status`;
    while (!(await isReady(status, signal))) await pause(POLL_MS, undefined, { signal });

    await this.proxy.command('/session', 'POST', { capabilities: { alwaysMatch: capabilities } });
  }

  async #end(signal) {
    if (this.hasEnded) return;

    const ended = once(this.#program, 'exit', { signal: AbortSignal.timeout(END_MS) });
    this.#program.kill(signal);
    await ended.catch(() => this.#program.kill('SIGKILL'));
  }
}

/** Return a promise that is rejected with the reason of a signal. */
function rejection(signal) {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}

async function isReady(url, signal) {
  try {
    const reply = await fetch(url, { signal });
    return (await reply.json()).value.ready;
  } catch {
    return false; // it does not listen yet
  }
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
