// Evaluates a dynamic app config: reads {file, key, context, mark} from standard input, prints the mark and a JSON object.
import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";

const { file, key, context, mark } = JSON.parse(readFileSync(0, "utf8"));
const unchanged = Symbol("the static config");

// A name that TypeScript alone knows is imported like any other, and would be missing: read it as undefined instead.
const typesOf = new RegExp(`import\\s*\\{([^}]*)\\}\\s*from\\s*(["']${key}/config["'])\\s*;?`, "g");
let imports = 0;
const asValues = (_, names, from) => {
  const module = `__config${(imports += 1)}`;
  const values = names.replace(/\btype\s+\w+(\s+as\s+\w+)?\s*,?/g, "").replace(/\sas\s/g, ": ");
  return `import * as ${module} from ${from}; const {${values}} = ${module};`;
};

// A bundler finds `./lib` and `vendor/config` without an extension, also from a module. Newer versions of Node.js call the
// hooks for `require.resolve`, too: look once.
let looking = false;
const asBundlersDo = (name, context, error) => {
  if (looking) throw error;
  looking = true;
  try {
    for (const ending of ["", ".ts", "/index.ts"]) {
      try {
        return { url: pathToFileURL(createRequire(context.parentURL).resolve(name + ending)).href, shortCircuit: true };
      } catch {}
    }
  } finally {
    looking = false;
  }
  if (name === `${key}/config`) return { url: "data:text/javascript,", shortCircuit: true };  // it has the types alone
  throw error;
};

// A bundler imports JSON without an attribute, and its keys by name.
const jsonModule = (url) => {
  const value = JSON.parse(readFileSync(new URL(url), "utf8"));
  const names = Object.keys(value ?? {}).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== "default");
  const exported = names.map((name, index) => `const _${index} = value.${name}; export { _${index} as ${name} };`);
  const source = `const value = JSON.parse(${JSON.stringify(JSON.stringify(value))}); export default value;`;
  return { format: "module", source: [source, ...exported].join("\n"), shortCircuit: true };
};

registerHooks({
  resolve(name, context, next) {
    try {
      const found = next(name, context);
      const plain = found.url.endsWith(".json") && context.conditions.includes("import") && !context.importAttributes?.type;
      return plain ? { ...found, format: "module" } : found;
    } catch (error) {
      return asBundlersDo(name, context, error);
    }
  },
  load(url, options, next) {
    if (url.endsWith(".json") && options.format === "module") return jsonModule(url);
    const loaded = next(url, options);
    if (!/\.[cm]?ts$/.test(url) || loaded.source == null) return loaded;
    return { ...loaded, source: loaded.source.toString().replace(typesOf, asValues) };
  },
});

// A bundler compiles modules to scripts, which have these; scripts of Node.js have their own.
Object.assign(globalThis, { require: createRequire(pathToFileURL(file)), __filename: file, __dirname: dirname(file) });

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
