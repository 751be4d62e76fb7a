// Runs the unit tests: bundles each test with esbuild, then hands it to Node's own test runner.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = mkdtempSync(join(tmpdir(), "gapless-web-"));
const tests = readdirSync(join(here, "test")).filter((f) => f.endsWith(".test.ts"));
await build({
  entryPoints: tests.map((f) => join(here, "test", f)),
  bundle: true,
  outdir: out,
  outExtension: { ".js": ".mjs" },
  format: "esm",
  platform: "node",
  target: "node20",
});
const run = spawnSync(process.execPath, ["--test", ...tests.map((f) => join(out, f.replace(".ts", ".mjs")))], { stdio: "inherit" });
rmSync(out, { recursive: true });
process.exit(run.status ?? 1);
