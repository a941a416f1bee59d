// Permission dialogs: the page asks for a permission, the driver shows the dialog of the platform and sets what was pressed.

import { behavior } from './alerts.js';
import * as dialogs from './dialogs.js';

/** The package of Android's dialogs; their resource IDs have the name that it has without Google's services. */
const OWNER = 'com.google.android.permissioncontroller';
const IDS = 'com.android.permissioncontroller:id';
const ANDROID_IN_USE = [
  ['permission_allow_foreground_only_button', 'While using the app', true],
  ['permission_allow_one_time_button', 'Only this time', true],
  ['permission_deny_button', 'Don’t allow', false],
];
const ANDROID_ONCE = [['permission_allow_button', 'Allow', true], ['permission_deny_button', 'Don’t allow', false]];
const IOS_IN_USE = [['', 'Allow Once', true], ['', 'Allow While Using App', true], ['', 'Don’t Allow', false]];
const IOS_ONCE = [['', 'Don’t Allow', false], ['', 'Allow', true]];
/** The question that each platform asks, and its buttons: resource ID, label, whether it allows. */
const QUESTIONS = {
  Android: {
    geolocation: [(app) => `Allow ${app} to access this device’s location?`, ANDROID_IN_USE],
    camera: [(app) => `Allow ${app} to take pictures and record video?`, ANDROID_IN_USE],
    microphone: [(app) => `Allow ${app} to record audio?`, ANDROID_IN_USE],
    notifications: [(app) => `Allow ${app} to send you notifications?`, ANDROID_ONCE],
  },
  iOS: {
    geolocation: [(app) => `Allow “${app}” to use your location?`, IOS_IN_USE],
    camera: [(app) => `“${app}” Would Like to Access the Camera`, IOS_ONCE],
    microphone: [(app) => `“${app}” Would Like to Access the Microphone`, IOS_ONCE],
    notifications: [(app) => `“${app}” Would Like to Send You Notifications`, IOS_ONCE],
  },
};

/** Answer a page that asks for a permission: as the capabilities say, as before, or with a dialog. */
export function onQuestion(driver, page, { name, end }) {
  const [question, buttons] = QUESTIONS[driver.platform][name];
  const answer = async (isAllowed) => await driver.allow(name, isAllowed ? 'granted' : 'denied');
  const [action] = behavior(driver).split(' ');
  dialogs.queue(driver, {
    page,
    end,
    owner: driver.platform === 'Android' ? OWNER : '',
    isAnswered: () => ['granted', 'denied'].includes(driver.permissions.get(name)),
    automatic: action === 'ignore' ? null : () => answer(usual(driver.platform, buttons, action === 'accept')),
    answer: (pressed) => answer(pressed === 'true'),
    html: async () => html(driver.platform, question(dialogs.escaped(await nameOf(driver, page))), buttons),
  });
}

/** Return whether the button allows that a driver presses by itself: XCUITest takes the last one to accept. */
function usual(platform, buttons, isAccepted) {
  if (platform === 'Android') return isAccepted;

  const [, , isAllowed] = buttons.at(isAccepted ? -1 : 0);
  return isAllowed;
}

async function nameOf(driver, page) {
  const { title } = await page.address();
  return title || driver.application || 'The app';
}

function html(platform, question, buttons) {
  const made = buttons.map(([id, label, isAllowed]) => {
    const attribute = id ? `id="${IDS}/${id}"` : '';
    return `<button ${attribute} data-answer="${isAllowed}">${label}</button>`;
  });
  if (platform === 'iOS') {
    return `<div class="panel" role="alertdialog" aria-label="${question}">
      <div class="title">${question}</div><div class="buttons column">${made.join('')}</div></div>`;
  }

  return `<div class="panel" id="${IDS}/grant_dialog" data-class="android.widget.LinearLayout">
    <div class="title" id="${IDS}/permission_message">${question}</div>
    <div class="buttons column" data-class="android.widget.LinearLayout">${made.join('')}</div></div>`;
}
