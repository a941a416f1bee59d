// Gestures: taps, swipes, drags and pinches as W3C actions of one or two fingers.

import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';

const STEP_MS = 16;
const LONG_MS = 500;
const SETTLE_MS = 120;
const MOST_MS = 20_000;
const WAYS = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };

/** Tap a point of the screen. */
export async function tap(driver, point, { times = 1, holdMs = 40, fingers = 1 } = {}) {
  const touches = Array.from({ length: times }, () => [down(), pause(holdMs), up(), pause(60)]).flat();
  const places = Array.from({ length: fingers }, (_, index) => ({ x: point.x + 12 * index, y: point.y }));
  await touch(driver, places.map((place) => [move(place), ...touches]));
}

/** Drag from one point to another in some milliseconds; pause at the end, except for a fling. */
export async function drag(driver, from, to, { ms = 400, holdMs = 0, fling = false } = {}) {
  const steps = Math.max(2, Math.min(60, Math.round(ms / STEP_MS)));
  const way = Array.from({ length: steps }, (_, index) => move(between(from, to, (index + 1) / steps), ms / steps));
  await touch(driver, [[move(from), down(), pause(holdMs), ...way, ...(fling ? [] : [pause(SETTLE_MS)]), up()]]);
}

/** Move two fingers horizontally through the center of an area: apart, or together. */
async function pinch(driver, args, percent = 0.7, open = true) {
  const area = await areaOf(driver, args);
  const y = area.y + area.height / 2;
  const middle = area.x + area.width / 2;
  const reach = (Math.min(percent, 1) * area.width) / 2 - 10;
  const finger = (side) => {
    const [near, far] = [{ x: middle + side * 20, y }, { x: middle + side * Math.max(reach, 30), y }];
    const [from, to] = open ? [near, far] : [far, near];
    return [move(from), down(), ...[0.25, 0.5, 0.75, 1].map((part) => move(between(from, to, part), 100)), up()];
  };
  await touch(driver, [finger(-1), finger(1)]);
  // A browser zooms the page; an app as a whole is not zoomed.
  await driver.cdp('Emulation.setPageScaleFactor', { pageScaleFactor: 1 });
}

/** Press a point of the screen like an element that is clicked. */
export async function press(driver, { x, y }) {
  const at = (type, buttons) => ['Input.dispatchMouseEvent', { type, x, y, ...buttons }];
  const button = { button: 'left', clickCount: 1 };
  const events = [at('mouseMoved'), at('mousePressed', button), at('mouseReleased', button)];
  await driver.onPage((page) => page.input(events));
}

async function touch(driver, fingers) {
  const actions = fingers.map((steps, index) => ({
    type: 'pointer', id: `finger${index + 1}`, parameters: { pointerType: 'touch' }, actions: steps,
  }));
  await driver.performOnPage(actions);
}

const move = ({ x, y }, duration = 0) => ({
  type: 'pointerMove', duration: Math.round(duration), x: Math.round(x), y: Math.round(y),
});
const down = () => ({ type: 'pointerDown', button: 0 });
const up = () => ({ type: 'pointerUp', button: 0 });
const pause = (duration) => ({ type: 'pause', duration: Math.min(Math.round(duration), MOST_MS) });
const between = (from, to, part) => ({ x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part });

/** Return the point of a gesture: an element's center, a given one (in the element if both), or the screen's center. */
async function pointOf(driver, { elementId: id, x, y }) {
  if (id && x === undefined) return await driver.askPage('middle', {}, id);
  if (id) {
    const box = await driver.askPage('rect', {}, id);
    return { x: box.x + Number(x), y: box.y + Number(y) };
  }
  if (x !== undefined && y !== undefined) return { x: Number(x), y: Number(y) };
  const { width, height } = await driver.askPage('screen');
  return { x: width / 2, y: height / 2 };
}

/** Return the area of a gesture: that of an element, a given one, or the screen, clipped to the screen. */
async function areaOf(driver, { elementId: id, left, top, width, height }) {
  const screen = await driver.askPage('screen');
  let box = { x: left ?? 0, y: top ?? 0, width: width ?? screen.width, height: height ?? screen.height };
  if (id) {
    await driver.askPage('middle', {}, id);
    box = await driver.askPage('rect', {}, id);
  }
  const [x, y] = [Math.max(box.x, 0), Math.max(box.y, 0)];
  const right = Math.min(box.x + box.width, screen.width);
  return { x, y, width: right - x, height: Math.min(box.y + box.height, screen.height) - y };
}

