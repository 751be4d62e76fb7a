// Plays the viewer: another origin that answers PING with PONG and takes what is posted to it.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { finish, withBrowser } from "./chromium.mjs";

const [chromium, command, ...words] = process.argv.slice(2);

const VIEWER = `<!doctype html><meta charset="utf-8"><title>viewer</title><script>
window.pings = 0;
addEventListener("message", (event) => {
  if (event.data === "PING") {
    // The real viewer is silent until it has loaded.
    if (++window.pings >= 3) event.source.postMessage("PONG", event.origin);
  } else {
    const { buffer, title, fileName } = event.data.perfetto;
    window.got = { bytes: buffer.byteLength, head: [...new Uint8Array(buffer.slice(0, 2))], title, fileName, from: event.origin };
  }
});
</script>`;

const server = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end(VIEWER));
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const viewer = `http://localhost:${server.address().port}/`;

const gapless = spawn(command, [...words, "--no-open", "--viewer", viewer], { stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((done) => gapless.on("exit", done));
const url = await new Promise((done) => gapless.stdout.once("data", (data) => done(String(data).trim())));

const out = await withBrowser(chromium, async (open) => {
  const { page, context, complaints } = await open(url, { offline: false });
  const popup = context.waitForEvent("page");
  await page.click("#open");
  const window_ = await popup;
  await window_.waitForFunction(() => window.got, null, { timeout: 15_000 });
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Handed over"), null, { timeout: 5_000 });
  return { got: await window_.evaluate(() => window.got), pings: await window_.evaluate(() => window.pings), complaints, url };
});
out.exit = await Promise.race([ended, new Promise((done) => setTimeout(() => done("still running"), 10_000))]);
if (out.exit === "still running") gapless.kill();
server.close();
finish(out);
