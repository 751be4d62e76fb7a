// Two timelines on one scale: one zoom moves both, and each marks the work that the other does not have.
import { pathToFileURL } from "node:url";
import { finish, ready, withBrowser } from "./chromium.mjs";

const [chromium, file] = process.argv.slice(2);

finish(
  await withBrowser(chromium, async (open) => {
    const { page, complaints, requests } = await open(pathToFileURL(file).href);
    await ready(page);
    const views = () =>
      page.evaluate(() => window.gapless.panels.map((p) => [p.view.start - p.zero, p.view.end - p.zero]));
    const out = { first: await views() };
    await page.evaluate(() => window.gapless.panels[1].setView({ start: window.gapless.panels[1].zero, end: window.gapless.panels[1].zero + 50_000 }));
    out.moved = await views();
    out.marked = await page.evaluate(() =>
      window.gapless.panels.map((p) => [...p.scene.marks.keys()].filter((i) => p.scene.marks[i]).map((i) => p.t.strings[i])),
    );
    out.steps = await page.evaluate(() => window.gapless.panels.map((p) => p.step));
    out.hash = await page.evaluate(() => location.hash);
    return { ...out, complaints, requests: requests.filter((url) => !url.startsWith("file:")) };
  }),
);
