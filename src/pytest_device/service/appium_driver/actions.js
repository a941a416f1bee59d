// W3C actions in the native context: ticks of touches, keys and wheels as the browser's input events. Each pointer is a finger,
// also one of the type mouse, which clients use by default: the drivers of phones change it, too.

import { setTimeout } from 'node:timers/promises';
import { errors } from 'appium/driver.js';
import { util } from 'appium/support.js';
import { Keyboard } from './keyboard.js';

const FRAME_MS = 16;
const TYPES = ['pointer', 'key', 'wheel', 'none'];

export const commands = {
  async performActions(sources) {
    const page = await this.page();
    page.refuseDialog();
    this.inputs ??= new Inputs();
    const { width, height } = await this.askPage('screen');
    await this.inputs.perform(page, sources, { width, height }, (element) => this.askPage('center', {}, element));
    await page.settled();
  },

  async releaseActions() {
    const { inputs } = this;
    this.inputs = null;
    if (inputs) await inputs.release(await this.page());
  },
};

/** The state of all input devices, which lasts until it is released. */
class Inputs {
  #pointers = new Map();
  #keyboard = new Keyboard();

  async perform(page, sources, screen, centerOf) {
    const ticks = Math.max(0, ...sources.map(checked));
    for (let index = 0; index < ticks; index += 1) {
      const tick = sources.flatMap((source) => {
        const action = source.actions[index];
        return action ? [{ source, action: { ...action } }] : [];
      });
      for (const part of tick) await this.#aim(part, screen, centerOf);
      await this.#tick(page, tick);
    }
  }

  async release(page) {
    const touches = this.#touches().length ? [['Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] }]] : [];
    await page.input([...this.#keyboard.released(), ...touches]);
  }

  /** Turn the target of a movement into coordinates of the screen. */
  async #aim({ source, action }, screen, centerOf) {
    if (action.type !== 'pointerMove' && action.type !== 'scroll') return;
    const { origin = 'viewport' } = action;
    const element = typeof origin === 'object' ? util.unwrapElement(origin) : null;
    const pointer = this.#pointers.get(source.id);
    const from = element ? await centerOf(element) : origin === 'pointer' && pointer ? pointer : { x: 0, y: 0 };
    [action.x, action.y] = [from.x + (action.x ?? 0), from.y + (action.y ?? 0)];
    if (action.x < 0 || action.y < 0 || action.x > screen.width || action.y > screen.height) {
      const size = `${screen.width} x ${screen.height}`;
      throw new errors.MoveTargetOutOfBoundsError(`(${action.x}, ${action.y}) is not on the screen of ${size}`);
    }
  }

  async #tick(page, tick) {
    const duration = Math.max(0, ...tick.map(({ action }) => action.duration ?? 0));
    const end = Date.now() + duration;
    const moving = tick.filter(({ action }) => action.type === 'pointerMove').map(({ source, action }) => {
      const pointer = this.#pointer(source);
      return { source, pointer, from: { x: pointer.x, y: pointer.y }, to: action, ms: action.duration ?? 0 };
    });
    await this.#dispatch(page, tick.filter(({ action }) => action.type !== 'pointerMove'));
    const begin = end - duration;
    for (let isOver = !moving.length; !isOver;) {
      const passed = Date.now() - begin;
      isOver = moving.every(({ ms }) => passed >= ms);
      await this.#move(page, moving, passed);
      if (!isOver) await setTimeout(Math.min(FRAME_MS, Math.max(end - Date.now(), 1)));
    }
    if (end > Date.now()) await setTimeout(end - Date.now());
  }

  async #move(page, moving, passed) {
    const moved = moving.filter(({ pointer, from, to, ms }) => {
      const part = ms ? Math.min(passed / ms, 1) : 1;
      const [x, y] = [from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part];
      const isMoved = x !== pointer.x || y !== pointer.y;
      Object.assign(pointer, { x, y });
      return isMoved;
    });
    if (moved.some(({ pointer }) => pointer.isDown)) await page.dispatch([this.#touch('touchMove')]);
  }

  async #dispatch(page, tick) {
    const of = (type) => tick.filter(({ action }) => action.type === type);
    const events = [
      ...of('keyDown').map(({ action }) => this.#keyboard.down(action.value)),
      ...of('keyUp').map(({ action }) => this.#keyboard.up(action.value)),
      ...this.#pressed(of('pointerDown'), true),
      ...this.#pressed(of('pointerUp'), false),
      ...of('scroll').map(({ action: { x, y, deltaX = 0, deltaY = 0 } }) => [
        'Input.dispatchMouseEvent', { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers: this.#keyboard.modifiers },
      ]),
    ];
    await page.dispatch(events);
  }

  /** Return the events of fingers that are put down or lifted: they share one. */
  #pressed(parts, isDown) {
    for (const { source } of parts) this.#pointer(source).isDown = isDown;
    return parts.length ? [this.#touch(isDown ? 'touchStart' : 'touchEnd')] : [];
  }

  #pointer(source) {
    if (!this.#pointers.has(source.id)) {
      this.#pointers.set(source.id, { x: 0, y: 0, isDown: false, number: this.#pointers.size });
    }
    return this.#pointers.get(source.id);
  }

  #touches() {
    return [...this.#pointers.values()].filter(({ isDown }) => isDown);
  }

  #touch(type) {
    const touchPoints = this.#touches().map(({ x, y, number }) => ({ x: Math.round(x), y: Math.round(y), id: number }));
    return ['Input.dispatchTouchEvent', { type, touchPoints, modifiers: this.#keyboard.modifiers }];
  }
}

/** Return the number of ticks of a source. Throws InvalidArgument. */
function checked(source) {
  if (!TYPES.includes(source?.type) || !Array.isArray(source.actions)) {
    throw new errors.InvalidArgumentError(`actions must be a list of sources of the types ${TYPES.join(', ')}`);
  }
  return source.actions.length;
}
