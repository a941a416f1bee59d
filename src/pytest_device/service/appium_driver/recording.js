// Screen recordings: a few frames a second, as a video that browsers play. The browser itself encodes the frames.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { vp8In, webmOf } from './webm.js';

const GAP_MS = 250;
const LIMIT_SECONDS = 180;
const MAX_SECONDS = 1800;
const MAX_BYTES = 64 * 1024 * 1024;
/** Maximum pixels of the longer side: encoding takes time that the test needs. */
const MAX_SIDE = 800;
const QUALITY = 0.7;
const ENCODE_MS = 10_000;

/** Runs in a page of its own. All frames have the size of the first one: a rotated screen is fitted into it. */
const ENCODER = `globalThis.encode = async (jpeg) => {
  const shown = await createImageBitmap(await (await fetch('data:image/jpeg;base64,' + jpeg)).blob());
  if (!globalThis.canvas) {
    const scale = Math.min(1, ${MAX_SIDE} / Math.max(shown.width, shown.height));
    globalThis.canvas = new OffscreenCanvas(Math.round(shown.width * scale), Math.round(shown.height * scale));
  }
  const { width, height } = canvas;
  const scale = Math.min(width / shown.width, height / shown.height);
  const [w, h] = [shown.width * scale, shown.height * scale];
  const context = canvas.getContext('2d', { alpha: false });
  context.clearRect(0, 0, width, height);
  context.drawImage(shown, (width - w) / 2, (height - h) / 2, w, h);
  const webp = await canvas.convertToBlob({ type: 'image/webp', quality: ${QUALITY} });
  const reader = new FileReader();
  const read = new Promise((resolve) => { reader.onload = resolve; });
  reader.readAsDataURL(webp);
  await read;
  return { webp: reader.result.split(',')[1], width, height };
};`;

export const commands = {
  /** Start a recording; an earlier one is discarded. */
  async startRecordingScreen(options = {}) {
    await this.recorder?.stop();
    const seconds = Math.min(Number(options?.timeLimit ?? LIMIT_SECONDS), MAX_SECONDS);
    this.recorder = null;
    const recorder = new Recorder(this);
    await recorder.start(seconds);
    this.recorder = recorder;
    return '';
  },

  /** Stop the recording; return the video in Base64, empty if none was started. */
  async stopRecordingScreen(options = {}) {
    if (options?.remotePath) throw new errors.InvalidArgumentError('remotePath: the local device does not upload recordings');
    const { recorder } = this;
    this.recorder = null;
    const video = await recorder?.stop();
    return video ? video.toString('base64') : '';
  },
};

/** Records what the page on the screen draws. Pictures that are requested one by one would cost the page taps. */
class Recorder {
  #driver;
  #encoder = null;
  #frames = [];
  #size = { width: 0, height: 0 };
  #bytes = 0;
  #last = null;
  /** The newest frame that is not encoded yet: older ones are left out if the encoder is slow. */
  #waiting = null;
  #encoding = Promise.resolve();
  #isEncoding = false;
  #page = null;
  #ending = new AbortController();
  #running = Promise.resolve();

  constructor(driver) {
    this.#driver = driver;
  }

  async start(seconds) {
    this.#encoder = await this.#driver.browser.openHidden();
    await this.#encoder.evaluate(ENCODER);
    this.#running = this.#record(Date.now() + seconds * 1000);
  }

  /** Stop; return the video, null without any frame. */
  async stop() {
    this.#ending.abort();
    await this.#running;
    const end = Date.now();
    await Promise.race([this.#encoding, setTimeout(ENCODE_MS, null, { ref: false })]);
    await this.#encoder?.close().catch(() => {}); // the browser is gone
    return this.#frames.length ? webmOf(this.#frames, { ...this.#size, end }) : null;
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
    if (jpeg === this.#last) return;
    this.#last = jpeg;
    this.#waiting = { jpeg, at: Date.now() };
    if (!this.#isEncoding) this.#encoding = this.#encode();
  }

  async #encode() {
    this.#isEncoding = true;
    while (this.#waiting) {
      const { jpeg, at } = this.#waiting;
      this.#waiting = null;
      try {
        const { webp, width, height } = await this.#encoder.evaluate(`encode('${jpeg}')`);
        const vp8 = vp8In(Buffer.from(webp, 'base64'));
        this.#size = { width, height };
        this.#bytes += vp8.length;
        this.#frames.push({ vp8, at });
      } catch (error) {
        this.#driver.log.debug(`a frame of the recording is missing: ${error.message}`);
      }
    }
    this.#isEncoding = false;
  }
}
