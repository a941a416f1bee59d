// `mobile: startActivity`: a web app has one activity, gets extras as its arguments, and views links.

import { errors } from 'appium/driver.js';
import { LAUNCHERS } from './background.js';
import { refusal } from './scripts.js';

const MAIN = 'android.intent.action.MAIN';
const VIEW = 'android.intent.action.VIEW';
const CATEGORIES = ['LAUNCHER', 'DEFAULT', 'BROWSABLE'].map((name) => `android.intent.category.${name}`);
const MAIN_ACTIVITY = '.MainActivity';
const LAUNCHER_ACTIVITY = '.NexusLauncherActivity';
/** The type of an extra without a value: `am start --esn name`. */
const NULL_TYPE = 'sn';

/** Return the activity of an app. */
export function activityOf(driver, id) {
  if (id === LAUNCHERS.Android) return LAUNCHER_ACTIVITY;

  return (id === driver.application && driver.opts.appActivity) || MAIN_ACTIVITY;
}

/** Start the activity of an app, or view a link in it; refuse what a web app cannot be asked for. */
export async function startActivity(driver, args, name) {
  const component = args.component ?? args.intent;
  const [id, activity] = component ? component.split('/') : [args.package];

  const action = args.action ?? (args.uri ? VIEW : MAIN);
  if (![MAIN, VIEW].includes(action)) throw refusal(name, `it has no activity for the action ${action}`);
  if ((action === VIEW) !== Boolean(args.uri)) throw refusal(name, `${VIEW} and a uri belong together`);

  const other = [args.categories ?? []].flat().find((category) => !CATEGORIES.includes(category));
  if (other) throw refusal(name, `it has no activity of the category ${other}`);
  if (activity) checkActivity(driver, id, activity, name);

  const extras = extrasIn(args.extras ?? []);
  if (args.uri && extras.length > 0) throw refusal(name, 'a link that is viewed has no extras: add them to its query');

  if (args.stop) await driver.terminateApp(id);
  if (args.uri) await driver.deepLink(args.uri, id);
  else await driver.launchApp(id, extras);
}

function checkActivity(driver, id, activity, name) {
  const own = activityOf(driver, id);
  // A name that begins with a dot is relative to the package.
  const fullName = (part) => (part.startsWith('.') ? `${id}${part}` : part);
  if (fullName(activity) === fullName(own)) return;

  const instead = "open a place in the app with 'mobile: deepLink'";
  throw refusal(name, `${id} has no activity ${activity}: the activity of a web app is ${own}, ${instead}`);
}

/** Return `[['s', 'name', 'value']]` as the arguments of `am start`: `--es name value`. Throws InvalidArgument. */
function extrasIn(extras) {
  if (!Array.isArray(extras) || !extras.every(isExtra)) {
    throw new errors.InvalidArgumentError(`extras must be a list such as [['s', 'name', 'value']], not ${JSON.stringify(extras)}`);
  }

  const words = [];
  for (const [type, key, value] of extras) {
    words.push(`--e${type}`, String(key));
    if (type !== NULL_TYPE) words.push(String(value));
  }

  return words;
}

function isExtra(extra) {
  if (!Array.isArray(extra)) return false;

  const [type, key, value] = extra;
  return /^[a-z]{1,3}$/.test(type) && Boolean(key) && (type === NULL_TYPE || value !== undefined);
}
