// Runs in the document's own world. Answers page-properties.js, and has the driver ask for permissions before the browser,
// which has no dialogs here; CHANNEL is defined by page.js.

document.addEventListener(CHANNEL, (event) => {
  event.stopImmediatePropagation();
  const [element] = event.composedPath();
  const { name, value } = event.detail;
  if (value !== undefined) element[name] = value;

  const current = element[name];
  // Objects of one world mean nothing in the other.
  const isPlain = ['string', 'number', 'boolean'].includes(typeof current);
  document.dispatchEvent(new CustomEvent(`${CHANNEL}-answer`, { detail: { value: isPlain ? current : undefined } }));
}, true);

const queryPermission = navigator.permissions?.query.bind(navigator.permissions);
let lastId = 0;

/** Wait until the user has allowed something or not, if that is not known yet. */
async function promptIfNeeded(name) {
  if ((await stateOf(name)) !== 'prompt') return;

  lastId += 1;
  const id = lastId;
  await new Promise((resolve) => {
    document.addEventListener(`${CHANNEL}-permitted-${id}`, resolve, { once: true });
    document.dispatchEvent(new CustomEvent(`${CHANNEL}-permission`, { detail: { id, name } }));
  });
}

async function stateOf(name) {
  return (await queryPermission({ name })).state;
}

/** Replace a method by one that first waits for a decision. */
function replace(prototype, name, make) {
  if (!prototype) return;

  const native = prototype[name];
  Object.defineProperty(prototype, name, { ...Object.getOwnPropertyDescriptor(prototype, name), value: make(native) });
}

if (queryPermission && isSecureContext) {
  const watches = new Map();
  replace(Geolocation.prototype, 'getCurrentPosition', (native) => function getCurrentPosition(success, ...more) {
    promptIfNeeded('geolocation').then(() => native.call(this, success, ...more));
  });
  replace(Geolocation.prototype, 'watchPosition', (native) => function watchPosition(success, ...more) {
    const id = watches.size + 1;
    watches.set(id, 0);
    promptIfNeeded('geolocation').then(() => {
      // Unless it was cleared meanwhile.
      if (watches.get(id) === 0) watches.set(id, native.call(this, success, ...more));
    });

    return id;
  });
  replace(Geolocation.prototype, 'clearWatch', (native) => function clearWatch(id) {
    native.call(this, watches.get(id) ?? 0);
    watches.set(id, null); // also one that waits for the decision
  });
  replace(MediaDevices.prototype, 'getUserMedia', (native) => async function getUserMedia(constraints) {
    if (constraints?.video) await promptIfNeeded('camera');
    if (constraints?.audio) await promptIfNeeded('microphone');

    return await native.call(this, constraints);
  });
  replace(globalThis.Notification, 'requestPermission', (native) => async function requestPermission(callback) {
    if (Notification.permission === 'default') await promptIfNeeded('notifications');

    const isDenied = (await stateOf('notifications')) === 'denied' && Notification.permission === 'default';
    if (!isDenied) return await native.call(this, callback);

    callback?.('denied');

    return 'denied';
  });
}
