// Bundles the page's script and style into src/gapless/render/assets; with --check compares instead of writing.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "src", "gapless", "render", "assets");

async function bundle(entry, name) {
  const result = await build({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome109", "firefox115", "safari16.4"],
    charset: "utf8",
    legalComments: "none",
  });
  return [name, result.outputFiles[0].text];
}

// Lets a reader of the repository check without Node that the bundle belongs to this source.
function sourceHash() {
  const hash = createHash("sha256");
  for (const file of readdirSync(join(here, "src")).sort()) {
    hash.update(file + "\0").update(readFileSync(join(here, "src", file))).update("\0");
  }
  return hash.digest("hex") + "\n";
}

const files = [await bundle("main.ts", "report.js"), await bundle("page.css", "report.css"), ["SOURCE.sha256", sourceHash()]];
let stale = 0;
for (const [name, text] of files) {
  const path = join(assets, name);
  if (process.argv.includes("--check")) {
    let old = "";
    try {
      old = readFileSync(path, "utf8");
    } catch {
      // A missing bundle is a stale one.
    }
    if (old !== text) {
      console.error(`${name}: not what web/src builds to; run 'npm run build' in web/`);
      stale = 1;
    }
  } else {
    writeFileSync(path, text);
    console.log(`${name}: ${text.length} bytes`);
  }
}
process.exit(stale);
