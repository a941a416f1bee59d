// Gestures: taps, swipes, drags and pinches as W3C actions of one or two fingers.
//
// Points and lengths are CSS pixels of the screen: density.js has converted those of a client. The arguments are those of
// the `mobile:` scripts of UiAutomator2 and XCUITest, which scripts.js has checked.

import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';

const TAP_MS = 40;
/** Between two taps of a double tap: browsers take only taps within 300 ms for one. */
const DOUBLE_TAP_GAP_MS = 60;
/** Android's time for a long press, of a point or of a key. */
export const LONG_PRESS_MS = 500;
const DRAG_MS = 400;
const SWIPE_MS = 300;
const FLING_MS = 120;
const PINCH_MS = 400;
/** A finger that rests before it is lifted has no velocity: the content does not scroll further by itself. */
const REST_MS = 120;
/** The limit of XCUITest: the session does nothing else meanwhile. */
const MAX_HOLD_MS = 60_000;

/** A tap takes time, in which the session does nothing else. */
const MAX_TAPS = 20;

/** Between two fingers that tap at once. */
const FINGER_DISTANCE = 12;
/** How far the fingers of a pinch are from its center while they are together, and at least while they are apart. */
const [PINCH_CLOSED, MIN_PINCH_OPEN] = [20, 30];
/** The fingers of a pinch stay away from the edges of its area: there, they could touch something else. */
const PINCH_MARGIN = 10;

/** The unit vectors of the directions: x grows to the right, y downward. */
const DIRECTIONS = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };
const OPPOSITES = { up: 'down', down: 'up', left: 'right', right: 'left' };

/**
 * Tap a point of the screen.
 *
 * @param point { x, y }
 * @param options times: the number of taps; holdMs: how long each lasts; fingers: how many tap at once, side by side
 */
export async function tap(driver, point, { times = 1, holdMs = TAP_MS, fingers = 1 } = {}) {
  const taps = [];
  for (let count = 0; count < times; count += 1) {
    taps.push(down(), pause(holdMs), up(), pause(DOUBLE_TAP_GAP_MS));
  }

  const actions = [];
  for (let finger = 0; finger < fingers; finger += 1) {
    actions.push([move({ x: point.x + finger * FINGER_DISTANCE, y: point.y }), ...taps]);
  }
  await touch(driver, actions);
}

/**
 * Drag from a point to another one.
 *
 * @param options ms: the time of the movement; holdMs: how long the finger rests before it; isFling: whether the finger is
 *   lifted while it moves, so that the content scrolls further by itself
 */
export async function drag(driver, from, to, { ms = DRAG_MS, holdMs = 0, isFling = false } = {}) {
  const actions = [move(from), down(), pause(holdMs), move(to, ms)];
  if (!isFling) actions.push(pause(REST_MS));
  actions.push(up());

  await touch(driver, [actions]);
}

/**
 * Press a point of the screen like an element that is clicked, and wait for a navigation that this begins.
 *
 * With a mouse: for a touch, the browser waits until it knows the gesture, which makes a click several times as slow.
 */
export async function press(driver, { x, y }) {
  const mouseEvent = (type, button = {}) => ['Input.dispatchMouseEvent', { type, x, y, ...button }];
  const leftButton = { button: 'left', clickCount: 1 };
  const events = [
    mouseEvent('mouseMoved'),
    mouseEvent('mousePressed', leftButton),
    mouseEvent('mouseReleased', leftButton),
  ];

  await driver.onPage((page) => page.input(events));
}

/** Move two fingers horizontally through the center of an area: apart, or together. */
async function pinch(driver, args, { percent = 0.7, isOpening }) {
  checkSpeed(args.speed);
  const part = partOf(percent);
  const area = await areaOf(driver, args);
  const center = { x: area.x + area.width / 2, y: area.y + area.height / 2 };
  const reach = (part * area.width) / 2 - PINCH_MARGIN;
  const open = Math.max(reach, MIN_PINCH_OPEN);

  const finger = (side) => {
    const inner = { x: center.x + side * PINCH_CLOSED, y: center.y };
    const outer = { x: center.x + side * open, y: center.y };
    const [from, to] = isOpening ? [inner, outer] : [outer, inner];

    return [move(from), down(), move(to, PINCH_MS), up()];
  };
  await touch(driver, [finger(-1), finger(1)]);

  // A browser zooms the page; a phone does not zoom an app as a whole.
  await driver.cdp('Emulation.setPageScaleFactor', { pageScaleFactor: 1 });
}

/** Perform the actions of some fingers at once. */
async function touch(driver, fingers) {
  const sources = fingers.map((actions, index) => ({
    type: 'pointer',
    id: `finger${index + 1}`,
    parameters: { pointerType: 'touch' },
    actions,
  }));

  await driver.performOnPage(sources);
}

function move({ x, y }, duration = 0) {
  return { type: 'pointerMove', duration: Math.round(duration), x: Math.round(x), y: Math.round(y) };
}

function down() {
  return { type: 'pointerDown', button: 0 };
}

function up() {
  return { type: 'pointerUp', button: 0 };
}

