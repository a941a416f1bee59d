// The capabilities that are refused: words that WebDriver does not have, and what would reach the service's machine.

import { errors } from 'appium/driver.js';

const FILES = 'it would write files of the machine that runs the service';
const PROGRAMS = 'it would run a program of the machine that runs the service';
const PORTS = 'it would open a port of the machine that runs the service';

/** What the base class checks. chromedriver, which starts later, would refuse other words only then. */
export const CONSTRAINTS = {
  browserName: { isString: true },
  pageLoadStrategy: { inclusion: ['none', 'eager', 'normal'] },
  unhandledPromptBehavior: {
    inclusion: ['dismiss', 'accept', 'dismiss and notify', 'accept and notify', 'ignore'],
  },
};

/** Effects of the refused capabilities, by name without the vendor prefix. */
const REFUSED = {
  logPath: FILES,
  verbose: FILES,
  executable: PROGRAMS,
  executableDir: PROGRAMS,
  chromedriverExecutable: PROGRAMS,
  chromedriverExecutableDir: PROGRAMS,
  chromedriverChromeMappingFile: PROGRAMS,
  chromedriverArgs: PROGRAMS,
  chromedriverPort: PORTS,
  chromedriverPorts: PORTS,
};
/** The same for browser options. */
const REFUSED_OPTIONS = {
  binary: PROGRAMS, debuggerAddress: PORTS, extensions: PROGRAMS, logPath: FILES, minidumpPath: FILES,
};
/** The same for browser arguments. */
const REFUSED_ARGUMENTS = [
  [/^remote-(debugging|allow)|^proxy-|^host-resolver-rules$/, PORTS],
  [/^(user-data-dir|disk-cache-dir|log-|enable-logging|crash-dumps-dir|screenshot|print-to-pdf)/, FILES],
  [/extension|-cmd-prefix$|-launcher$|-path$|^no-sandbox$|^disable-web-security$/, PROGRAMS],
];

/** Throw an error that names the first refused capability of a request. */
export function check(request) {
  for (const part of [request?.alwaysMatch, ...(request?.firstMatch ?? [])]) {
    for (const [name, value] of Object.entries(part ?? {})) {
      const plain = name.slice(name.indexOf(':') + 1);
      refuseIf(REFUSED, plain, value, name);
      if (plain === 'options') check({ alwaysMatch: value });
      if (/^(chrome|edge)Options$/.test(plain)) checkOptions(name, value ?? {});
    }
  }
}

function checkOptions(name, options) {
  for (const [option, value] of Object.entries(options)) refuseIf(REFUSED_OPTIONS, option, value, `${name}.${option}`);
  for (const argument of [options.args ?? []].flat().map(String)) {
    const [plain] = argument.replace(/^-+/, '').split('=');
    const rule = REFUSED_ARGUMENTS.find(([pattern]) => pattern.test(plain));
    if (rule) refuse(`${name}.args ${plain}`, rule[1]);
  }
}

function refuseIf(table, plain, value, shown) {
  if (Object.hasOwn(table, plain) && value) refuse(shown, table[plain]);
}

function refuse(shown, why) {
  throw new errors.SessionNotCreatedError(`the capability ${shown} is refused: ${why}. Leave it out.`);
}
