// Screen recordings: a few frames a second, turned into a movie at the end.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { isJpeg, movieOf } from './movie.js';

const GAP_MS = 250;
const LIMIT_SECONDS = 180;
const MAX_SECONDS = 1800;
const MAX_BYTES = 64 * 1024 * 1024;

export const commands = {
  /** Start a recording; an earlier one is discarded. */
  async startRecordingScreen(options = {}) {
    this.recorder?.stop();
    const seconds = Math.min(Number(options?.timeLimit ?? LIMIT_SECONDS), MAX_SECONDS);
    this.recorder = new Recorder(this);
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

/** Records what the page on the screen draws. Pictures that are requested one by one would cost the page taps. */
class Recorder {
  #driver;
  #frames = [];
  #bytes = 0;
  #page = null;
  #ending = new AbortController();
  #running = Promise.resolve();

  constructor(driver) {
    this.#driver = driver;
  }

  start(seconds) {
    this.#running = this.#record(Date.now() + seconds * 1000);
  }

  /** Stop; return the frames: [{ jpeg, ms }]. */
  async stop() {
    this.#ending.abort();
    await this.#running;
    return this.#frames.map(({ jpeg, at }, index, all) => ({ jpeg, ms: (all[index + 1]?.at ?? Date.now()) - at }));
  }

  async #record(end) {
    const { signal } = this.#ending;
    while (!signal.aborted && Date.now() < end && this.#bytes < MAX_BYTES) {
      await this.#follow().catch((error) => this.#driver.log.debug(`the recording has no picture: ${error.message}`));
      await setTimeout(GAP_MS, null, { signal }).catch(() => {});
    }
    await this.#page?.stopCast().catch(() => {});
  }

  /** Record the page that is on the screen now. */
  async #follow() {
    const page = await this.#driver.browser.front();
    if (page === this.#page) return;
    await this.#page?.stopCast().catch(() => {});
    this.#page = page;
    await page.startCast((jpeg) => this.#keep(jpeg), GAP_MS);
  }

  #keep(jpeg) {
    if (!isJpeg(jpeg) || this.#frames.at(-1)?.jpeg.equals(jpeg)) return;
    this.#bytes += jpeg.length;
    this.#frames.push({ jpeg, at: Date.now() });
  }
}
