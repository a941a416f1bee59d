// Redirects the notifications of web apps to the device's notification center: a headless browser may have none, and
// offers no way to tap them.
//
// Runs in service workers, and in pages before their own scripts. `call` is the binding to the device.

((call) => {
  const hasNotifications = self.isSecureContext && 'Notification' in self && 'ServiceWorkerRegistration' in self;
  if (!hasNotifications || '__pytestDevice' in self) return;

  const CURVE = { namedCurve: 'P-256' };
  const AES = 'AES-GCM';

  const pending = new Map(); // functions that take the device's answer, by the ID of the request
  let lastId = 0;
  let promptState = 'default'; // what the user answered, in the words of Notification.permission

  /** Send a request to the device, and return its answer. */
  const ask = (what, fields) => new Promise((resolve) => {
    lastId += 1;
    pending.set(lastId, resolve);
    call(JSON.stringify({ id: lastId, what, ...fields }));
  });

  /** Return an object of a class that has no constructor, with properties of its own. */
  const instanceOf = (type, properties) =>
    Object.create(type.prototype, Object.getOwnPropertyDescriptors(properties));

  const fail = (name, message) => {
    throw new DOMException(message, name);
  };

  // Permissions.

  const nativePermission = Object.getOwnPropertyDescriptor(Notification, 'permission').get;

  const permission = () => {
    const state = nativePermission.call(Notification);

    // A browser without a notification center always denies.
    return state === 'denied' ? promptState : state;
  };

  const promptIfNeeded = async () => {
    if (permission() === 'default') promptState = await ask('permission', { origin: self.origin });
  };

  navigator.permissions.query({ name: 'notifications' }).then((status) => {
    const update = () => {
      promptState = status.state === 'prompt' ? 'default' : status.state;
    };
    status.addEventListener('change', update);
    update();
  }).catch(() => {}); // documents with an opaque origin have no permissions

  Object.defineProperty(Notification, 'permission', { get: permission });

  Notification.requestPermission = async (callback) => {
    await promptIfNeeded();
    callback?.(permission());

    return permission();
  };

  // Notifications.

  const notificationOf = ({ key, title, options }) => instanceOf(Notification, {
    body: '',
    tag: '',
    data: null,
    actions: [],
    ...options,
    title,
    close: () => void ask('close', { key }),
  });

  ServiceWorkerRegistration.prototype.showNotification = async function showNotification(title, options = {}) {
    if (permission() === 'denied') throw new TypeError('No notification permission has been granted for this origin.');

    await ask('show', { title: String(title), options, scope: this.scope });
  };

  ServiceWorkerRegistration.prototype.getNotifications = async function getNotifications({ tag } = {}) {
    const notifications = await ask('list', { scope: this.scope });

    return notifications.filter(({ options }) => !tag || options.tag === tag).map(notificationOf);
  };

  // Subscriptions. Keys travel as base64url without padding (RFC 8291 and RFC 8292).

  const bytesOf = (text) => {
    const binary = atob(text.replace(/-/g, '+').replace(/_/g, '/'));

    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  };

  const textOf = (bytes) => {
    const base64 = btoa(String.fromCharCode(...new Uint8Array(bytes)));

    return base64.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  };

  const subscriptionOf = (scope, { endpoint, key, ...keys }) => instanceOf(PushSubscription, {
    endpoint,
    expirationTime: null,
    options: { userVisibleOnly: true, applicationServerKey: bytesOf(key).buffer },
    getKey: (name) => (name in keys ? bytesOf(keys[name]).buffer : null),
    toJSON: () => ({ endpoint, expirationTime: null, keys }),
    unsubscribe: () => ask('unsubscribe', { scope }),
  });

  /** Return an application server's key, which an app passes as text, bytes or a buffer, as text. */
  const serverKeyOf = (value) => {
    if (typeof value === 'string') return textOf(bytesOf(value)); // without padding

    return textOf(ArrayBuffer.isView(value) ? new Uint8Array(value) : value);
  };

  /** Subscribe a worker, once for each key of a server. */
  async function subscribe(scope, { userVisibleOnly, applicationServerKey } = {}) {
    if (!applicationServerKey) fail('AbortError', 'Registration failed - missing applicationServerKey');
    if (!userVisibleOnly) fail('NotAllowedError', 'userVisibleOnly must be true.');

    await promptIfNeeded();
    if (permission() === 'denied') fail('NotAllowedError', 'Registration failed - permission denied');

    const key = serverKeyOf(applicationServerKey);
    await crypto.subtle.importKey('raw', bytesOf(key), { name: 'ECDSA', ...CURVE }, false, ['verify'])
      .catch(() => fail('InvalidAccessError', 'The applicationServerKey is no point of the curve P-256.'));

    const existing = await ask('subscription', { scope });
    if (existing && existing.key !== key) {
      fail('InvalidStateError', 'Registration failed - another applicationServerKey');
    }
    if (existing) return subscriptionOf(scope, existing);

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

      return instanceOf(PushManager, {
        subscribe: (options) => subscribe(scope, options),
        getSubscription: async () => {
          const existing = await ask('subscription', { scope });

          return existing ? subscriptionOf(scope, existing) : null;
        },
        permissionState: async () => (permission() === 'default' ? 'prompt' : permission()),
      });
    },
  });

  // Messages.

  /** Return whether the sender's token is signed with its key (RFC 8292). */
  async function isSigned(token, key) {
    const [head, payload, signature] = token.split('.');
    const algorithm = { name: 'ECDSA', hash: 'SHA-256', ...CURVE };
    const publicKey = await crypto.subtle.importKey('raw', bytesOf(key), algorithm, false, ['verify']);
    const content = new TextEncoder().encode(`${head}.${payload}`);

    return crypto.subtle.verify(algorithm, publicKey, bytesOf(signature), content);
  }

  /** Derive a number of bytes from a secret (RFC 5869). */
  async function derive(salt, secret, info, length) {
    const key = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);

    return crypto.subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt, info }, key, length * 8);
  }

  /** Return the text of an encrypted message (RFC 8291), which is one record. */
  async function decrypt(body, { own, p256dh, auth }) {
    const encode = (text) => new TextEncoder().encode(text);

    // The header: salt, record size, length of the sender's key, the key (RFC 8188 section 2.1).
    const salt = body.slice(0, 16);
    const keyEnd = 21 + body[20];
    const senderKey = body.slice(21, keyEnd);
    const record = body.slice(keyEnd);

    const algorithm = { name: 'ECDH', ...CURVE };
    const publicKey = await crypto.subtle.importKey('raw', senderKey, algorithm, false, []);
    const privateKey = await crypto.subtle.importKey('jwk', own, algorithm, false, ['deriveBits']);
    const shared = await crypto.subtle.deriveBits({ name: 'ECDH', public: publicKey }, privateKey, 256);

    const info = new Uint8Array([...encode('WebPush: info\0'), ...bytesOf(p256dh), ...senderKey]);
    const secret = await derive(bytesOf(auth), shared, info, 32);
    const contentKey = await derive(salt, secret, encode('Content-Encoding: aes128gcm\0'), 16);
    const iv = await derive(salt, secret, encode('Content-Encoding: nonce\0'), 12);

    const key = await crypto.subtle.importKey('raw', contentKey, AES, false, ['decrypt']);
    const padded = new Uint8Array(await crypto.subtle.decrypt({ name: AES, iv }, key, record));

    // The last record ends with a 2 and any number of zeros (RFC 8188 section 2).
    const end = padded.findLastIndex((byte) => byte !== 0);
    if (padded[end] !== 2) throw new Error('the padding has no delimiter');

    return new TextDecoder('utf-8', { fatal: true }).decode(padded.slice(0, end));
  }

  /** Return the text of a message to a subscription, or what is wrong with it. */
  async function received(keys, token, body) {
    const hasValidToken = await isSigned(token, keys.key).catch(() => false);
    if (!hasValidToken) return { status: 403, problem: 't is not signed with k' };

    try {
      return { data: body && await decrypt(bytesOf(body), keys) };
    } catch {
      return { status: 400, problem: 'the message is not encrypted for the subscription, or is no text' };
    }
  }

  // Taps.

  if ('clients' in self) {
    self.clients.openWindow = (url) => ask('open', { url: new URL(url, self.location).href });
    // A tap already shows the app.
    WindowClient.prototype.focus = async function focus() {
      return this;
    };
  }

  /** Dispatch a notification event in the worker, and await every promise passed to its `waitUntil`. */
  async function answered(type, fields, action, reply) {
    const promises = [];
    const event = Object.setPrototypeOf(new ExtendableEvent(type), NotificationEvent.prototype);
    const properties = {
      notification: notificationOf(fields),
      action,
      reply,
      waitUntil: (promise) => void promises.push(promise),
    };
    Object.defineProperties(event, Object.getOwnPropertyDescriptors(properties));
    self.dispatchEvent(event);

    // The list may grow meanwhile, by a promise that waits for another one.
    for (const promise of promises) await promise;
  }

  Object.defineProperty(self, '__pytestDevice', {
    value: {
      answered,
      received,
      answer(id, value) {
        pending.get(id)?.(value);
        pending.delete(id);
      },
    },
  });
})(self.__pytestDeviceCall);
