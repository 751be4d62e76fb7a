// Opens pages and reads off them what a reader would: numbers, findings, where a click on a finding leads.
import { pathToFileURL } from "node:url";
import { finish, ready, withBrowser } from "./chromium.mjs";

const [chromium, ...files] = process.argv.slice(2);

const read = () => {
  const number = (node, name) => Number(node.getAttribute(name));
  const all = (selector) => [...document.querySelectorAll(selector)];
  return {
    verdict: document.querySelector("h1").textContent,
    numbers: Object.fromEntries(all("[data-number]").map((n) => [n.dataset.number, number(n, "data-value")])),
    accounts: all("[data-wall-ns]").map((n) => ({
      wall: number(n, "data-wall-ns"),
      parts: [...n.querySelectorAll("[data-ns]")].map((p) => number(p, "data-ns")),
      pixels: [...n.querySelectorAll("[data-ns]")].reduce((sum, p) => sum + p.getBoundingClientRect().width, 0),
      width: n.querySelector(".bar").getBoundingClientRect().width,
    })),
    findings: all("[data-finding]").map((n) => n.dataset.finding),
    cannotTell: all(".cannot > code").map((n) => n.textContent),
    buttons: all("[data-goto-finding]").map((n) => Number(n.dataset.gotoFinding)),
    panels: window.gapless.panels.length,
    frames: all("[data-timeline]").length,
    redrawMs: window.gapless.panels.map((p) => p.redrawNow()),
  };
};

const picked = () => {
  const { scene, t } = window.gapless.panels[0];
  const box = scene.picked;
  return {
    box,
    start: box < 0 ? null : t.boxes.start[box],
    inView: box >= 0 && t.boxes.start[box] >= scene.view.start && t.boxes.start[box] <= scene.view.end,
    drawn: box >= 0 && scene.layout.boxRows.has(t.boxes.lane[box] * 4096 + t.boxes.depth[box]),
    detail: document.querySelector("[data-tl=detail] .what")?.textContent ?? "",
    hash: location.hash,
  };
};

finish(
  await withBrowser(chromium, async (open) => {
    const out = [];
    for (const file of files) {
      const { page, context, complaints, requests } = await open(pathToFileURL(file).href);
      await ready(page);
      const seen = await page.evaluate(read);
      seen.clicks = {};
      for (const finding of seen.buttons) {
        await page.click(`[data-goto-finding="${finding}"]`);
        await page.waitForTimeout(60);
        seen.clicks[finding] = await page.evaluate(picked);
      }
      seen.overflow = {};
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 900 });
        seen.overflow[width] = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      }
      out.push({ ...seen, complaints, requests: requests.filter((url) => !url.startsWith("file:")) });
      await context.close();
    }
    return out;
  }),
);
