// Notifications of web apps go to the device's own center: a headless browser may have none, and no way to tap one.
//
// Runs in pages before their scripts, and in service workers. `call` is the binding to the device.

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
    return own === 'denied' ? allowed : own; // a browser without a center always denies
  };
  navigator.permissions.query({ name: 'notifications' }).then((status) => {
    const follow = () => { allowed = status.state === 'prompt' ? 'default' : status.state; };
    status.addEventListener('change', follow);
    follow();
  }).catch(() => {}); // a document without an origin of its own has no permissions

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
  if ('clients' in self) {
    self.clients.openWindow = (url) => ask('open', { url: new URL(url, self.location).href });
    WindowClient.prototype.focus = async function focus() { return this; }; // an answered notification shows its app
  }

  /** Fire an event about a notification in the worker, and wait for all that it waits for. */
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
      answer(id, value) {
        waiting.get(id)?.(value);
        waiting.delete(id);
      },
    },
  });
})(self.__pytestDeviceCall);
