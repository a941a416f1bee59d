// The session page: refreshes it, and stops the session after a confirmation.

import { messageOf, refresh, repeat, send } from "./live.js";

const OFTEN_MS = 2000;
const SELDOM_MS = 15_000; // while the page is hidden, or the session has ended
const byId = (id) => document.getElementById(id);
const [dialog, stop, message] = [byId("confirm"), byId("stop"), byId("message")];
const ended = () => byId("stopping").hidden;

async function update() {
  try {
    await refresh();
    for (const picture of document.querySelectorAll("#screen a img")) {
      picture.src = `${picture.src.split("?")[0]}?${Date.now()}`;
    }
    message.textContent = "";
  } catch (error) {
    showError(error);
  }
  if (ended() && dialog.open) dialog.close();
}

function showError(error) {
  message.textContent = messageOf(error);
}

async function stopped() {
  if (dialog.returnValue !== "stop") return;
  stop.disabled = true;
  try {
    await send(`${location.pathname}/stop`, {});
    await refresh();
    byId("outcome").querySelector("h2")?.focus();
  } catch (error) {
    showError(error);
  } finally {
    stop.disabled = false;
  }
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.previousSibling.textContent.trim());
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  } catch {
    getSelection().selectAllChildren(button.parentElement); // the browser does not allow copying
  }
}

byId("facts").addEventListener("click", (event) => event.target.matches(".copy") && copy(event.target));
stop.addEventListener("click", () => {
  dialog.returnValue = "";
  dialog.showModal();
});
dialog.addEventListener("close", stopped);
byId("log").scrollTop = byId("log").scrollHeight;
repeat(update, () => (document.hidden || ended() ? SELDOM_MS : OFTEN_MS));
