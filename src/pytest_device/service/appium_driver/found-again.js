// Finds elements again whose view is gone, by the locator that they were found with, as the UiAutomator2 server does.

import { errors } from 'appium/driver.js';
import { isError } from './alerts.js';

/** Locators that are kept; beyond that, the oldest are forgotten. */
const MAX_LOCATORS = 1000;

export class FoundAgain {
  /** Functions that find an element again, by the ID that the suite has. */
  #searches = new Map();
  /** The current IDs of elements that were found again. */
  #current = new Map();

  /** Remember how an element was found: `search` returns its ID, or null. */
  remember(element, search) {
    // Deleted first, so that it is the newest one.
    this.#searches.delete(element);
    this.#searches.set(element, search);
    if (this.#searches.size <= MAX_LOCATORS) return;

    const [oldest] = this.#searches.keys();
    this.#searches.delete(oldest);
    this.#current.delete(oldest);
  }

  /** Do something with an element; if it is gone, find it again once. Throws StaleElementReference. */
  async use(element, work) {
    try {
      return await work(this.#current.get(element) ?? element);
    } catch (error) {
      const search = this.#searches.get(element);
      if (!search || !isError(error, errors.StaleElementReferenceError)) throw error;

      const current = await search();
      if (!current) throw error;

      this.#current.set(element, current);
      return await work(current);
    }
  }
}
