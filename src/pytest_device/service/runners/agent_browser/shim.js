// Replaces the agent-browser that an agent-device daemon manages: runs the real one on the session's browser.
import process from "node:process";

const { PYTEST_DEVICE_AGENT_BROWSER, PYTEST_DEVICE_DEBUGGING_PORT, PYTEST_DEVICE_DIRECTORY } = process.env;

// A socket's path is limited to about 100 characters: relative to the session's directory it is always short.
process.chdir(PYTEST_DEVICE_DIRECTORY);
process.env.AGENT_BROWSER_SOCKET_DIR = "sockets";

const [command, address] = process.argv.slice(2);
if (command === "open" && (await isShown(address))) {
  // The device has opened it already; opening it again would reset the page.
  process.argv.splice(2, 2, "get", "url");
}
process.argv.splice(2, 0, "--cdp", PYTEST_DEVICE_DEBUGGING_PORT);

await import(PYTEST_DEVICE_AGENT_BROWSER);

async function isShown(address) {
  const reply = await fetch(`http://127.0.0.1:${PYTEST_DEVICE_DEBUGGING_PORT}/json/list`);
  return (await reply.json()).some(({ type, url }) => type === "page" && url === address);
}
