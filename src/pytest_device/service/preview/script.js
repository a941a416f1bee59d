// The live preview: screenshots of the device, taps and rotation.

import { messageOf, refresh, refusal, repeat, send } from "../page/live.js";

const FACTS_MS = 2000;
const QUICK_MS = 250; // pause between screenshots while they change
const SLOW_MS = 1000; // while they do not
const SELDOM_MS = 15_000; // while the page is hidden, or the session has ended
const STEP = 0.05;
const byId = (id) => document.getElementById(id);
const [stage, screen, picture, cross, message] = ["stage", "screen", "picture", "cross", "message"].map(byId);
const buttons = [...document.querySelectorAll("[data-orientation]")];
const troubles = { facts: "", picture: "", touch: "" };
const at = { x: 0.5, y: 0.5 };
let known = null; // the ETag of the current screenshot
let isLast = false; // whether the screenshot was requested after the end, when it no longer changes
let unchanged = 0; // number of consecutive unchanged screenshots

const live = () => stage.classList.contains("live");
const awaited = () => live() || (ended() && !isLast);
const ended = () => byId("state").matches(".stopped, .errored");

function report(about, text) {
  troubles[about] = text;
  const { facts, picture, touch } = troubles;
  const shown = [facts, ended() ? "" : picture, ended() ? "" : touch].filter(Boolean).join("\n");
  stage.toggleAttribute("data-stale", picture !== "");
  if (message.textContent !== shown) message.textContent = shown;
}

async function attempt(about, work) {
  try {
    await work();
    report(about, "");
    return true;
  } catch (error) {
    report(about, messageOf(error));
    return false;
  }
}

async function poll() {
  if (!awaited() || document.hidden) return;
  isLast = ended();
  const headers = known ? { "If-None-Match": known } : {};
  const reply = await fetch(`${location.pathname}/screen`, { headers, cache: "no-store", signal: AbortSignal.timeout(60_000) });
  unchanged += 1;
  if (reply.status === 304 || reply.status === 204) return;
  if (!reply.ok) throw new Error(`No screenshot: ${await refusal(reply)}`);
  draw(await createImageBitmap(await reply.blob()));
  known = reply.headers.get("ETag");
  unchanged = 0;
}

function draw(bitmap) {
  if (picture.width !== bitmap.width || picture.height !== bitmap.height) {
    Object.assign(picture, { width: bitmap.width, height: bitmap.height });
    screen.style.setProperty("--ratio", bitmap.width / bitmap.height);
  }
  picture.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close();
  const held = picture.width > picture.height ? "LANDSCAPE" : "PORTRAIT";
  for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.orientation === held);
  stage.dataset.seen = "";
}

function pause() {
  if (document.hidden || ended()) return SELDOM_MS;
  return troubles.picture || !live() || unchanged > 8 ? SLOW_MS : QUICK_MS;
}

async function tap() {
  const { x, y } = at;
  place(true);
  const where = `${Math.round(x * 100)} % from the left, ${Math.round(y * 100)} % from the top`;
  if (await attempt("touch", () => ask("tap", { x, y }))) done(`Tapped ${where}.`);
}

async function turn(button) {
  const { orientation } = button.dataset;
  if (await attempt("touch", () => ask("orientation", { orientation }))) done(`Rotated to ${button.textContent.toLowerCase()}.`);
}

async function ask(what, body) {
  byId("done").textContent = "";
  try {
    await send(`${location.pathname}/${what}`, body);
  } catch (error) {
    if (error instanceof TypeError || error.name === "TimeoutError") throw error;
    throw new Error(`Failed: ${error.message}`);
  }
}

function done(text) {
  byId("done").textContent = text;
  unchanged = 0;
  pollNow();
}

function place(tapped = false) {
  cross.style.left = `${at.x * 100}%`;
  cross.style.top = `${at.y * 100}%`;
  if (tapped) cross.classList.remove("tapped");
  if (tapped) void cross.offsetWidth; // restarts the animation
  cross.classList.toggle("tapped", tapped);
}

function move(dx, dy, small) {
  const step = small ? STEP / 5 : STEP;
  const within = (value) => Math.min(1, Math.max(0, Math.round(value * 1000) / 1000));
  at.x = within(at.x + dx * step);
  at.y = within(at.y + dy * step);
  place();
}

const KEYS = {
  ArrowLeft: (event) => move(-1, 0, event.shiftKey),
  ArrowRight: (event) => move(1, 0, event.shiftKey),
  ArrowUp: (event) => move(0, -1, event.shiftKey),
  ArrowDown: (event) => move(0, 1, event.shiftKey),
  Enter: (event) => event.repeat || tap(),
  " ": (event) => event.repeat || tap(),
};

screen.addEventListener("keydown", (event) => {
  if (!live() || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key](event);
});
picture.addEventListener("click", (event) => {
  if (!live()) return;
  const box = picture.getBoundingClientRect();
  at.x = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  at.y = Math.min(1, Math.max(0, (event.clientY - box.top) / box.height));
  tap();
});
for (const button of buttons) button.addEventListener("click", () => turn(button));

place();
repeat(() => attempt("facts", refresh), () => (document.hidden || ended() ? SELDOM_MS : FACTS_MS));
const pollNow = repeat(() => attempt("picture", poll), pause);
