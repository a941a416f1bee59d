// Opens traces in the viewer, in a real browser, and prints what it shows: one JSON object for each URL, a line each.
import { createRequire } from "node:module";

const MAX_CLICKS = 100;
const [, , project, executablePath, ...urls] = process.argv;
const hasTrees = process.env.VIEWER_HAS_TREES !== "no";
const { chromium } = createRequire(`${project}/package.json`)("playwright-core");

// Viewers from 1.63 on show the tree of a device beside its picture.
async function besideAction(page) {
  const tree = page.locator(".aria-mode-snapshot");
  await tree.locator(".aria-mode-line").first().waitFor();
  const picture = page.locator(".aria-mode-screenshot img").first();
  await picture.waitFor();
  const width = await picture.evaluate(async (image) => {
    await image.decode();
    return image.naturalWidth;
  });
  return { width, tree: await tree.innerText() };
}

async function shownIn(page) {
  const title = page.locator(".action-title");
  await title.first().waitFor();
  const selected = await page.locator(".tree-view-entry.selected .action-title").allInnerTexts();

  const shown = { selected, ...(hasTrees ? await besideAction(page) : {}) };
  for (const name of ["Errors", "Console", "Attachments", "Source"]) {
    await page.getByRole("tab", { name: new RegExp(`^${name}`) }).click();
    const panel = page.getByRole("tabpanel", { name: new RegExp(`^${name}`) });
    await panel.waitFor();
    if (name === "Source") {
      await panel.locator(".CodeMirror-line").first().waitFor({ state: "attached" });
      await panel.getByText("Loading…").waitFor({ state: "detached" });
    }
    shown[name] = name === "Source" ? await panel.textContent() : await panel.innerText();
  }

  // Collapsed steps hide their actions; a click on one selects it.
  const collapsed = page.locator(".tree-view-entry .codicon-chevron-right");
  for (let left = MAX_CLICKS; left > 0 && (await collapsed.count()) > 0; left -= 1) {
    await collapsed.first().click();
  }
  shown.actions = await title.allInnerTexts();
  shown.failed = await page.locator(".tree-view-entry.error .action-title").allInnerTexts();
  shown.strips = await page.locator(".film-strip-lane").count();
  return shown;
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  for (const url of urls) {
    const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.goto(url);
    console.log(JSON.stringify({ ...(await shownIn(page)), problems }));
    await page.close();
  }
} finally {
  await browser.close();
}
