// W3C actions in the native context: ticks of touches and keys as the browser's input events.
//
// Each pointer is a finger, also one of the type mouse, which clients use by default: the drivers of phones change it, too.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';
import { unlessDialog } from './dialogs.js';
import { LONG_PRESS_MS } from './gestures.js';
import { PageClosed } from './page.js';
import { Keyboard } from './keyboard.js';

/** Between two events of a movement: a phone's screen reports touches once per frame. */
const FRAME_MS = 16;
/** The types of sources that the drivers of phones have: none has a wheel. */
const TYPES = { Android: ['pointer', 'key', 'none'], iOS: ['pointer', 'key'] };

export const commands = {
  /** Perform actions; return once the page has handled them and a navigation that they began is over. */
  async performActions(sources) {
    for (const source of sources) check(source, this.platform);

    const page = await this.page();
    page.refuseDialog();
    // Phones' drivers begin anew with each command: Android cancels the touch of a finger that an earlier one left down.
    if (this.inputs?.areHeld) await this.inputs.cancel();
    this.inputs = new Inputs(page);

    const screen = await this.askPage('screen');
    const centerOf = (element) => this.askPage('center', {}, element);
    // The views over an app are native, and an iPhone's browser has no event for it.
    const hasMenus = this.platform === 'Android' && !this.overlay.view;
    const onLongPress = async (point) => {
      if (hasMenus) await unlessDialog(this.askPage('longPress', point));
    };
    try {
      await this.inputs.perform(sources, { screen, centerOf, onLongPress });
      await page.settled();
    } catch (error) {
      if (!(error instanceof PageClosed)) throw error; // a touch or a key has closed it
    }
  },

  /** Release all keys, and lift all fingers. */
  async releaseActions() {
    const { inputs } = this;
    this.inputs = null;
    if (!inputs) return;

    await this.page(); // reports a crash
    await inputs.release();
  },
};

/** The state of all input sources in a command, and after it until it is released; all of them are on one page. */
class Inputs {
  #page;
  /**
   * The fingers by the ID of their source: { x, y, isDown, number, downSince, mayPressLong }.
   *
   * The last two are for those that are down: when they were put down, in milliseconds, and whether they have rested since.
   */
  #pointers = new Map();
  #keyboard = new Keyboard();

  constructor(page) {
    this.#page = page;
  }

  /** Perform the actions of all sources, tick by tick: the first ones at once, then the second ones. */
  async perform(sources, { screen, centerOf, onLongPress }) {
    const ticks = Math.max(0, ...sources.map(({ actions }) => actions.length));
    for (let index = 0; index < ticks; index += 1) {
      const tick = [];
      for (const source of sources) {
        const action = source.actions[index];
        if (action) tick.push({ source, action: await this.#aimed(source, action, screen, centerOf) });
      }

      await this.#performTick(tick);
      await this.#pressLong(onLongPress);
    }
  }

  /** Whether a finger or a key is down. */
  get areHeld() {
    return this.#touches().length > 0 || this.#keyboard.hasHeldKeys;
  }

  /** Release all keys, and lift all fingers. */
  async release() {
    await this.#page.input(this.#endsBy('touchEnd'));
  }

  /** Release all keys, and end all touches without an effect. The page may have another one in front, or a dialog. */
  async cancel() {
    try {
      await this.#page.dispatch(this.#endsBy('touchCancel'));
    } catch (error) {
      if (!this.#page.isGone) throw error;
    }
  }

  /** Return the events that release all keys and end all touches. */
  #endsBy(type) {
    const events = this.#keyboard.released();
    if (this.#touches().length > 0) events.push(['Input.dispatchTouchEvent', { type, touchPoints: [] }]);

    return events;
  }

  /** Return an action with its target as a point of the screen. Throws MoveTargetOutOfBounds. */
  async #aimed(source, action, screen, centerOf) {
    if (action.type !== 'pointerMove') return action;

    const origin = await this.#originOf(source, action, centerOf);
    const x = origin.x + (action.x ?? 0);
    const y = origin.y + (action.y ?? 0);
    if (x < 0 || y < 0 || x > screen.width || y > screen.height) {
      const size = `${screen.width} x ${screen.height}`;
      throw new errors.MoveTargetOutOfBoundsError(`(${x}, ${y}) is not on the screen of ${size}`);
    }

    return { ...action, x, y };
  }

  /** Return the point that a movement counts from: the screen's corner, the pointer, or the center of an element. */
  async #originOf(source, { origin = 'viewport' }, centerOf) {
    if (typeof origin === 'object') return await centerOf(util.unwrapElement(origin));

    return (origin === 'pointer' && this.#pointers.get(source.id)) || { x: 0, y: 0 };
  }

  /** Perform the actions of one tick, which lasts as long as the longest of them. */
  async #performTick(tick) {
    const duration = Math.max(0, ...tick.map(({ action }) => action.duration ?? 0));
    const begin = Date.now();

    const movements = [];
    for (const { source, action } of tick) {
      if (action.type !== 'pointerMove') continue;
      const pointer = this.#pointer(source);
      movements.push({ pointer, from: { x: pointer.x, y: pointer.y }, to: action, ms: action.duration ?? 0 });
    }

    await this.#page.dispatch(this.#eventsOf(tick));
    await this.#move(movements, begin);

    const rest = begin + duration - Date.now();
    if (rest > 0) await setTimeout(rest);
  }

  /** Move fingers along straight lines, each in its time, which began at `begin`. */
  async #move(movements, begin) {
    const end = begin + Math.max(0, ...movements.map(({ ms }) => ms));
    let isOver = movements.length === 0;
    while (!isOver) {
      const passed = Date.now() - begin;
      isOver = begin + passed >= end;

      let isTouchMoved = false;
      for (const { pointer, from, to, ms } of movements) {
        const part = ms > 0 ? Math.min(passed / ms, 1) : 1;
        const x = from.x + (to.x - from.x) * part;
        const y = from.y + (to.y - from.y) * part;
        if (pointer.isDown && (x !== pointer.x || y !== pointer.y)) {
          isTouchMoved = true;
          pointer.mayPressLong = false;
        }
        Object.assign(pointer, { x, y });
      }
      if (isTouchMoved) await this.#page.dispatch([this.#touchEvent('touchMove')]);

      if (!isOver) await setTimeout(Math.min(FRAME_MS, Math.max(end - Date.now(), 1)));
    }
  }

