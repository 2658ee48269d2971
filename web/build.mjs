/**
 * Builds the page into src/geocalib/server/page, where the wheel takes it from.
 *
 *   npm ci && npm run build           or, to another folder: node build.mjs FOLDER
 *
 * sources.sha256 tells what it was built of; tests/page/test_page_build.py compares it with what is here.
 */

import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? join(here, "../src/geocalib/server/page");
const inter = join(here, "node_modules/@fontsource-variable/inter");

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.js" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "eof",
  outdir: out,
});
await build({
  absWorkingDir: here,
  entryPoints: { page: "src/page.css" },
  bundle: true,
  minify: true,
  external: ["*.woff2"],
  outdir: out,
});
for (const [from, to] of [
  ["index.html", "index.html"],
  ["icon.svg", "icon.svg"],
  ["../examples/town.jpg", "town.jpg"],
]) {
  await copyFile(join(here, from), join(out, to));
}
await copyFile(join(inter, "files/inter-latin-wght-normal.woff2"), join(out, "inter.woff2"));
await copyFile(join(inter, "LICENSE"), join(out, "inter-LICENSE.txt"));

/** Names and contents of all sources, in order. */
const hash = createHash("sha256");
const modules = (await readdir(join(here, "src"))).map((name) => `src/${name}`);
const sources = ["build.mjs", "icon.svg", "index.html", "package-lock.json", ...modules].sort();
for (const name of sources) {
  hash.update(name);
  hash.update(await readFile(join(here, name)));
}
await writeFile(join(out, "sources.sha256"), `${hash.digest("hex")}\n`);
