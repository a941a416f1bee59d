// Evaluates a dynamic app config: reads {file, key, context, mark} from standard input, prints the mark and a JSON object.
import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const { file, key, context, mark } = JSON.parse(readFileSync(0, "utf8"));
const unchanged = Symbol("the static config");

// A name that TypeScript alone knows is imported like any other, and would be missing: read it as undefined instead.
const typesOf = new RegExp(`import\\s*\\{([^}]*)\\}\\s*from\\s*(["']${key}/config["'])\\s*;?`, "g");
const asValues = (_, names, from) =>
  `import * as __config from ${from}; const {${names.replace(/\btype\s+\w+(\s+as\s+\w+)?\s*,?/g, "").replace(/\sas\s/g, ": ")}} = __config;`;

// A bundler finds `./lib` and `vendor/config` without an extension, also from a module.
const asBundlersDo = (name, context, error) => {
  for (const extension of ["", ".ts"]) {
    try {
      return { url: pathToFileURL(createRequire(context.parentURL).resolve(name + extension)).href, shortCircuit: true };
    } catch {}
  }
  throw error;
};

registerHooks({
  resolve(name, context, next) {
    try {
      const found = next(name, context);  // a bundler needs no attribute to import JSON
      return found.url.endsWith(".json") ? { ...found, importAttributes: { type: "json" } } : found;
    } catch (error) {
      return asBundlersDo(name, context, error);
    }
  },
  load(url, options, next) {
    const loaded = next(url, options);
    if (!/\.[cm]?ts$/.test(url) || loaded.source == null) return loaded;
    return { ...loaded, source: loaded.source.toString().replace(typesOf, asValues) };
  },
});

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

async function evaluate() {
  let exported = (await import(pathToFileURL(file))).default;
  exported = exported?.default ?? exported;
  const kind = typeof exported;
  let config = kind === "function" ? exported({ ...context, config: { ...context.config, [unchanged]: true } }) : exported;
  if (typeof config?.then === "function") return { problem: "must not return a promise: load what it waits for before" };
  const unused = context.staticConfigPath !== null && !(isObject(config) && (config[unchanged] || config[key]?.[unchanged]));
  if (isObject(config) && isObject(config[key])) config = config[key];
  if (config !== null && !isObject(config)) {
    return { problem: `must export an object or a function that returns one, not ${Array.isArray(config) ? "an array" : typeof config}` };
  }
  return { kind, unused, config: config ?? {} };
}

const plain = (_, value) =>
  typeof value === "function" ? `*${value.name || "anonymous"}` : typeof value === "bigint" ? Number(value) : value;

let printed;
try {
  printed = JSON.stringify(await evaluate(), plain);
} catch (error) {
  const at = /^:(\d+)(?::(\d+))?/.exec((error?.stack ?? "").split(file, 2)[1] ?? "") ?? [];
  printed = JSON.stringify({ problem: `${error?.name ?? "Error"}: ${error?.message ?? error}`, line: +at[1] || 0, column: +at[2] || 0 });
}
process.stdout.write(mark + printed, () => process.exit(0));
