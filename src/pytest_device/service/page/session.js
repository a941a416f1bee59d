// The session page: refreshes it, and stops the session after a confirmation.

import { messageOf, refresh, repeat, send } from "./live.js";

const REFRESH_MS = 2000;
const SLOW_REFRESH_MS = 15_000; // while the page is hidden, or the session has ended
const COPIED_MS = 2000;

const byId = (id) => document.getElementById(id);
const dialog = byId("confirm");
const stopButton = byId("stop");
const message = byId("message");

const hasEnded = () => byId("stopping").hidden;

async function update() {
  try {
    await refresh();
    for (const picture of document.querySelectorAll("#screen a img")) {
      // A new query, or the browser would show the picture that it has.
      const [address] = picture.src.split("?");
      picture.src = `${address}?${Date.now()}`;
    }
    message.textContent = "";
  } catch (error) {
    message.textContent = messageOf(error);
  }

  if (hasEnded() && dialog.open) dialog.close();
}

async function stop() {
  stopButton.disabled = true;
  try {
    await send(`${location.pathname}/stop`, {});
    await refresh();
    byId("outcome").querySelector("h2")?.focus();
  } catch (error) {
    message.textContent = messageOf(error);
  } finally {
    stopButton.disabled = false;
  }
}

async function copy(button) {
  const text = button.previousSibling.textContent.trim();
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The browser does not allow it: the user can copy the selection.
    getSelection().selectAllChildren(button.parentElement);
    return;
  }

  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, COPIED_MS);
}

byId("facts").addEventListener("click", (event) => {
  if (event.target.matches(".copy")) copy(event.target);
});

stopButton.addEventListener("click", () => {
  dialog.returnValue = ""; // of the last time
  dialog.showModal();
});
dialog.addEventListener("close", () => {
  if (dialog.returnValue === "stop") stop();
});

byId("log").scrollTop = byId("log").scrollHeight;
repeat(update, () => (document.hidden || hasEnded() ? SLOW_REFRESH_MS : REFRESH_MS));
