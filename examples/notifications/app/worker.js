// Shows what is pushed; a message with data alone is handled without showing anything.

const ACTIONS = [{ action: 'reply', type: 'text', title: 'Reply' }, { action: 'later', title: 'Later' }];

async function notifyPages(text) {
  for (const page of await clients.matchAll()) page.postMessage(text);
}

async function synchronize(what) {
  const state = await caches.open('state');
  await state.put('/synchronized', new Response(what));
  await notifyPages(`Synchronized ${what}`);
}

async function open(url) {
  const [page] = await clients.matchAll({ type: 'window' });
  if (!page) return clients.openWindow(url);
  return (await page.focus()).navigate(url);
}

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));

self.addEventListener('push', (event) => {
  const { title, body, data } = event.data.json();
  const isShown = title !== undefined || body !== undefined;
  event.waitUntil(isShown
    ? self.registration.showNotification(title, { body, data, actions: ACTIONS })
    : synchronize(data.sync));
});

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  if (event.action === 'reply') event.waitUntil(notifyPages(`Replied ${event.reply}`));
  else if (event.action === '') event.waitUntil(open(event.notification.data.url));
});

self.addEventListener('notificationclose', (event) => {
  event.waitUntil(notifyPages(`Dismissed ${event.notification.title}`));
});
