// Screen recordings: a few screenshots a second, turned into a movie at the end.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { isJpeg, movieOf } from './movie.js';

const GAP_MS = 250;
const LIMIT_SECONDS = 180;
const MOST_SECONDS = 1800;
const MOST_BYTES = 64 * 1024 * 1024;

export const commands = {
  /** Start a recording; an earlier one is discarded. */
  async startRecordingScreen(options = {}) {
    this.recorder?.stop();
    const seconds = Math.min(Number(options?.timeLimit ?? LIMIT_SECONDS), MOST_SECONDS);
    this.recorder = new Recorder(this.device, this.log);
    this.recorder.start(seconds);
    return '';
  },

  /** Stop the recording; return the movie in Base64, empty if none was started. */
  async stopRecordingScreen(options = {}) {
    if (options?.remotePath) throw new errors.InvalidArgumentError('remotePath: the local device does not upload recordings');
    const { recorder } = this;
    this.recorder = null;
    const frames = (await recorder?.stop()) ?? [];
    return frames.length ? movieOf(frames).toString('base64') : '';
  },
};

class Recorder {
  #device;
  #log;
  #frames = [];
  #ending = new AbortController();
  #running = Promise.resolve();

  constructor(device, log) {
    this.#device = device;
    this.#log = log;
  }

  start(seconds) {
    this.#running = this.#record(Date.now() + seconds * 1000);
  }

  /** Stop; return the frames: [{ jpeg, ms }]. */
  async stop() {
    this.#ending.abort();
    await this.#running;
    return this.#frames;
  }

  async #record(end) {
    let bytes = 0;
    while (!this.#ending.signal.aborted && Date.now() < end && bytes < MOST_BYTES) {
      const from = Date.now();
      const jpeg = await this.#picture();
      if (jpeg) bytes += this.#keep(jpeg);
      await setTimeout(Math.max(GAP_MS - (Date.now() - from), 10), null, { signal: this.#ending.signal }).catch(() => {});
      if (this.#frames.length) this.#frames.at(-1).ms += Date.now() - from;
    }
  }

  /** Return a screenshot, null if there is none. */
  async #picture() {
    try {
      const picture = await this.#device.picture();
      return isJpeg(picture) ? picture : null;
    } catch (error) {
      this.#log.debug(`a frame of the recording is missing: ${error.message}`);
      return null;
    }
  }

  /** Keep a screenshot unless it equals the previous one; return its size in bytes. */
  #keep(jpeg) {
    if (this.#frames.at(-1)?.jpeg.equals(jpeg)) return 0;
    this.#frames.push({ jpeg, ms: 0 });
    return jpeg.length;
  }
}
