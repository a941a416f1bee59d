// Screen recordings: a few frames a second, as a video that browsers play. The browser itself encodes the frames.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { vp8In, webmOf } from './webm.js';

/** Between two frames: each costs the browser time that the test needs. */
const FRAME_GAP_MS = 250;
/** The limits of UiAutomator2 and XCUITest. */
const DEFAULT_SECONDS = 180;
const MAX_SECONDS = { Android: 1800, iOS: 4200 };
/** A recording is in memory until it is read. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Maximum pixels of the longer side: encoding takes time that the test needs. */
const MAX_SIDE = 800;
const WEBP_QUALITY = 0.7;
/** How long the end of a recording waits for frames that are still being encoded. */
const ENCODING_LIMIT_MS = 10_000;

/**
 * Runs in a page of its own: defines `encode`, which turns a JPEG image into { webp, width, height }, images in Base64.
 *
 * All frames have the size of the first one, since those of a video have one size: a rotated screen is fitted into it.
 */
const ENCODER = `globalThis.encode = async (jpeg) => {
  const picture = await createImageBitmap(await (await fetch('data:image/jpeg;base64,' + jpeg)).blob());
  if (!globalThis.canvas) {
    const scale = Math.min(1, ${MAX_SIDE} / Math.max(picture.width, picture.height));
    globalThis.canvas = new OffscreenCanvas(Math.round(picture.width * scale), Math.round(picture.height * scale));
  }

  const { width, height } = canvas;
  const scale = Math.min(width / picture.width, height / picture.height);
  const [w, h] = [picture.width * scale, picture.height * scale];
  const context = canvas.getContext('2d', { alpha: false });
  context.clearRect(0, 0, width, height);
  context.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h);

  const webp = await canvas.convertToBlob({ type: 'image/webp', quality: ${WEBP_QUALITY} });
  const reader = new FileReader();
  const loaded = new Promise((resolve) => { reader.onload = resolve; });
  reader.readAsDataURL(webp);
  await loaded;

  return { webp: reader.result.split(',')[1], width, height };
};`;

export const commands = {
  /**
   * Start a recording; return the video of an earlier one that was not stopped, as both drivers do.
   *
   * @param options timeLimit: the seconds after which it ends by itself; forceRestart: whether an earlier one is discarded
   *
   * Throws InvalidArgument for a limit that the platform's driver refuses.
   */
  async startRecordingScreen(options = {}) {
    const { timeLimit, forceRestart } = options ?? {};
    const seconds = Number(timeLimit ?? DEFAULT_SECONDS);
    const max = MAX_SECONDS[this.platform];
    if (!(seconds > 0 && seconds <= max)) {
      throw new errors.InvalidArgumentError(`timeLimit must be a number of seconds up to ${max}, not ${timeLimit}`);
    }

    const earlier = await this.stopRecordingScreen();
    const recorder = new Recorder(this);
    await recorder.start(seconds);
    this.recorder = recorder;

    return forceRestart ? '' : earlier;
  },

  /** Stop the recording; return the video in Base64, empty if none was started. Throws InvalidArgument for an upload. */
  async stopRecordingScreen(options = {}) {
    if (options?.remotePath) throw new errors.InvalidArgumentError('remotePath: the local device does not upload recordings');

    const { recorder } = this;
    this.recorder = null;
    const video = await recorder?.stop();

    return video ? video.toString('base64') : '';
  },
};

/**
 * Records what the page on the screen draws, until it is stopped.
 *
 * The browser sends a frame when the page has drawn one: screenshots, taken one by one, would make the page lose taps.
 */
class Recorder {
  #driver;
  /** The hidden page that encodes the frames. */
  #encoder = null;
  /** The encoded frames: [{ vp8, at }], `at` in milliseconds since 1970. */
  #frames = [];
  #size = { width: 0, height: 0 };
  #bytes = 0;
  /** The last frame that the page has sent, a JPEG image in Base64. */
  #last = null;
  /** The newest frame that is not encoded yet: older ones are left out if the encoder is slow. */
  #waiting = null;
  #encoding = Promise.resolve();
  #isEncoding = false;
  /** The page that sends its frames. */
  #page = null;
  #ending = new AbortController();
  #running = Promise.resolve();
  #noPicture = (error) => this.#driver.log.debug(`the recording has no picture: ${error.message}`);

  constructor(driver) {
    this.#driver = driver;
  }

  async start(seconds) {
    this.#encoder = await this.#driver.browser.openHidden();
    await this.#encoder.evaluate(ENCODER);
    this.#running = this.#record(Date.now() + seconds * 1000);
  }

  /** Stop; return the video, null if the page has drawn nothing. */
  async stop() {
    this.#ending.abort();
    await this.#running;
    if (!this.#last) await this.#keepStill().catch(this.#noPicture);
    const end = Date.now();

    await Promise.race([this.#encoding, setTimeout(ENCODING_LIMIT_MS, null, { ref: false })]);
    await this.#encoder?.close().catch(() => {}); // the browser is gone

    return this.#frames.length > 0 ? webmOf(this.#frames, { ...this.#size, end }) : null;
  }

  async #record(end) {
    const { signal } = this.#ending;
    while (!signal.aborted && Date.now() < end && this.#bytes < MAX_BYTES) {
      await this.#follow().catch(this.#noPicture);
      await setTimeout(FRAME_GAP_MS, null, { signal }).catch(() => {}); // stopped
    }

    await this.#page?.stopCast().catch(() => {}); // the page was closed
  }

  /** Have the page that is on the screen now send its frames. */
  async #follow() {
    const page = await this.#driver.browser.front();
    if (page === this.#page) return;

    await this.#page?.stopCast().catch(() => {}); // the page was closed
    this.#page = page;
    await page.startCast((jpeg) => this.#keep(jpeg), FRAME_GAP_MS);
  }

  /** Keep what the screen shows now: a recording that ends before the first frame has been sent has a picture, too. */
  async #keepStill() {
    const page = await this.#driver.browser.front();
    const jpeg = await page.still();
    if (jpeg) this.#keep(jpeg);
  }

  #keep(jpeg) {
    if (jpeg === this.#last) return;

    this.#last = jpeg;
    this.#waiting = { jpeg, at: Date.now() };
    if (!this.#isEncoding) this.#encoding = this.#encode();
  }

  /** Encode frames one after the other until none is waiting. */
  async #encode() {
    this.#isEncoding = true;
    while (this.#waiting) {
      const { jpeg, at } = this.#waiting;
      this.#waiting = null;
      try {
        const { webp, width, height } = await this.#encoder.evaluate(`encode('${jpeg}')`);
        const vp8 = vp8In(Buffer.from(webp, 'base64'));
        this.#frames.push({ vp8, at });
        this.#size = { width, height };
        this.#bytes += vp8.length;
      } catch (error) {
        this.#driver.log.debug(`a frame of the recording is missing: ${error.message}`);
      }
    }
    this.#isEncoding = false;
  }
}