  /** Return the events of a tick, except those of movements: keys first, so that a touch has the modifiers of its tick. */
  #eventsOf(tick) {
    const actionsOf = (type) => tick.filter(({ action }) => action.type === type);
    const keysDown = actionsOf('keyDown').map(({ action }) => this.#keyboard.down(action.value));
    const keysUp = actionsOf('keyUp').map(({ action }) => this.#keyboard.up(action.value));
    const touches = [
      ...this.#pressed(actionsOf('pointerDown'), true),
      ...this.#pressed(actionsOf('pointerUp'), false),
    ];

    return [...keysDown, ...keysUp, ...touches];
  }

  /** Return the events of fingers that are put down or lifted: those of one tick share an event. */
  #pressed(parts, isDown) {
    if (parts.length === 0) return [];

    for (const { source } of parts) {
      Object.assign(this.#pointer(source), { isDown, downSince: Date.now(), mayPressLong: true });
    }

    return [this.#touchEvent(isDown ? 'touchStart' : 'touchEnd')];
  }

  /** Report a long press of a finger that has rested for long enough, once. Several fingers make other gestures. */
  async #pressLong(onLongPress) {
    const [finger, ...others] = this.#touches();
    if (!finger?.mayPressLong || others.length > 0 || Date.now() - finger.downSince < LONG_PRESS_MS) return;

    finger.mayPressLong = false;
    await onLongPress({ x: finger.x, y: finger.y });
  }

  #pointer(source) {
    if (!this.#pointers.has(source.id)) {
      this.#pointers.set(source.id, { x: 0, y: 0, isDown: false, number: this.#pointers.size });
    }

    return this.#pointers.get(source.id);
  }

  /** Return the fingers on the screen. */
  #touches() {
    return [...this.#pointers.values()].filter(({ isDown }) => isDown);
  }

  #touchEvent(type) {
    const touchPoints = this.#touches().map(({ x, y, number }) => ({ x: Math.round(x), y: Math.round(y), id: number }));

    return ['Input.dispatchTouchEvent', { type, touchPoints, modifiers: this.#keyboard.modifiers }];
  }
}

/** Throw InvalidArgument for a source that the platform's driver refuses: of another type, without actions, without a place. */
function check(source, platform) {
  const types = TYPES[platform];
  if (!types.includes(source?.type) || !Array.isArray(source.actions)) {
    const given = source?.type === undefined ? '' : `, not ${JSON.stringify(source.type)}`;
    throw new errors.InvalidArgumentError(`actions must be a list of sources of the types ${types.join(', ')}${given}`);
  }

  if (source.type !== 'pointer') return;

  checkPlaces(source.actions);
  if (platform === 'Android') checkTouches(source.actions);
}

/** Throw InvalidArgument for a touch without a place: on a phone, a finger does not know where it was in an earlier command. */
function checkPlaces(actions) {
  for (const { type, origin } of actions) {
    const isRelative = type === 'pointerMove' && origin === 'pointer';
    if (isRelative || type === 'pointerDown' || type === 'pointerUp') {
      const what = isRelative ? 'a pointerMove from the pointer' : `a ${type}`;
      throw new errors.InvalidArgumentError(`${what} must be preceded by a pointerMove to a point or an element in the same actions`);
    }
    if (type === 'pointerMove') return;
  }
}

/** Throw InvalidArgument for what UiAutomator2 refuses: to lift a finger that is not down, and two touches at once. */
function checkTouches(actions) {
  let isDown = false;
  let at = 0;
  let lastDownAt = null;
  for (const { type, duration = 0 } of actions) {
    if (type === 'pointerDown') {
      if (isDown || lastDownAt === at) {
        throw new errors.InvalidArgumentError('two pointerDown actions need a pointerUp and a pause between them');
      }
      [isDown, lastDownAt] = [true, at];
    } else if (type === 'pointerUp') {
      if (!isDown) throw new errors.InvalidArgumentError('a pointerUp must be preceded by a pointerDown in the same actions');
      isDown = false;
    } else {
      at += duration;
    }
  }
}
