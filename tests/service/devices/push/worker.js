const say = async (text) => { for (const page of await clients.matchAll()) page.postMessage(text); };

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));
self.addEventListener('push', (event) => {
  const { title, ...options } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, options).catch((error) => say(String(error))));
});
self.addEventListener('notificationclick', (event) => {
  if (event.notification.data?.fails) throw new Error('no');
  event.waitUntil((async () => {
    const { data } = event.notification;
    if (data?.url) return clients.openWindow(data.url);
    return say(JSON.stringify([event instanceof NotificationEvent, event.action, event.reply ?? null]));
  })());
});
self.addEventListener('notificationclose', (event) => event.waitUntil(say(`closed ${event.notification.title}`)));
