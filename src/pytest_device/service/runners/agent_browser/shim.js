// Replaces the agent-browser that an agent-device daemon manages: drives the session's browser.
//
// agent-browser is a client of a program that it leaves running, over a Unix socket. The usual commands of the daemon are
// sent to that socket directly; for all others, its client is started, which waits 150 ms before each command.
'use strict';

const { spawnSync } = require('node:child_process');
const { existsSync } = require('node:fs');
const { get, request } = require('node:http');
const { createConnection } = require('node:net');
const path = require('node:path');

const {
  PYTEST_DEVICE_AGENT_BROWSER: CLIENT,
  PYTEST_DEVICE_DEBUGGING_PORT: PORT,
  PYTEST_DEVICE_DEVICE_URL: DEVICE_URL,
  PYTEST_DEVICE_DIRECTORY: DIRECTORY,
} = process.env;
const SOCKETS = 'sockets';
/** How long the program may take to answer. */
const LIMIT_MS = 30_000;
const WINDOW_SIZE = '({ width: innerWidth, height: innerHeight })';

// A socket's path is limited to about 100 characters: relative to the session's directory it is always short.
process.chdir(DIRECTORY);
process.env.AGENT_BROWSER_SOCKET_DIR = SOCKETS;

main(process.argv.slice(2)).then(
  (code) => { process.exitCode = code; },
  ({ message }) => { process.exitCode = print({ error: message }); },
);

/** Perform a command of the daemon; return the exit code. */
async function main(words) {
  let command = words;
  if (words[0] === 'open' && (await isOpened(words[1]))) {
    // What is open is not loaded again; the reply to this command has the URL, as that to `open`.
    command = ['get', 'url', ...words.slice(2)];
  }

  return (await sent(command)) ?? run(command);
}

/** Open what the device opens itself: an app by its ID. Return whether the app or the URL is open. */
async function isOpened(target) {
  const pages = await answer(get(`http://127.0.0.1:${PORT}/json/list`));
  const isOnScreen = pages.some(({ type, url }) => type === 'page' && url === target);
  if (isOnScreen) return true;

  const isUrl = /^[a-z][a-z\d+.-]*:/i.test(target);
  if (isUrl) return false;

  const { apps } = await answer(get(`${DEVICE_URL}/apps`));
  const installed = Object.keys(apps);
  if (!installed.includes(target)) {
    throw new Error(`${target} is not installed here; installed: ${installed.join(', ') || 'no app'}`);
  }
  await launch(target);

  return true;
}

async function launch(applicationId) {
  const post = request(`${DEVICE_URL}/launch`, { method: 'POST', headers: { 'content-type': 'application/json' } });
  post.end(JSON.stringify({ applicationId }));

  const { message } = await answer(post);
  if (message) throw new Error(message);
}

/** Return the JSON of the reply to a request. */
function answer(clientRequest) {
  return new Promise((resolve, reject) => {
    clientRequest.once('error', reject);
    clientRequest.once('response', async (response) => {
      const parts = [];
      for await (const part of response) parts.push(part);
      resolve(JSON.parse(Buffer.concat(parts)));
    });
  });
}

/** Send a command to the running program; return the exit code, null if the client must be started instead. */
async function sent(words) {
  const [json, option, session] = words.slice(-3);
  const action = actionOf(words.slice(0, -3));
  if (json !== '--json' || option !== '--session' || action === null) return null;

  const socket = await connected(path.join(SOCKETS, `${session}.sock`));
  if (socket === null) return null;

  socket.setEncoding('utf8').setTimeout(LIMIT_MS, () => socket.destroy(new Error('agent-browser does not respond')));
  try {
    // Never sent again, whatever happens: the page may have changed already.
    const reply = await exchange(socket, action);
    if (action.action === 'snapshot' && reply.success) await addRectangles(socket, reply.data.refs);

    return print(reply);
  } catch ({ message }) {
    return print({ success: false, error: message });
  } finally {
    socket.destroy();
  }
}

/** Return a connection to the running program, null if it does not run. */
function connected(name) {
  return new Promise((resolve) => {
    const socket = createConnection(name);
    socket.once('error', () => resolve(null)).once('connect', () => resolve(socket));
  });
}

/** Add to the elements of a snapshot where they are in the window; not to those outside, which no tap reaches. */
async function addRectangles(socket, refs) {
  const { data: { result: window } } = await exchange(socket, { action: 'evaluate', script: WINDOW_SIZE });
  for (const [ref, element] of Object.entries(refs)) {
    const { success, data: rect } = await exchange(socket, { action: 'boundingbox', selector: `@${ref}` });
    if (success && isCenterInside(rect, window)) element.rect = rect;
  }
}

function isCenterInside({ x, y, width, height }, window) {
  const center = { x: x + width / 2, y: y + height / 2 };

  return center.x >= 0 && center.y >= 0 && center.x <= window.width && center.y <= window.height;
}

/** Send an action; return its reply, which is one line. */
function exchange(socket, action) {
  return new Promise((resolve, reject) => {
    let text = '';
    const closed = () => reject(new Error('agent-browser closed the connection'));
    const read = (part) => {
      text += part;
      if (!text.endsWith('\n')) return;

      socket.off('data', read).off('error', reject).off('close', closed);
      resolve(JSON.parse(text));
    };
    socket.on('data', read).once('error', reject).once('close', closed);
    socket.write(`${JSON.stringify({ id: `r${process.pid}`, ...action })}\n`);
  });
}

/** Print a reply as the client does; return its exit code. */
function print({ success = false, data = null, error = null }) {
  process.stdout.write(`${JSON.stringify({ success, data, error })}\n`);

  return success ? 0 : 1;
}

/** Return what the client would send for a command, null for one that is left to it. */
function actionOf(words) {
  const [name, first, second, third] = words;
  switch (`${name} ${words.length}`) {
    case 'click 2': return { action: 'click', selector: first };
    case 'hover 2': return { action: 'hover', selector: first };
    case 'fill 3': return { action: 'fill', selector: first, value: second };
    case 'press 2': return { action: 'press', key: first };
    case 'get 2': return first === 'url' ? { action: 'url' } : null;
    case 'get 3': return first === 'box' ? { action: 'boundingbox', selector: second } : null;
    case 'keyboard 3': return first === 'type' ? { action: 'keyboard', subaction: 'type', text: second } : null;
    case 'mouse 2': return { action: `mouse${first}`, button: 'left' };
    case 'mouse 4': return { action: 'mousemove', x: Number(second), y: Number(third) };
    case 'snapshot 1': case 'snapshot 2': case 'snapshot 3': return snapshot(words.slice(1));
    default: return null;
  }
}

function snapshot(options) {
  const action = { action: 'snapshot' };
  for (const option of options) {
    if (option === '--compact') action.compact = true;
    else if (option === '--interactive') action.interactive = true;
    else return null;
  }

  return action;
}

/** Run the client: its program for this machine, or if there is none, the script that looks for it. */
function run(words) {
  const all = ['--cdp', PORT, ...words];
  const { status, error } = spawnSync(program(), all, { stdio: 'inherit' });
  if (!error) return status ?? 1;

  return spawnSync(process.execPath, [CLIENT, ...all], { stdio: 'inherit' }).status ?? 1;
}

function program() {
  const isMusl = ['x86_64', 'aarch64'].some((name) => existsSync(`/lib/ld-musl-${name}.so.1`));

  return path.join(path.dirname(CLIENT), `agent-browser-${process.platform}${isMusl ? '-musl' : ''}-${process.arch}`);
}
