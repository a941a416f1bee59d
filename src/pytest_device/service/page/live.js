// Refreshes the parts of a page that are marked data-live, counts down its limits, and says how long ago things were.

const PATIENCE_MS = 10_000;
const served = new Map();
let known = null; // ETag of the current content
let skew = 0; // how far this machine's clock is behind the service's, in ms

for (const part of document.querySelectorAll("[data-live]")) served.set(part.id, part.innerHTML);

/** Fetch the page again and show its changes; returns whether there were any. Throws if the service does not respond. */
export async function refresh() {
  const headers = known ? { "If-None-Match": known } : {};
  const reply = await fetch(location.pathname, { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
  adjust(reply.headers.get("Date"));
  if (reply.status === 304) return false;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  if (!reply.ok) throw new Error(page.querySelector("main p")?.textContent ?? `the service returned ${reply.status}`);
  known = reply.headers.get("ETag");
  document.title = page.title;
  for (const part of document.querySelectorAll("[data-live]")) show(part, page.getElementById(part.id));
  tellTime();
  return true;
}

/** Call a function repeatedly, `pause()` ms after it has ended, and at once when the page becomes visible; returns a function that calls it now. */
export function repeat(work, pause) {
  let timer = 0;
  let busy = false;
  const run = async () => {
    if (busy) return;
    busy = true;
    clearTimeout(timer);
    try {
      await work();
    } finally {
      busy = false;
      timer = setTimeout(run, pause());
    }
  };
  document.addEventListener("visibilitychange", () => document.hidden || run());
  run();
  return run;
}

/** Send a request that only the service's own pages may send; throws with the service's message if it is refused. */
export async function send(path, body) {
  const reply = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(6 * PATIENCE_MS),
  });
  if (!reply.ok) throw new Error(await refusal(reply));
}

/** Return the messages of an error. */
export async function refusal(reply) {
  const messages = (await reply.json().catch(() => null))?.errors?.map((error) => error.message);
  return messages?.join("\n") ?? `the service returned ${reply.status}`;
}

/** Return the text of an error: browsers word network errors differently. */
export function messageOf(error) {
  return error instanceof TypeError || error.name === "TimeoutError" ? "The service does not respond." : sentence(error.message);
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

function show(part, fresh) {
  for (const name of ["class", "hidden"]) {
    if (fresh.hasAttribute(name)) part.setAttribute(name, fresh.getAttribute(name));
    else part.removeAttribute(name);
  }
  if (part.dataset.live === "attributes" || served.get(part.id) === fresh.innerHTML) return;
  served.set(part.id, fresh.innerHTML);
  const atEnd = part.scrollTop + part.clientHeight >= part.scrollHeight - 4;
  part.innerHTML = fresh.innerHTML;
  if (atEnd) part.scrollTop = part.scrollHeight;
}

function adjust(date) {
  const difference = Date.parse(date) - Date.now();
  if (Math.abs(difference - skew) > 2000) skew = difference; // the header has whole seconds only
}

function tellTime() {
  const now = (Date.now() + skew) / 1000;
  for (const time of document.querySelectorAll("time[data-since]")) time.textContent = ago(now - time.dataset.since);
  for (const span of document.querySelectorAll("span[data-until]")) span.textContent = clock(span.dataset.until - now);
  for (const bar of document.querySelectorAll("progress[data-until]")) {
    const { since, until } = bar.dataset;
    bar.value = Math.min(1, Math.max(0, (until - now) / (until - since || 1)));
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
  const whole = Math.max(0, Math.round(seconds));
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

tellTime();
setInterval(tellTime, 1000);
