// The session's page: kept up to date, and its stop, which is asked for twice.

import { inWords, refresh, repeat, send } from "./live.js";

const OFTEN_MS = 2000;
const SELDOM_MS = 15_000; // while nobody looks, or nothing can happen any more
const byId = (id) => document.getElementById(id);
const [dialog, stop, message] = [byId("confirm"), byId("stop"), byId("message")];
const ended = () => byId("stopping").hidden;

async function update() {
  try {
    await refresh();
    message.textContent = "";
  } catch (error) {
    tell(error);
  }
  if (ended() && dialog.open) dialog.close();
}

function tell(error) {
  message.textContent = inWords(error);
}

async function stopped() {
  if (dialog.returnValue !== "stop") return;
  stop.disabled = true;
  try {
    await send(`${location.pathname}/stop`, {});
    await refresh();
    byId("outcome").querySelector("h2")?.focus();
  } catch (error) {
    tell(error);
  } finally {
    stop.disabled = false;
  }
}

stop.addEventListener("click", () => {
  dialog.returnValue = "";
  dialog.showModal();
});
dialog.addEventListener("close", stopped);
byId("log").scrollTop = byId("log").scrollHeight;
repeat(update, () => (document.hidden || ended() ? SELDOM_MS : OFTEN_MS));