function pause(duration) {
  return { type: 'pause', duration: Math.round(duration) };
}

/**
 * Return the point of a gesture: a given one, relative to the element if there is one, too; else the center of the element
 * or of the screen.
 *
 * Throws InvalidArgument for half a point on iOS, as WebDriverAgent does; UiAutomator2 ignores it.
 */
async function pointOf(driver, { elementId, x, y }) {
  const hasPoint = x !== undefined && y !== undefined;
  const hasHalf = !hasPoint && (x !== undefined || y !== undefined);
  if (hasHalf && driver.platform === 'iOS') {
    throw new errors.InvalidArgumentError('Both x and y coordinates must be provided');
  }

  if (elementId && hasPoint) {
    const box = await driver.askPage('rect', {}, elementId);
    return { x: box.x + Number(x), y: box.y + Number(y) };
  }
  if (elementId) return await driver.askPage('middle', {}, elementId);
  if (hasPoint) return { x: Number(x), y: Number(y) };

  const { width, height } = await driver.askPage('screen');
  return { x: width / 2, y: height / 2 };
}

/** Return the area of a gesture: that of an element, a given one, or the screen; the part that is on the screen. */
async function areaOf(driver, { elementId, left, top, width, height }) {
  const screen = await driver.askPage('screen');
  let box = { x: left ?? 0, y: top ?? 0, width: width ?? screen.width, height: height ?? screen.height };
  if (elementId) {
    // Scrolls it into view, which changes its box.
    await driver.askPage('middle', {}, elementId);
    box = await driver.askPage('rect', {}, elementId);
  }

  const x = Math.max(box.x, 0);
  const y = Math.max(box.y, 0);
  const right = Math.min(box.x + box.width, screen.width);
  const bottom = Math.min(box.y + box.height, screen.height);

  return { x, y, width: right - x, height: bottom - y };
}

/** Return a direction in lower case, as both drivers read it. Throws InvalidArgument. */
function directionNamed(name) {
  const direction = String(name).toLowerCase();
  if (Object.hasOwn(DIRECTIONS, direction)) return direction;

  throw new errors.InvalidArgumentError(`direction must be one of ${Object.keys(DIRECTIONS).join(', ')}, not ${name}`);
}

function vectorOf(name) {
  return DIRECTIONS[directionNamed(name)];
}

/** Return a time that a finger rests on the screen. Throws InvalidArgument. */
function holdMs(ms) {
  if (ms >= 0 && ms <= MAX_HOLD_MS) return ms;

  throw new errors.InvalidArgumentError(`the duration must be from 0 to ${MAX_HOLD_MS / 1000} s, not ${ms / 1000} s`);
}

/** Return a number of taps or of fingers. Throws InvalidArgument. */
function count(number) {
  if (number >= 1 && number <= MAX_TAPS) return Math.trunc(number);

  throw new errors.InvalidArgumentError(`the taps and the fingers must be from 1 to ${MAX_TAPS}, not ${number}`);
}

/** Return a part of an area, from 0 to 1. Throws InvalidArgument. */
function partOf(percent) {
  const part = Number(percent);
  if (part >= 0 && part <= 1) return part;

  throw new errors.InvalidArgumentError(`percent must be from 0 to 1, not ${percent}`);
}

/** Throw InvalidArgument for a speed that UiAutomator2 refuses: gestures here all have their own. */
function checkSpeed(speed = 0) {
  if (Number(speed) < 0) throw new errors.InvalidArgumentError(`speed must be 0 or more, not ${speed}`);
}

/** Swipe across a part of an area: the finger moves in the direction. */
async function swipe(driver, args, { direction, percent = 0.7, isFling = false }) {
  const [right, downward] = vectorOf(direction);
  checkSpeed(args.speed);
  const requested = partOf(percent);
  const { x, y, width, height } = await areaOf(driver, args);

  // Not the whole area: at an edge of the screen, the finger would touch what is beside the area.
  const part = Math.min(Math.max(requested, 0.05), 0.95) / 2;
  const point = (sign) => ({
    x: x + width * (0.5 + sign * right * part),
    y: y + height * (0.5 + sign * downward * part),
  });

  await drag(driver, point(-1), point(1), { ms: isFling ? FLING_MS : SWIPE_MS, isFling });
}

/**
 * Scroll the content of an area by a part of its size; return whether it can be scrolled further.
 *
 * By a script, not by a finger: a swipe scrolls by a length that depends on its speed, and may press what is below it.
 */
async function scroll(driver, args, { direction, percent }) {
  const [right, downward] = vectorOf(direction);
  checkSpeed(args.speed);
  const part = Number(percent);
  // More than its size is fine: it is scrolled as far as it can be.
  if (part < 0) throw new errors.InvalidArgumentError(`percent must be 0 or more, not ${percent}`);

  const request = { right: right * part, down: downward * part, at: await centerOf(driver, args) };

  return await driver.askPage('scroll', request, args.elementId ?? null);
}

