// A browser without a network that writes down everything a page should not do.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const web = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "web", "package.json");
const { chromium } = createRequire(web)("playwright-core");
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Run `use(open)`; `open(url, options)` gives a page and what it complained about. */
export async function withBrowser(executablePath, use) {
  const profile = mkdtempSync(join(tmpdir(), "gapless-chromium-"));
  const browser = await chromium.launch({ executablePath, args: FLAGS, env: { ...process.env, HOME: profile } });
  try {
    return await use(async (url, { width = 1280, height = 900, scheme = "light", offline = true } = {}) => {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, offline });
      const complaints = [];
      const requests = [];
      const page = await context.newPage();
      page.on("console", (message) => complaints.push(message.text()));
      page.on("pageerror", (error) => complaints.push(error.message));
      page.on("dialog", (dialog) => {
        complaints.push("dialog: " + dialog.message());
        void dialog.dismiss();
      });
      context.on("request", (request) => requests.push(request.url()));
      await page.goto(url);
      return { page, context, complaints, requests };
    });
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

export const ready = (page) => page.waitForFunction(() => window.gapless, null, { timeout: 20_000 });

export function finish(value) {
  process.stdout.write(JSON.stringify(value) + "\n");
}
