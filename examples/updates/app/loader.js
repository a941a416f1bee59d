// A minimal client for the published update protocol. It runs the newest downloaded and verified bundle, or else the
// embedded one, and falls back to the embedded one if that fails. Real apps use a library for this.
const embedded = {
  id: '00000000-0000-4000-8000-000000000001',
  createdAt: '2026-01-01T00:00:00.000Z',
  code: "show('title', 'Notes 1')",
};
const runtimeVersion = '1.0';

const show = (name, text) => { document.querySelector(`[data-testid=${name}]`).textContent = text; };
const argument = (name) =>
  (window.launchArguments ?? []).find((one) => one.startsWith(`--${name}=`))?.slice(name.length + 3);
const setting = (name) => localStorage.getItem(name);
for (const name of ['url', 'key', 'platform', 'device']) {
  if (argument(name) !== undefined) localStorage.setItem(name, argument(name));  // later launches have no arguments
}
const stored = () => JSON.parse(localStorage.getItem('update') ?? 'null');
const failed = () => JSON.parse(localStorage.getItem('failed') ?? '[]');
const bytes = (text, alphabet = text.replaceAll('-', '+').replaceAll('_', '/')) =>
  Uint8Array.from(atob(alphabet), (sign) => sign.charCodeAt(0));
const base64url = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

let running = embedded;

function report(emergencyLaunchReason = null) {
  show('constants', JSON.stringify({
    channel: null,
    checkAutomatically: 'ON_LOAD',
    createdAt: running.createdAt,
    emergencyLaunchReason,
    isEmbeddedLaunch: running.id === embedded.id,
    isEmergencyLaunch: emergencyLaunchReason !== null,
    isEnabled: true,
    manifest: {},
    runtimeVersion,
    updateId: running.id,
  }));
}

function launch() {
  const update = stored();
  if (update && !failed().includes(update.id)) running = update;
  try {
    new Function('show', running.code)(show);
    report();
  } catch (error) {
    localStorage.setItem('failed', JSON.stringify([...failed(), running.id]));
    running = embedded;
    new Function('show', running.code)(show);
    report(error.message);
  }
}

async function verified(body, header) {
  const signature = header?.match(/sig="([^"]+)"/)?.[1];
  if (!signature) throw new Error('it is not signed');
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('spki', bytes(setting('key')), algorithm, false, ['verify']);
  if (!await crypto.subtle.verify(algorithm, key, bytes(signature), body)) throw new Error('its signature is wrong');
}

async function check() {
  const answer = await fetch(setting('url'), { headers: {
    accept: 'application/json',
    'vendor-protocol-version': '1',
    'vendor-platform': setting('platform'),
    'vendor-runtime-version': runtimeVersion,
    'vendor-current-update-id': running.id,
    'vendor-embedded-update-id': embedded.id,
    'vendor-expect-signature': 'sig, keyid="root", alg="rsa-v1_5-sha256"',
    'vendor-client-id': setting('device'),
  } });
  if (answer.status === 204) return 'up to date';
  if (!answer.ok) throw new Error(`the service returned ${answer.status}`);
  const body = await answer.arrayBuffer();
  await verified(body, answer.headers.get('vendor-signature'));
  const manifest = JSON.parse(new TextDecoder().decode(body));
  if (failed().includes(manifest.id)) return 'up to date';
  const content = await (await fetch(manifest.launchAsset.url)).arrayBuffer();
  if (base64url(await crypto.subtle.digest('SHA-256', content)) !== manifest.launchAsset.hash) {
    throw new Error('its bundle is damaged');
  }
  const { id, createdAt } = manifest;
  localStorage.setItem('update', JSON.stringify({ id, createdAt, code: new TextDecoder().decode(content) }));
  return 'pending';
}

const checked = () => check().then((found) => show('update', found), (error) => show('update', `refused: ${error.message}`));

launch();
checked();
document.querySelector('[data-testid=check]').addEventListener('click', checked);
