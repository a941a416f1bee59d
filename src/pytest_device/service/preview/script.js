// The live preview: screenshots of the device, taps and rotation.

import { errorText, isNetworkError, messageOf, refresh, repeat, send } from "../page/live.js";

const REFRESH_MS = 2000;
const SLOW_REFRESH_MS = 15_000; // while the page is hidden, or the session has ended
const SCREEN_PAUSE_MS = 250; // between screenshots while they change
const SLOW_SCREEN_PAUSE_MS = 1000; // while they do not
const MAX_UNCHANGED = 8; // screenshots until the pause is longer
const SCREEN_TIMEOUT_MS = 60_000;
const STEP = 0.05; // of the screen, for each press of an arrow key
const SMALL_STEP = STEP / 5;

const byId = (id) => document.getElementById(id);
const stage = byId("stage");
const screen = byId("screen");
const picture = byId("picture");
const cross = byId("cross");
const message = byId("message");
const orientationButtons = [...document.querySelectorAll("[data-orientation]")];

const problems = { facts: "", picture: "", touch: "" };
const position = { x: 0.5, y: 0.5 }; // of the crosshair, as shares of the screen
let currentEtag = null; // of the screenshot
let isLast = false; // whether the screenshot was requested after the end, when it no longer changes
let unchanged = 0; // number of consecutive unchanged screenshots

const isLive = () => stage.classList.contains("live");
const hasEnded = () => byId("state").matches(".stopped, .errored");

function report(topic, text) {
  problems[topic] = text;
  stage.toggleAttribute("data-stale", problems.picture !== "");

  const texts = [problems.facts];
  // A device that is gone has neither.
  if (!hasEnded()) texts.push(problems.picture, problems.touch);
  const shown = texts.filter(Boolean).join("\n");

  // Screen readers announce each change, also to an equal text.
  if (message.textContent !== shown) message.textContent = shown;
}

/** Do some work and report its error, or that it has none anymore; returns whether it succeeded. */
async function attempt(topic, work) {
  try {
    await work();
  } catch (error) {
    report(topic, messageOf(error));
    return false;
  }

  report(topic, "");

  return true;
}

async function fetchScreenshot() {
  const isNeeded = isLive() || (hasEnded() && !isLast);
  if (!isNeeded || document.hidden) return;

  isLast = hasEnded();
  const reply = await fetch(`${location.pathname}/screen`, {
    headers: currentEtag ? { "If-None-Match": currentEtag } : {},
    cache: "no-store",
    signal: AbortSignal.timeout(SCREEN_TIMEOUT_MS),
  });
  unchanged += 1;
  if (reply.status === 304 || reply.status === 204) return;
  if (!reply.ok) throw new Error(`No screenshot: ${await errorText(reply)}`);

  draw(await createImageBitmap(await reply.blob()));
  currentEtag = reply.headers.get("ETag");
  unchanged = 0;
}

function draw(bitmap) {
  // Setting the size clears the canvas, which would flicker.
  if (picture.width !== bitmap.width || picture.height !== bitmap.height) {
    picture.width = bitmap.width;
    picture.height = bitmap.height;
    screen.style.setProperty("--ratio", bitmap.width / bitmap.height);
  }
  picture.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close();

  const orientation = picture.width > picture.height ? "LANDSCAPE" : "PORTRAIT";
  for (const button of orientationButtons) {
    button.setAttribute("aria-pressed", button.dataset.orientation === orientation);
  }
  stage.dataset.seen = "";
}

function screenshotPause() {
  if (document.hidden || hasEnded()) return SLOW_REFRESH_MS;
  if (problems.picture || !isLive() || unchanged > MAX_UNCHANGED) return SLOW_SCREEN_PAUSE_MS;

  return SCREEN_PAUSE_MS;
}

async function tap() {
  const { x, y } = position;
  moveCross();
  animateTap();

  const succeeded = await attempt("touch", () => act("tap", { x, y }));
  if (succeeded) {
    showDone(`Tapped ${Math.round(x * 100)} % from the left, ${Math.round(y * 100)} % from the top.`);
  }
}

async function rotate(button) {
  const { orientation } = button.dataset;
  const succeeded = await attempt("touch", () => act("orientation", { orientation }));
  if (succeeded) showDone(`Rotated to ${button.textContent.toLowerCase()}.`);
}

async function act(action, body) {
  byId("done").textContent = "";
  try {
    await send(`${location.pathname}/${action}`, body);
  } catch (error) {
    if (isNetworkError(error)) throw error;

    throw new Error(`Failed: ${error.message}`);
  }
}

function showDone(text) {
  byId("done").textContent = text;
  unchanged = 0;
  fetchNow();
}

function moveCross() {
  cross.style.left = `${position.x * 100}%`;
  cross.style.top = `${position.y * 100}%`;
  cross.classList.remove("tapped");
}

function animateTap() {
  void cross.offsetWidth; // a layout in between, or the animation would not start again
  cross.classList.add("tapped");
}

function moveBy(columns, rows, isSmall) {
  const step = isSmall ? SMALL_STEP : STEP;
  const rounded = (value) => Math.round(value * 1000) / 1000;
  position.x = withinScreen(rounded(position.x + columns * step));
  position.y = withinScreen(rounded(position.y + rows * step));
  moveCross();
}

function withinScreen(share) {
  return Math.min(1, Math.max(0, share));
}

function tapOnce(event) {
  // A key that is held repeats, and would tap many times.
  if (!event.repeat) tap();
}

const KEYS = {
  ArrowLeft: (event) => moveBy(-1, 0, event.shiftKey),
  ArrowRight: (event) => moveBy(1, 0, event.shiftKey),
  ArrowUp: (event) => moveBy(0, -1, event.shiftKey),
  ArrowDown: (event) => moveBy(0, 1, event.shiftKey),
  Enter: tapOnce,
  " ": tapOnce,
};

screen.addEventListener("keydown", (event) => {
  const isShortcut = event.ctrlKey || event.metaKey || event.altKey;
  if (!isLive() || isShortcut || !(event.key in KEYS)) return;

  event.preventDefault();
  KEYS[event.key](event);
});

picture.addEventListener("click", (event) => {
  if (!isLive()) return;

  const box = picture.getBoundingClientRect();
  position.x = withinScreen((event.clientX - box.left) / box.width);
  position.y = withinScreen((event.clientY - box.top) / box.height);
  tap();
});

for (const button of orientationButtons) {
  button.addEventListener("click", () => rotate(button));
}

moveCross();
repeat(() => attempt("facts", refresh), () => (document.hidden || hasEnded() ? SLOW_REFRESH_MS : REFRESH_MS));
const fetchNow = repeat(() => attempt("picture", fetchScreenshot), screenshotPause);
