// Starts the newest downloaded update, and the embedded one if that fails; then checks for the next one.
import { setting, show } from './screen.js';

const embedded = { id: '00000000-0000-4000-8000-000000000001', code: "show('version', 'Version 1')" };
const failed = JSON.parse(localStorage.getItem('failed') ?? '[]');
const downloaded = JSON.parse(localStorage.getItem('downloaded') ?? 'null');
let running = downloaded && !failed.includes(downloaded.id) ? downloaded : embedded;
let fatalError = '';

const start = (update) => new Function('show', update.code)(show);
try {
  start(running);
} catch (error) {
  fatalError = error.message;
  failed.push(running.id);
  localStorage.setItem('failed', JSON.stringify(failed));
  running = embedded;
  start(running);
}

async function check() {
  const answer = await fetch(setting('updates'), { headers: {
    accept: 'application/json',
    'vendor-protocol-version': '1',
    'vendor-platform': setting('platform'),
    'vendor-runtime-version': '1.0.0',
    'vendor-current-update-id': running.id,
    'vendor-embedded-update-id': embedded.id,
    'vendor-client-id': setting('platform'),
    ...(fatalError && { 'vendor-fatal-error': fatalError }),
    ...(failed.length && { 'vendor-recent-failed-update-ids': failed.map((id) => `"${id}"`).join(', ') }),
  } });
  if (answer.status === 204) return 'up to date';
  if (!answer.ok) return `failed with ${answer.status}`;

  const { id, launchAsset } = await answer.json();
  if (failed.includes(id)) return 'up to date';
  const code = await (await fetch(launchAsset.url)).text();
  localStorage.setItem('downloaded', JSON.stringify({ id, code }));
  return 'pending';
}

show('update', await check());
