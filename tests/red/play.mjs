// Plays a video in a real browser, and prints what it sees: its length and size, how far it got, and its colors.
import { createRequire } from "node:module";

const [, , project, executablePath, url] = process.argv;
const { chromium } = createRequire(`${project}/package.json`)("playwright-core");

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--allow-file-access-from-files"] });
try {
  const page = await browser.newPage();
  await page.goto(url); // the browser makes a page with the video
  const played = await page.evaluate(async () => {
    const video = document.querySelector("video");
    video.muted = true;
    await video.play();
    while (!video.ended) await new Promise((resolve) => setTimeout(resolve, 50));
    const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
    const context = canvas.getContext("2d");
    context.drawImage(video, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const colors = new Set(new Uint32Array(data.buffer));
    video.currentTime = 0; // an index is needed for this
    await new Promise((resolve) => video.addEventListener("seeked", resolve, { once: true }));
    const { duration, videoWidth, videoHeight, currentTime } = video;
    return { duration, width: videoWidth, height: videoHeight, colors: colors.size, rewound: currentTime };
  });
  console.log(JSON.stringify(played));
} finally {
  await browser.close();
}
