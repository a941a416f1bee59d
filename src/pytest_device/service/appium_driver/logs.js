// Logs: the console of the page, by the names of each platform.

import { errors } from 'appium/driver.js';

const TYPES = { Android: ['logcat', 'browser'], iOS: ['syslog', 'crashlog', 'safariConsole'] };

export const commands = {
  async getLogTypes() {
    return TYPES[this.platform];
  },

  /** Return the log since the last call: [{ timestamp, level, message }]. */
  async getLog(type) {
    const types = TYPES[this.platform];
    if (!types.includes(type)) throw new errors.InvalidArgumentError(`no log ${type}: there are ${types.join(', ')}`);

    const lines = await this.device.log();
    this.logRead ??= {};
    const fresh = lines.slice(freshFrom(lines, this.logRead[type]));
    this.logRead[type] = lines.at(-1);

    return type === 'crashlog' ? fresh.filter(({ level }) => level === 'SEVERE') : fresh;
  },
};

/** Return the index of the first line after the last one that was read: by the line, since the device drops old lines. */
function freshFrom(lines, last) {
  if (!last) return 0;

  return lines.findLastIndex(({ timestamp, message }) => timestamp === last.timestamp && message === last.message) + 1;
}
