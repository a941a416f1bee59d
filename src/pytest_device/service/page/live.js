// Refreshes the parts of a page that are marked data-live, counts down its limits, and says how long ago things were.

const TIMEOUT_MS = 10_000;
const ACTION_TIMEOUT_MS = 60_000; // the device acts before the reply
const MAX_ROUNDING_MS = 2000; // the header Date has whole seconds only

const servedHtml = new Map(); // by the ID of the part, whose own HTML changes: it shows times
let currentEtag = null;
let clockSkewMs = 0; // how far this machine's clock is behind the service's

for (const part of liveParts()) {
  servedHtml.set(part.id, part.innerHTML);
}

function liveParts() {
  return document.querySelectorAll("[data-live]");
}

/** Fetch the page again and show its changes; returns whether there were any. Throws if the service does not respond. */
export async function refresh() {
  const reply = await fetch(location.pathname, {
    headers: currentEtag ? { "If-None-Match": currentEtag } : {},
    cache: "no-store",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  adjustClock(reply.headers.get("Date"));
  if (reply.status === 304) return false;

  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  if (!reply.ok) {
    const message = page.querySelector("main p")?.textContent;
    throw new Error(message ?? `the service returned ${reply.status}`);
  }

  currentEtag = reply.headers.get("ETag");
  document.title = page.title;
  for (const part of liveParts()) {
    update(part, page.getElementById(part.id));
  }
  showTimes();

  return true;
}

/**
 * Call a function repeatedly, `pause()` ms after it has ended, and at once when the page becomes visible.
 *
 * Returns a function that calls it now.
 */
export function repeat(work, pause) {
  let timer = 0;
  let isBusy = false;

  const run = async () => {
    if (isBusy) return;

    isBusy = true;
    clearTimeout(timer);
    try {
      await work();
    } finally {
      isBusy = false;
      timer = setTimeout(run, pause());
    }
  };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) run();
  });
  run();

  return run;
}

/** Send a request that only the service's own pages may send; throws with the service's message if it is refused. */
export async function send(path, body) {
  const reply = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ACTION_TIMEOUT_MS),
  });

  if (!reply.ok) throw new Error(await errorText(reply));
}

/** Return the messages in an error reply of the service, or its status. */
export async function errorText(reply) {
  const content = await reply.json().catch(() => null);
  const messages = content?.errors?.map((error) => error.message);

  return messages?.join("\n") ?? `the service returned ${reply.status}`;
}

/** Return whether the error is one of the network, which browsers word differently. */
export function isNetworkError(error) {
  return error instanceof TypeError || error.name === "TimeoutError";
}

/** Return the text to show for an error. */
export function messageOf(error) {
  if (isNetworkError(error)) return "The service does not respond.";

  return sentence(error.message);
}

function sentence(text) {
  const end = /[.!?]$/.test(text) ? "" : ".";

  return text.charAt(0).toUpperCase() + text.slice(1) + end;
}

function update(part, fresh) {
  for (const name of ["class", "hidden"]) {
    if (fresh.hasAttribute(name)) {
      part.setAttribute(name, fresh.getAttribute(name));
    } else {
      part.removeAttribute(name);
    }
  }
  if (part.dataset.live === "attributes") return;

  // Equal content is not replaced: that would take the focus and the selection from it.
  if (servedHtml.get(part.id) === fresh.innerHTML) return;

  servedHtml.set(part.id, fresh.innerHTML);
  const isAtEnd = part.scrollTop + part.clientHeight >= part.scrollHeight - 4;
  part.innerHTML = fresh.innerHTML;
  if (isAtEnd) part.scrollTop = part.scrollHeight;
}

function adjustClock(date) {
  const differenceMs = Date.parse(date) - Date.now();
  if (Math.abs(differenceMs - clockSkewMs) > MAX_ROUNDING_MS) clockSkewMs = differenceMs;
}

function showTimes() {
  const now = (Date.now() + clockSkewMs) / 1000;

  for (const time of document.querySelectorAll("time[data-since]")) {
    time.textContent = ago(now - time.dataset.since);
  }
  for (const span of document.querySelectorAll("span[data-until]")) {
    span.textContent = clock(span.dataset.until - now);
  }
  for (const bar of document.querySelectorAll("progress[data-until]")) {
    const { since, until } = bar.dataset;
    const share = (until - now) / (until - since || 1);
    bar.value = Math.min(1, Math.max(0, share));
  }
}

function ago(seconds) {
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${Math.floor(seconds / 10) * 10} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;

  const days = Math.floor(seconds / 86_400);

  return days === 1 ? "1 day ago" : `${days} days ago`;
}

function clock(seconds) {
  const rounded = Math.max(0, Math.round(seconds));
  const hours = Math.floor(rounded / 3600);
  const minutes = Math.floor(rounded / 60) % 60;
  const twoDigits = (number) => String(number).padStart(2, "0");
  const rest = twoDigits(rounded % 60);

  return hours ? `${hours}:${twoDigits(minutes)}:${rest}` : `${minutes}:${rest}`;
}

showTimes();
setInterval(showTimes, 1000);
