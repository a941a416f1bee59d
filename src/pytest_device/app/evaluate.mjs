// Evaluates a dynamic app config: reads {file, key, context, mark} from standard input, prints the mark and a JSON object.
import { readFileSync } from "node:fs";
import { createRequire, registerHooks, stripTypeScriptTypes } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// A module may be loaded deep in others.
Error.stackTraceLimit = 200;

const { file, key, context, mark } = JSON.parse(readFileSync(0, "utf8"));
const STATIC_CONFIG = Symbol("the static config");
const CAN_TRANSFORM = process.execArgv.includes("--experimental-transform-types");

const COMMENT = /\/\*[^]*?\*\/|(?<![\\:])\/\/.*/;
const TEXT = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[^])*`/;
const COMMENTS = new RegExp(`(${TEXT.source})|${COMMENT.source}`, "g");
const NAMES = new RegExp(String.raw`((?:[\w$*{},\s]|${COMMENT.source})+?)\bfrom\s*`);
const IMPORT = new RegExp(
  String.raw`(?<=^|;)([ \t]*)import\b\s*(?:${NAMES.source})?(["'])([^"'\n]+)\3(?:\s*with\s*\{[^}]*\})?[ \t]*;?`,
  "gm",
);
const OF_A_SCRIPT = /\b(?:module\.)?exports\b/;
const EXPORT = /(?:^|[;}])\s*export\b/m;

function isForeign(path) {
  return /[\\/]node_modules[\\/]/.test(path);
}

/** Return a source without types, in its lines; enums and namespaces, which are more than types, have a source map. */
function withoutTypes(source, url) {
  try {
    return stripTypeScriptTypes(source);
  } catch (error) {
    if (!CAN_TRANSFORM) throw error;
    return stripTypeScriptTypes(source, { mode: "transform", sourceMap: true, sourceUrl: url });
  }
}

/** Return the names in an import as pairs: the name in the module ("*" for all of it), and the local one. */
function importedNames(clause) {
  const [, outside, inside = ""] = /^([^{]*)(?:\{([^}]*)\})?/.exec(clause.replace(COMMENTS, " "));
  const listed = (names) => names.split(",").map((name) => name.trim()).filter(Boolean);

  const whole = listed(outside).map((name) => (name.startsWith("*") ? name : `default as ${name}`));

  return [...whole, ...listed(inside)].map((name) => {
    const [imported, local = imported] = name.split(/\s+as\s+/);
    return [imported, local];
  });
}

/** Return the source with imports as calls, as the vendor's compiler does, and without those of types alone. */
function compiled(source, url) {
  const code = source.replace(COMMENTS, (_, text = " ") => text).replace(IMPORT, "");
  let count = 0;

  return source.replace(IMPORT, (statement, indent, clause, _, name) => {
    // Without the types, nothing but the import has a name that stood for one.
    const used = importedNames(clause ?? "").filter(([, local]) =>
      new RegExp(String.raw`(?<![\w$]|(?<!\.\.)\.)${local.replaceAll("$", "\\$")}(?![\w$])`).test(code),
    );
    const lines = "\n".repeat(statement.split("\n").length - 1);
    if (clause && !used.length) return lines;

    const module = `__module${count++}`;
    const values = used.map(([imported, local]) => {
      if (imported === "*") return `${local} = ${module}`;
      if (imported === "default") return `${local} = ${module}.__esModule ? ${module}.default : ${module}`;
      return `${local} = ${module}.${imported}`;
    });
    const loaded = `${module} = __imported(${JSON.stringify(url)}, ${JSON.stringify(name)})`;

    return `${indent}const ${[loaded, ...values].join(", ")};${lines}`;
  });
}

/** Return what a module exports. An error names the module, unless it is the project's own. */
function imported(importer, name) {
  try {
    return createRequire(importer)(name) ?? {};
  } catch (error) {
    if (error instanceof Error && !/^[./]/.test(name)) error.module ??= name;
    throw error;
  }
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

  throw error;
}

registerHooks({
  resolve(name, resolveContext, next) {
    try {
      return next(name, resolveContext);
    } catch (error) {
      // Some packages are for modules alone.
      if (error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED") {
        return next(name, { ...resolveContext, conditions: ["node", "import"] });
      }
      return resolvedByBundlers(name, resolveContext, error);
    }
  },

  load(url, options, next) {
    const loaded = next(url, options);
    const [, language] = /\.[cm]?([jt])sx?$/.exec(url) ?? [];
    if (!language || isForeign(url) || loaded.source == null) return loaded;

    const text = loaded.source.toString();
    const source = compiled(language === "t" ? withoutTypes(text, url) : text, url);
    const isScript = OF_A_SCRIPT.test(source) && !EXPORT.test(source);
    const format = loaded.format?.replace(/-?typescript/, "").replace("module", isScript ? "commonjs" : "module");

    return { ...loaded, format: format || undefined, source };
  },
});

// A bundler compiles modules to scripts, which have these; scripts of Node.js have their own.
Object.assign(globalThis, {
  require: createRequire(pathToFileURL(file)),
  __filename: file,
  __dirname: dirname(file),
  __imported: imported,
});

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

/** Return the message of an error, with the position in the project's own file that led to it. */
function explained(error) {
  const position = /(?:^|[\s(])((?:file:\/\/\/|\/|[A-Z]:\\)[^\n]*?):(\d+)(?::(\d+))?\)?$/gm;
  const [path, line, column] = [...(error?.stack ?? "").matchAll(position)]
    .map(([, place, ...numbers]) => [place.startsWith("file:") ? fileURLToPath(place) : place, ...numbers])
    .find(([place]) => place !== import.meta.filename && !isForeign(place)) ?? [file];

  const [message] = String(error?.message ?? error).split("\nRequire stack:");
  const where = error?.module ? `cannot load ${JSON.stringify(error.module)}: ` : "";

  return {
    problem: `${where}${error?.name ?? "Error"}: ${message}`,
    file: path,
    line: Number(line ?? 0),
    column: Number(column ?? 0),
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