function wayOf(direction) {
  const way = WAYS[direction];
  if (way) return way;
  throw new errors.InvalidArgumentError(`direction must be one of ${Object.keys(WAYS).join(', ')}, not ${direction}`);
}

/** Swipe across a part of an area in a direction. */
async function swipe(driver, args, { direction, percent = 0.7, fling = false }) {
  const [right, downward] = wayOf(direction);
  const { x, y, width, height } = await areaOf(driver, args);
  const part = Math.min(Math.max(Number(percent), 0.05), 0.95) / 2;
  const at = (sign) => ({ x: x + width * (0.5 + sign * right * part), y: y + height * (0.5 + sign * downward * part) });
  await drag(driver, at(-1), at(1), { ms: fling ? 120 : 300, fling });
}

/** Scroll the content of an area; return whether it can scroll further. */
async function scroll(driver, args, { direction, percent = 0.8 }) {
  const [right, downward] = wayOf(direction);
  const area = await areaOf(driver, args);
  const at = { x: area.x + area.width / 2, y: area.y + area.height / 2 };
  const part = Number(percent);
  const request = { right: right * part, down: downward * part, at };
  return await driver.askPage('scroll', request, args.elementId ?? null);
}

const BACK = { up: 'down', down: 'up', left: 'right', right: 'left' };

export const GESTURES = {
  clickGesture: async (driver, args) => await tap(driver, await pointOf(driver, args)),
  longClickGesture: async (driver, args) => {
    await tap(driver, await pointOf(driver, args), { holdMs: args.duration ?? LONG_MS });
  },
  doubleClickGesture: async (driver, args) => await tap(driver, await pointOf(driver, args), { times: 2 }),
  dragGesture: async (driver, args) => {
    const from = await pointOf(driver, { ...args, x: args.startX, y: args.startY });
    await drag(driver, from, { x: args.endX, y: args.endY }, { holdMs: LONG_MS });
  },
  swipeGesture: async (driver, args) => await swipe(driver, args, args),
  flingGesture: async (driver, args) => {
    await swipe(driver, args, { direction: BACK[args.direction], percent: 0.9, fling: true });
    return await further(driver, args);
  },
  scrollGesture: async (driver, args) => await scroll(driver, args, args),
  pinchOpenGesture: async (driver, args) => await pinch(driver, args, args.percent, true),
  pinchCloseGesture: async (driver, args) => await pinch(driver, args, args.percent, false),
  swipe: async (driver, args) => await swipe(driver, args, args),
  tap: async (driver, args) => await tap(driver, await pointOf(driver, args)),
  doubleTap: async (driver, args) => await tap(driver, await pointOf(driver, args), { times: 2 }),
  twoFingerTap: async (driver, args) => await tap(driver, await pointOf(driver, args), { fingers: 2 }),
  touchAndHold: async (driver, args) => {
    await tap(driver, await pointOf(driver, args), { holdMs: 1000 * (args.duration ?? 1) });
  },
  dragFromToForDuration: async (driver, args) => {
    const offset = args.elementId ? await driver.askPage('rect', {}, args.elementId) : { x: 0, y: 0 };
    const at = (x, y) => ({ x: offset.x + Number(x), y: offset.y + Number(y) });
    const hold = { holdMs: 1000 * (args.duration ?? 1) };
    await drag(driver, at(args.fromX, args.fromY), at(args.toX, args.toY), hold);
  },
  pinch: async (driver, args) => await pinch(driver, args, undefined, args.scale > 1),
  scrollToElement: async (driver, args) => {
    await driver.askPage('middle', {}, args.elementId);
  },
  scroll: async (driver, args) => await scrollAbout(driver, args),
};

async function further(driver, args) {
  const [right, downward] = wayOf(args.direction);
  const { x, y, width, height } = await areaOf(driver, args);
  const at = { x: x + width / 2, y: y + height / 2 };
  return await driver.askPage('canScroll', { right, down: downward, at }, args.elementId ?? null);
}

/** `mobile: scroll`, with a target on Android, and with a target or a direction on iOS. */
async function scrollAbout(driver, args) {
  const to = aim(args);
  if (to) {
    await driver.askPage('middle', {}, util.unwrapElement(await driver.findElOrEls(...to, false, args.elementId)));
  } else if (args.toVisible) {
    await driver.askPage('middle', {}, args.elementId);
  } else {
    await scroll(driver, args, { direction: args.direction, percent: args.distance ?? 0.8 });
  }
}

function aim({ strategy, selector, name, predicateString }) {
  if (strategy) return [strategy, selector];
  if (name) return ['accessibility id', name];
  return predicateString ? ['-ios predicate string', predicateString] : null;
}
