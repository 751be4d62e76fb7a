// Wheel, drag, keys, search, permalink, tables and help: every way to move, and what it changes.
import { pathToFileURL } from "node:url";
import { finish, ready, withBrowser } from "./chromium.mjs";

const [chromium, file, query] = process.argv.slice(2);
const url = pathToFileURL(file).href;

finish(
  await withBrowser(chromium, async (open) => {
    const { page, complaints } = await open(url);
    await ready(page);
    const out = {};
    const view = () => page.evaluate(() => ({ ...window.gapless.panels[0].view }));
    const settle = () => page.waitForTimeout(60);
    const stage = page.locator("[data-tl=stage]");
    await stage.scrollIntoViewIfNeeded();
    const frame = await stage.boundingBox();
    const [x, y] = [frame.x + frame.width / 2, frame.y + 60];
    const press = async (key) => {
      await page.keyboard.press(key);
      await settle();
      return view();
    };

    out.start = await view();
    await page.mouse.move(x, y);
    const scrollBefore = await page.evaluate(() => scrollY);
    await page.mouse.wheel(0, 100);
    await settle();
    out.wheelUnfocused = { view: await view(), scrolled: (await page.evaluate(() => scrollY)) !== scrollBefore };
    await page.evaluate(() => document.querySelector("[data-tl=stage]").focus());
    await stage.scrollIntoViewIfNeeded();
    const again = await stage.boundingBox();
    await page.mouse.move(again.x + again.width / 2, again.y + 60);
    await page.mouse.wheel(0, -300);
    await settle();
    out.wheelFocused = await view();
    await page.mouse.down();
    await page.mouse.move(again.x + again.width / 2 - 200, again.y + 60, { steps: 5 });
    await page.mouse.up();
    await settle();
    out.dragged = await view();
    out.fit = await press("f");
    out.w = await press("w");
    out.s = await press("s");
    out.d = await press("d");
    out.a = await press("a");
    out.all = await press("0");
    await press("f");

    await page.keyboard.press("/");
    await page.keyboard.type(query);
    await settle();
    out.found = await page.textContent("[data-tl=status]");
    await page.keyboard.press("Enter");
    await settle();
    const pickedBox = () => page.evaluate(() => window.gapless.panels[0].scene.picked);
    out.first = await pickedBox();
    await page.keyboard.press("Enter");
    await settle();
    out.second = await pickedBox();
    out.status = await page.textContent("[data-tl=status]");
    out.name = await page.textContent("[data-tl=detail] strong");
    await page.keyboard.press("Escape");
    await settle();
    out.focusAfterEscape = await page.evaluate(() => document.activeElement?.getAttribute("data-tl"));
    out.beforeArrow = await pickedBox();
    await press("ArrowRight");
    out.afterArrow = await pickedBox();
    out.hash = await page.evaluate(() => location.hash);
    out.viewAtHash = await view();

    await page.keyboard.press("?");
    out.help = await page.evaluate(() => document.querySelector("dialog#help").open);
    await page.keyboard.press("Escape");
    out.helpClosed = !(await page.evaluate(() => document.querySelector("dialog#help").open));

    // Clicking a box explains it; hovering shows the same words.
    const spot = await page.evaluate(() => {
      const panel = window.gapless.panels[0];
      panel.fit();
      const { scene, t } = panel;
      const box = [...t.boxes.dur.keys()].filter((i) => t.boxes.depth[i] === 0).sort((a, b) => t.boxes.dur[b] - t.boxes.dur[a])[0];
      const row = scene.layout.boxRows.get(t.boxes.lane[box] * 4096);
      const canvas = document.querySelector("[data-tl=canvas]").getBoundingClientRect();
      return { x: canvas.left + canvas.width / 2, y: canvas.top + row.y - scene.scroll + 5, name: t.strings[t.boxes.name[box]] };
    });
    await settle();
    await page.mouse.move(spot.x, spot.y);
    await settle();
    out.tip = await page.textContent("[data-tl=tip]");
    await page.mouse.click(spot.x, spot.y);
    await settle();
    out.clicked = { wanted: spot.name, got: await page.textContent("[data-tl=detail] strong") };

    const table = page.locator("[data-table]").first();
    const cells = (column) => table.locator("tbody tr:not([hidden])").evaluateAll((rows, c) => rows.map((r) => r.cells[c].dataset.v ?? r.cells[c].textContent), column);
    const heads = await table.locator("th").allTextContents();
    const column = await table.locator("th").evaluateAll((all) => all.findIndex((head) => head.className === "n"));
    await table.locator("th button").nth(column).click();
    out.sortedDown = (await cells(column)).map(Number);
    await table.locator("th button").nth(column).click();
    out.sortedUp = (await cells(column)).map(Number);
    await table.locator("[data-filter]").fill("no row has this text");
    out.filtered = (await cells(0)).length;
    await table.locator("[data-filter]").fill("");
    await page.evaluate(() => {
      window.copied = [];
      Object.defineProperty(navigator, "clipboard", { value: { writeText: async (t) => void window.copied.push(t) } });
    });
    await table.locator("[data-copy-csv]").click();
    await page.locator("[data-copy]").first().click();
    out.copied = await page.evaluate(() => window.copied);
    out.heads = heads;
    out.complaints = complaints;

    const second = await open(url + out.hash);
    await ready(second.page);
    await settle();
    out.reopened = await second.page.evaluate(() => ({ view: { ...window.gapless.panels[0].view }, box: window.gapless.panels[0].scene.picked }));
    return out;
  }),
);
