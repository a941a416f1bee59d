// The list of sessions: refreshes it.

import { messageOf, refresh, repeat } from "./live.js";

const message = document.getElementById("message");

async function update() {
  try {
    await refresh();
    message.textContent = "";
  } catch (error) {
    message.textContent = messageOf(error);
  }
}

repeat(update, () => (document.hidden ? 15_000 : 2000));
