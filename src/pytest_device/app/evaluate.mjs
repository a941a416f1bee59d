// Evaluates a dynamic app config: reads {file, key, context, mark} from standard input, prints the mark and a JSON object.
import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";

const { file, key, context, mark } = JSON.parse(readFileSync(0, "utf8"));
const TYPES_MODULE = `${key}/config`;
const IMPORT_OF_TYPES = new RegExp(`import\\s*\\{([^}]*)\\}\\s*from\\s*(["']${TYPES_MODULE}["'])\\s*;?`, "g");
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const STATIC_CONFIG = Symbol("the static config");

// A name that TypeScript alone knows is imported like any other, and would be missing: read it as undefined instead.
let namespaces = 0;

function importedAsValues(_, names, from) {
  namespaces += 1;
  const namespace = `__config${namespaces}`;
  const values = names.replace(/\btype\s+\w+(\s+as\s+\w+)?\s*,?/g, "").replace(/\sas\s/g, ": ");

  return `import * as ${namespace} from ${from}; const {${values}} = ${namespace};`;
}

// A bundler finds `./lib` and `vendor/config` without an extension, also from a module. Newer versions of Node.js call the
// hooks for `require.resolve`, too: look once.
let isResolving = false;

function resolvedByBundlers(name, { parentURL }, error) {
  if (isResolving) throw error;

  isResolving = true;
  try {
    for (const ending of ["", ".ts", "/index.ts"]) {
      try {
        return { url: pathToFileURL(createRequire(parentURL).resolve(name + ending)).href, shortCircuit: true };
      } catch {
        // The next one may exist.
      }
    }
  } finally {
    isResolving = false;
  }

  // It has types alone, so that nothing of it is missing.
  if (name === TYPES_MODULE) return { url: "data:text/javascript,", shortCircuit: true };

  throw error;
}

// A bundler imports JSON without an attribute, and its keys by name.
function jsonModule(url) {
  const value = JSON.parse(readFileSync(new URL(url), "utf8"));
  const names = Object.keys(value ?? {}).filter((name) => IDENTIFIER.test(name) && name !== "default");

  // Under names of their own: a key may be a reserved word.
  const exports = names.map((name, index) => `const _${index} = value.${name}; export { _${index} as ${name} };`);
  const declaration = `const value = JSON.parse(${JSON.stringify(JSON.stringify(value))}); export default value;`;

  return { format: "module", source: [declaration, ...exports].join("\n"), shortCircuit: true };
}

registerHooks({
  resolve(name, resolveContext, next) {
    let resolved;
    try {
      resolved = next(name, resolveContext);
    } catch (error) {
      return resolvedByBundlers(name, resolveContext, error);
    }

    const isImport = resolveContext.conditions.includes("import");
    const hasAttribute = Boolean(resolveContext.importAttributes?.type);
    if (resolved.url.endsWith(".json") && isImport && !hasAttribute) return { ...resolved, format: "module" };

    return resolved;
  },

  load(url, options, next) {
    if (url.endsWith(".json") && options.format === "module") return jsonModule(url);

    const loaded = next(url, options);
    if (!/\.[cm]?ts$/.test(url) || loaded.source == null) return loaded;

    return { ...loaded, source: loaded.source.toString().replace(IMPORT_OF_TYPES, importedAsValues) };
  },
});

// A bundler compiles modules to scripts, which have these; scripts of Node.js have their own.
Object.assign(globalThis, { require: createRequire(pathToFileURL(file)), __filename: file, __dirname: dirname(file) });

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return whether a result contains the static config, which is marked: spreading it copies the mark. */
function usesStaticConfig(result) {
  if (!isObject(result)) return false;

  return Boolean(result[STATIC_CONFIG] || result[key]?.[STATIC_CONFIG]);
}

async function evaluate() {
  let exported = (await import(pathToFileURL(file))).default;
  // A script that was compiled from a module has its default export in an object.
  exported = exported?.default ?? exported;

  const kind = typeof exported;
  let result = exported;
  if (kind === "function") {
    result = exported({ ...context, config: { ...context.config, [STATIC_CONFIG]: true } });
  }
  if (typeof result?.then === "function") {
    return { problem: "must not return a promise: load what it waits for before" };
  }

  const unused = context.staticConfigPath !== null && !usesStaticConfig(result);
  const config = isObject(result) && isObject(result[key]) ? result[key] : result;
  if (config !== null && !isObject(config)) {
    const type = Array.isArray(config) ? "an array" : typeof config;
    return { problem: `must export an object or a function that returns one, not ${type}` };
  }

  return { kind, unused, config: config ?? {} };
}

/** Return a value that JSON can have in place of one that it can't. */
function asJson(_, value) {
  if (typeof value === "function") return `*${value.name || "anonymous"}`;
  if (typeof value === "bigint") return Number(value);

  return value;
}

/** Return the message of an error, with its position in the file if the stack has it. */
function explained(error) {
  const [, afterFile = ""] = (error?.stack ?? "").split(file, 2);
  const [, line = 0, column = 0] = /^:(\d+)(?::(\d+))?/.exec(afterFile) ?? [];

  return {
    problem: `${error?.name ?? "Error"}: ${error?.message ?? error}`,
    line: Number(line),
    column: Number(column),
  };
}

let answer;
try {
  answer = JSON.stringify(await evaluate(), asJson);
} catch (error) {
  answer = JSON.stringify(explained(error));
}
// Its timers and servers must not keep the process running.
process.stdout.write(mark + answer, () => process.exit(0));
