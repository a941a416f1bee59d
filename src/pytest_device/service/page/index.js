// The list of sessions: refreshes it.

import { messageOf, refresh, repeat } from "./live.js";

const REFRESH_MS = 2000;
const SLOW_REFRESH_MS = 15_000; // while the page is hidden

const message = document.getElementById("message");

async function update() {
  try {
    await refresh();
    message.textContent = "";
  } catch (error) {
    message.textContent = messageOf(error);
  }
}

repeat(update, () => (document.hidden ? SLOW_REFRESH_MS : REFRESH_MS));
