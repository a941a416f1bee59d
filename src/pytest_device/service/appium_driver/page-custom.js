// Runs in the document's own world. Answers page-properties.js, and has the driver ask for permissions before the browser,
// which has no dialogs here; CHANNEL is defined by page.js.

document.addEventListener(CHANNEL, (event) => {
  event.stopImmediatePropagation();
  const [element] = event.composedPath();
  const { name, value } = event.detail;
  if (value !== undefined) element[name] = value;
  const now = element[name];
  const isPlain = ['string', 'number', 'boolean'].includes(typeof now);
  document.dispatchEvent(new CustomEvent(`${CHANNEL}-answer`, { detail: { value: isPlain ? now : undefined } }));
}, true);

const queryPermission = navigator.permissions?.query.bind(navigator.permissions);
let asked = 0;

/** Wait until the user has allowed something or not, if that is not known yet. */
async function decided(name) {
  if ((await stateOf(name)) !== 'prompt') return;
  asked += 1;
  const id = asked;
  await new Promise((done) => {
    document.addEventListener(`${CHANNEL}-permitted-${id}`, done, { once: true });
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
    decided('geolocation').then(() => native.call(this, success, ...more));
  });
  replace(Geolocation.prototype, 'watchPosition', (native) => function watchPosition(success, ...more) {
    const id = watches.size + 1;
    watches.set(id, 0);
    decided('geolocation').then(() => watches.get(id) === 0 && watches.set(id, native.call(this, success, ...more)));
    return id;
  });
  replace(Geolocation.prototype, 'clearWatch', (native) => function clearWatch(id) {
    native.call(this, watches.get(id) ?? 0);
    watches.set(id, null); // also one that waits for the decision
  });
  replace(MediaDevices.prototype, 'getUserMedia', (native) => async function getUserMedia(wanted) {
    if (wanted?.video) await decided('camera');
    if (wanted?.audio) await decided('microphone');
    return await native.call(this, wanted);
  });
  replace(globalThis.Notification, 'requestPermission', (native) => async function requestPermission(done) {
    if (Notification.permission === 'default') await decided('notifications');
    if ((await stateOf('notifications')) !== 'denied' || Notification.permission !== 'default') return await native.call(this, done);
    done?.('denied');
    return 'denied';
  });
}
