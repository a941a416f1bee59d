// Logs: the console of the page, by the names of each platform.

import { errors } from 'appium/driver.js';

const TYPES = { Android: ['logcat', 'browser'], iOS: ['syslog', 'crashlog', 'safariConsole'] };

export const commands = {
  async getLogTypes() {
    return TYPES[this.platform];
  },

  /** Return what was logged since it was asked for last: [{ timestamp, level, message }]. */
  async getLog(type) {
    const types = TYPES[this.platform];
    if (!types.includes(type)) throw new errors.InvalidArgumentError(`there is no log ${type}: ${types.join(', ')}`);
    const lines = await this.device.log();
    this.logRead ??= {};
    const fresh = lines.slice(freshFrom(lines, this.logRead[type]));
    this.logRead[type] = lines.at(-1);
    return type === 'crashlog' ? fresh.filter(({ level }) => level === 'SEVERE') : fresh;
  },
};

/** Where the lines after one that was read begin. */
function freshFrom(lines, last) {
  const same = (line) => last && line.timestamp === last.timestamp && line.message === last.message;
  return lines.findLastIndex(same) + 1;
}
