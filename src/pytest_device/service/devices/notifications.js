// Redirects the notifications of web apps to the device's notification center: a headless browser may have none, and
// offers no way to tap them.
//
// Runs in service workers, and in pages before their own scripts. `call` is the binding to the device.

((call) => {
  const hasNotifications = self.isSecureContext && 'Notification' in self && 'ServiceWorkerRegistration' in self;
  if (!hasNotifications || '__pytestDevice' in self) return;
  const waiting = new Map();
  let asked = 0;
  let allowed = 'default';

  const ask = (what, fields) => new Promise((done) => {
    asked += 1;
    waiting.set(asked, done);
    call(JSON.stringify({ id: asked, what, ...fields }));
  });

  const native = Object.getOwnPropertyDescriptor(Notification, 'permission').get;
  const permission = () => {
    const own = native.call(Notification);
    return own === 'denied' ? allowed : own; // a browser without a notification center always denies
  };
  navigator.permissions.query({ name: 'notifications' }).then((status) => {
    const follow = () => { allowed = status.state === 'prompt' ? 'default' : status.state; };
    status.addEventListener('change', follow);
    follow();
  }).catch(() => {}); // documents with an opaque origin have no permissions

  const notificationOf = ({ key, title, options }) => {
    const shown = { body: '', tag: '', data: null, actions: [], ...options, title, close: () => void ask('close', { key }) };
    return Object.create(Notification.prototype, Object.getOwnPropertyDescriptors(shown));
  };

  Object.defineProperty(Notification, 'permission', { get: permission });
  Notification.requestPermission = async (done) => {
    if (permission() === 'default') allowed = await ask('permission', { origin: self.origin });
    done?.(permission());
    return permission();
  };
  ServiceWorkerRegistration.prototype.showNotification = async function showNotification(title, options = {}) {
    if (permission() === 'denied') throw new TypeError('No notification permission has been granted for this origin.');
    await ask('show', { title: String(title), options, scope: this.scope });
  };
  ServiceWorkerRegistration.prototype.getNotifications = async function getNotifications({ tag } = {}) {
    const all = await ask('list', { scope: this.scope });
    return all.filter((one) => !tag || one.options.tag === tag).map(notificationOf);
  };

  const bytesOf = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (one) => one.charCodeAt(0));
  const textOf = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  const refused = (name, why) => { throw new DOMException(why, name); };
  const CURVE = { namedCurve: 'P-256' };

  const subscriptionOf = (scope, { endpoint, key, ...keys }) => {
    const facts = {
      endpoint,
      expirationTime: null,
      options: { userVisibleOnly: true, applicationServerKey: bytesOf(key).buffer },
      getKey: (name) => (name in keys ? bytesOf(keys[name]).buffer : null),
      toJSON: () => ({ endpoint, expirationTime: null, keys }),
      unsubscribe: () => ask('unsubscribe', { scope }),
    };
    return Object.create(PushSubscription.prototype, Object.getOwnPropertyDescriptors(facts));
  };

  /** Subscribe a worker, once for each key of a server. */
  async function subscribed(scope, { userVisibleOnly, applicationServerKey } = {}) {
    if (!applicationServerKey) refused('AbortError', 'Registration failed - missing applicationServerKey');
    if (!userVisibleOnly) refused('NotAllowedError', 'userVisibleOnly must be true.');
    if (permission() === 'default') allowed = await ask('permission', { origin: self.origin });
    if (permission() === 'denied') refused('NotAllowedError', 'Registration failed - permission denied');
    const given = applicationServerKey;
    const key = typeof given === 'string' ? textOf(bytesOf(given)) : textOf(ArrayBuffer.isView(given) ? new Uint8Array(given) : given);
    await crypto.subtle.importKey('raw', bytesOf(key), { name: 'ECDSA', ...CURVE }, false, ['verify'])
      .catch(() => refused('InvalidAccessError', 'The applicationServerKey is no point of the curve P-256.'));
    const known = await ask('subscription', { scope });
    if (known && known.key !== key) refused('InvalidStateError', 'Registration failed - another applicationServerKey');
    if (known) return subscriptionOf(scope, known);
    const pair = await crypto.subtle.generateKey({ name: 'ECDH', ...CURVE }, true, ['deriveBits']);
    const keys = {
      key,
      p256dh: textOf(await crypto.subtle.exportKey('raw', pair.publicKey)),
      auth: textOf(crypto.getRandomValues(new Uint8Array(16))),
      own: await crypto.subtle.exportKey('jwk', pair.privateKey),
    };
    return subscriptionOf(scope, await ask('subscribe', { scope, keys }));
  }

  Object.defineProperty(ServiceWorkerRegistration.prototype, 'pushManager', {
    configurable: true,
    get() {
      const { scope } = this;
      return Object.create(PushManager.prototype, Object.getOwnPropertyDescriptors({
        subscribe: (options) => subscribed(scope, options),
        getSubscription: async () => {
          const known = await ask('subscription', { scope });
          return known ? subscriptionOf(scope, known) : null;
        },
        permissionState: async () => (permission() === 'default' ? 'prompt' : permission()),
      }));
    },
  });

  const derived = async (salt, secret, info, length) => {
    const key = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
    return crypto.subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt, info }, key, length * 8);
  };

  /** Return whether the sender's token is signed with its key (RFC 8292). */
  async function signed(token, key) {
    const [head, payload, signature] = token.split('.');
    const ecdsa = { name: 'ECDSA', hash: 'SHA-256', ...CURVE };
    const known = await crypto.subtle.importKey('raw', bytesOf(key), ecdsa, false, ['verify']);
    return crypto.subtle.verify(ecdsa, known, bytesOf(signature), new TextEncoder().encode(`${head}.${payload}`));
  }

  /** Return the text of an encrypted message (RFC 8291), which is one record. */
  async function decrypted(body, { own, p256dh, auth }) {
    const encode = (text) => new TextEncoder().encode(text);
    const [salt, length] = [body.slice(0, 16), body[20]];
    const [sender, record] = [body.slice(21, 21 + length), body.slice(21 + length)];
    const ecdh = { name: 'ECDH', ...CURVE };
    const theirs = await crypto.subtle.importKey('raw', sender, ecdh, false, []);
    const ours = await crypto.subtle.importKey('jwk', own, ecdh, false, ['deriveBits']);
    const shared = await crypto.subtle.deriveBits({ name: 'ECDH', public: theirs }, ours, 256);
    const info = new Uint8Array([...encode('WebPush: info\0'), ...bytesOf(p256dh), ...sender]);
    const secret = await derived(bytesOf(auth), shared, info, 32);
    const name = 'AES-GCM';
    const content = await derived(salt, secret, encode('Content-Encoding: aes128gcm\0'), 16);
    const iv = await derived(salt, secret, encode('Content-Encoding: nonce\0'), 12);
    const key = await crypto.subtle.importKey('raw', content, name, false, ['decrypt']);
    const padded = new Uint8Array(await crypto.subtle.decrypt({ name, iv }, key, record));
    const end = padded.findLastIndex((one) => one !== 0);
    if (padded[end] !== 2) throw new Error('the padding has no delimiter');
    return new TextDecoder('utf-8', { fatal: true }).decode(padded.slice(0, end));
  }

  /** Return the text of a message to a subscription, or what is wrong with it. */
  async function received(keys, token, body) {
    if (!await signed(token, keys.key).catch(() => false)) return { status: 403, problem: 't is not signed with k' };
    try {
      return { data: body && await decrypted(bytesOf(body), keys) };
    } catch {
      return { status: 400, problem: 'the message is not encrypted for the subscription, or is no text' };
    }
  }

  if ('clients' in self) {
    self.clients.openWindow = (url) => ask('open', { url: new URL(url, self.location).href });
    WindowClient.prototype.focus = async function focus() { return this; }; // a tap already shows the app
  }

  /** Dispatch a notification event in the worker, and await every promise passed to its `waitUntil`. */
  async function answered(type, fields, action, reply) {
    const waits = [];
    const event = Object.setPrototypeOf(new ExtendableEvent(type), NotificationEvent.prototype);
    const facts = { notification: notificationOf(fields), action, reply, waitUntil: (work) => void waits.push(work) };
    Object.defineProperties(event, Object.getOwnPropertyDescriptors(facts));
    self.dispatchEvent(event);
    for (let done = 0; done < waits.length; done += 1) await waits[done];
  }

  Object.defineProperty(self, '__pytestDevice', {
    value: {
      answered,
      received,
      answer(id, value) {
        waiting.get(id)?.(value);
        waiting.delete(id);
      },
    },
  });
})(self.__pytestDeviceCall);
