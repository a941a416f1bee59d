// Shows push messages as notifications, and opens the link of a tapped one.

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));

self.addEventListener('push', (event) => {
  const { title, body, data } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, { body, data }));
});

async function open(url) {
  const [page] = await clients.matchAll({ type: 'window' });
  return page ? (await page.focus()).navigate(url) : clients.openWindow(url);
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.url));
});

async function tell(text) {
  for (const page of await clients.matchAll()) page.postMessage(text);
}

self.addEventListener('notificationclose', (event) => event.waitUntil(tell(`Dismissed ${event.notification.title}`)));
