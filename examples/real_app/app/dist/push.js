// Asks for permission, requests a push token, and shows what the service worker says.
import { onTap, setting, show } from './screen.js';

async function enable() {
  if (await Notification.requestPermission() !== 'granted') return show('push', 'Notifications are off');

  const answer = await fetch(setting('push'), { method: 'POST', body: JSON.stringify({
    type: 'fcm', deviceId: setting('platform'), development: false, appId: 'com.example.notes',
    deviceToken: crypto.randomUUID(), projectId: '7d1f4f0a-52c4-4c0e-9a55-3f6a7c1f2b90',
  }) });
  show('push', answer.ok ? 'Notifications are on' : 'Try again later');
}

onTap('notify', enable);
navigator.serviceWorker.addEventListener('message', ({ data }) => show('push', data));
await navigator.serviceWorker.register('/worker.js');
