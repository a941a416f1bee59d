// The density of Android's screen: with the setting displayDensity, clients see and send pixels instead of the page's points.

import { errors } from 'appium/driver.js';
import { LENGTHS, isMobile } from './scripts.js';

/** Dots per inch at which a pixel is a point of the page, as on Android. */
export const BASE_DENSITY = 160;
const [MIN_DENSITY, MAX_DENSITY] = [80, 1000];
const SETTING = 'displayDensity';
/** The parts of W3C actions that are positions. */
const ACTION_LENGTHS = new Set(['x', 'y']);

/** Return the density of the screen, in dots per inch. */
export function densityOf({ platform, settings }) {
  return platform === 'Android' ? Number(settings.getSettings()[SETTING] ?? BASE_DENSITY) : BASE_DENSITY;
}

/** Return how many pixels of the client a point of the page has. */
export function scaleOf(driver) {
  return densityOf(driver) / BASE_DENSITY;
}

/** Throw InvalidArgument if settings have an impossible density. */
export function check(settings) {
  const density = settings?.[SETTING] ?? null;
  if (density === null) return;
  if (Number(density) >= MIN_DENSITY && Number(density) <= MAX_DENSITY) return;

  const range = `from ${MIN_DENSITY} to ${MAX_DENSITY} dots per inch`;
  throw new errors.InvalidArgumentError(`the setting ${SETTING} must be a number ${range}, not ${density}`);
}

/** Return lengths of the page in the client's pixels: all numbers of an object. */
export function toClient(driver, lengths) {
  const scale = scaleOf(driver);
  const pixels = {};
  for (const [name, length] of Object.entries(lengths)) pixels[name] = Math.round(length * scale);

  return pixels;
}

/** Turn the pixels in a client's commands into points of the page. */
export function translated({ performActions, execute }) {
  return {
    /** Perform the actions of a client; `performOnPage` is for those of the driver. */
    performOnPage: performActions,

    async performActions(sources) {
      if (!Array.isArray(sources)) throw new errors.InvalidArgumentError('actions must be a list of sources');

      await performActions.call(this, sources.map((source) => inPoints(this, source)));
    },

    async execute(script, args = []) {
      if (typeof script !== 'string' || !isMobile(script)) return await execute.call(this, script, args);

      const points = [args].flat().map((part) => divided(this, part, LENGTHS));
      return await execute.call(this, script, points);
    },
  };
}

function inPoints(driver, source) {
  return { ...source, actions: source?.actions?.map((action) => divided(driver, action, ACTION_LENGTHS)) };
}

/** Return an object with the numbers of some names in points. */
function divided(driver, part, names) {
  const scale = scaleOf(driver);
  if (scale === 1 || part === null || typeof part !== 'object') return part;

  const points = { ...part };
  for (const [name, value] of Object.entries(part)) {
    if (names.has(name) && typeof value === 'number') points[name] = value / scale;
  }

  return points;
}