/** Return whether the content of an area can be scrolled further in a direction. */
async function canScroll(driver, args) {
  const [right, downward] = vectorOf(args.direction);
  const request = { right, down: downward, at: await centerOf(driver, args) };

  return await driver.askPage('canScroll', request, args.elementId ?? null);
}

async function centerOf(driver, args) {
  const { x, y, width, height } = await areaOf(driver, args);

  return { x: x + width / 2, y: y + height / 2 };
}

/** Drag between two points, which are relative to an element if there is one. */
async function dragFromTo(driver, { elementId, fromX, fromY, toX, toY, duration = 1 }) {
  const origin = elementId ? await driver.askPage('rect', {}, elementId) : { x: 0, y: 0 };
  const from = { x: origin.x + Number(fromX), y: origin.y + Number(fromY) };
  const to = { x: origin.x + Number(toX), y: origin.y + Number(toY) };

  await drag(driver, from, to, { holdMs: holdMs(1000 * duration) });
}

/** `mobile: scroll`: on Android to what a locator matches, on iOS to a view that is in the tree already, or by a page. */
async function scrollTo(driver, args) {
  if (driver.platform === 'Android') {
    await driver.scrollToMatch(args.strategy, args.selector, args);
    return;
  }

  const locator = locatorOf(args);
  if (locator) {
    const element = await driver.findElOrEls(...locator, false, args.elementId);
    await driver.askPage('middle', {}, util.unwrapElement(element));
  } else if (args.toVisible) {
    await driver.askPage('middle', {}, args.elementId);
  } else {
    // WebDriverAgent does nothing for another spelling.
    if (!Object.hasOwn(DIRECTIONS, args.direction)) {
      const all = Object.keys(DIRECTIONS).join(', ');
      throw new errors.InvalidArgumentError(`direction must be one of ${all}, in lower case, not ${args.direction}`);
    }
    // By default a page, which is what distinguishes it from a swipe.
    await scroll(driver, args, { direction: args.direction, percent: args.distance ?? 1 });
  }
}

/** Return the strategy and the selector of the view to scroll to, null without one. */
function locatorOf({ name, predicateString }) {
  if (name) return ['accessibility id', name];

  return predicateString ? ['-ios predicate string', predicateString] : null;
}

/** The `mobile:` scripts of UiAutomator2 for gestures: times are in milliseconds. */
const ANDROID_GESTURES = {
  clickGesture: async (driver, args) => await tap(driver, await pointOf(driver, args)),

  doubleClickGesture: async (driver, args) => await tap(driver, await pointOf(driver, args), { times: 2 }),

  longClickGesture: async (driver, args) => {
    await tap(driver, await pointOf(driver, args), { holdMs: holdMs(args.duration ?? LONG_PRESS_MS) });
  },

  dragGesture: async (driver, args) => {
    checkSpeed(args.speed);
    const from = await pointOf(driver, { ...args, x: args.startX, y: args.startY });
    // The end is a point of the screen, even with an element.
    await drag(driver, from, { x: args.endX, y: args.endY }, { holdMs: LONG_PRESS_MS });
  },

  swipeGesture: async (driver, args) => await swipe(driver, args, args),

  scrollGesture: async (driver, args) => await scroll(driver, args, args),

  flingGesture: async (driver, args) => {
    // The direction is that in which the content is scrolled: the finger moves the other way.
    await swipe(driver, args, { direction: OPPOSITES[directionNamed(args.direction)], percent: 0.9, isFling: true });
    return await canScroll(driver, args);
  },

  pinchOpenGesture: async (driver, args) => await pinch(driver, args, { percent: args.percent, isOpening: true }),

  pinchCloseGesture: async (driver, args) => await pinch(driver, args, { percent: args.percent, isOpening: false }),
};

/** Those of XCUITest: times are in seconds. */
const IOS_GESTURES = {
  tap: async (driver, args) => await tap(driver, await pointOf(driver, args)),

  doubleTap: async (driver, args) => await tap(driver, await pointOf(driver, args), { times: 2 }),

  twoFingerTap: async (driver, args) => await tap(driver, await pointOf(driver, args), { fingers: 2 }),

  tapWithNumberOfTaps: async (driver, args) => {
    const [times, fingers] = [args.numberOfTaps, args.numberOfTouches].map(count);
    await tap(driver, await pointOf(driver, { elementId: args.elementId }), { times, fingers });
  },

  touchAndHold: async (driver, args) => {
    await tap(driver, await pointOf(driver, args), { holdMs: holdMs(1000 * (args.duration ?? 1)) });
  },

  swipe: async (driver, args) => await swipe(driver, args, args),

  pinch: async (driver, args) => {
    if (!(args.scale > 0)) throw new errors.InvalidArgumentError(`scale must be more than 0, not ${args.scale}`);
    await pinch(driver, args, { isOpening: args.scale > 1 });
  },

  dragFromToForDuration: dragFromTo,

  scrollToElement: async (driver, args) => {
    await driver.askPage('middle', {}, args.elementId);
  },
};

/** The gestures by the name of their `mobile:` script: functions of the driver and of the arguments. */
export const GESTURES = { ...ANDROID_GESTURES, ...IOS_GESTURES, scroll: scrollTo };
