// The inside of one sandbox: runs one program, then waits to be killed. Started by deno.py, speaks protocol.py's frames.
//
// Everything that is needed after the program has started is taken from the globals before, so that a program that
// changes them harms only itself. What keeps it in is the process: no permission was given to it, and the gateway
// believes nothing that comes out of it.

const { stdin, stdout, inspect, exit } = Deno;
const { parse, stringify, rawJSON } = JSON;
const { assign, create, defineProperty, freeze, fromEntries, keys } = Object;
const { isArray, from: arrayFrom } = Array;
const { isInteger, isSafeInteger } = Number;
const { min } = Math;
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);
const decoder = new TextDecoder();
const decode = decoder.decode.bind(decoder);
const PromiseOf = Promise, MapOf = Map, SetOf = Set, ErrorOf = Error, BigIntOf = BigInt, ProxyOf = Proxy, RegExpOf = RegExp;
const isView = ArrayBuffer.isView;

const LARGE = /[:[,]\s*-?\d{16,}/; // an integer that a number may not hold
const LONE = /(?<=(?:^|[^\\])(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;
const PLACE = /data:application\/typescript;base64,[^\s)]*?:(\d+):(\d+)/;
const PREVIEW = 1000;
const limits = { output: 1 << 20, argument: 1 << 20 };

function write(line) {
  const bytes = encode(line + "\n");
  for (let at = 0; at < bytes.length;) at += stdout.writeSync(bytes.subarray(at));
}

// --- values ---------------------------------------------------------------------------------------------------------

function exact(_key, value, context) {
  const isLarge = typeof value === "number" && isInteger(value) && !isSafeInteger(value);
  return isLarge && /^-?\d+$/.test(context.source) ? BigIntOf(context.source) : value;
}

/** JSON to a value. Integers beyond 2^53 become BigInt: an id must come out as it went in. */
function read(text) {
  return LARGE.test(text) ? parse(text, exact) : parse(text);
}

/** What a tool answered as text: the value if it is JSON, else the text. */
function readText(text) {
  try {
    const value = read(text);
    return typeof value === "number" && String(value) !== text.trim() ? text : value;
  } catch {
    return text;
  }
}

/** A value as JSON; undefined where there is nothing to write. */
function json(value) {
  const text = stringify(value, plain);
  // Half a character (a lone surrogate) is an escape that JSON readers refuse.
  return text !== undefined && text.includes("\\ud") ? text.replace(LONE, "\ufffd") : text;
}

class Unsendable extends ErrorOf {}

function plain(key, value) {
  if (typeof value === "bigint") return rawJSON(String(value));
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof PromiseOf) {
    throw new Unsendable(`the value holds a Promise${key === "" ? "" : ` at "${key}"`}: await it (Promise.all for several)`);
  }
  if (value instanceof MapOf) return fromEntries(value);
  if (value instanceof SetOf) return arrayFrom(value);
  if (value instanceof ErrorOf) return { name: value.name, message: value.message, ...value };
  if (isView(value) && typeof value.length === "number") return arrayFrom(value);
  return value;
}

/** The top of a value as a type: what the model needs to ask for less. */
function shape(value, depth = 3) {
  if (value === null) return "null";
  if (isArray(value)) return value.length === 0 ? "[]" : `Array(${value.length}) of ${shape(value[0], depth - 1)}`;
  if (typeof value !== "object") return typeof value === "string" ? `string(${value.length})` : typeof value;
  if (depth === 0) return "{…}";
  const names = keys(value);
  const shown = names.slice(0, 20).map((name) => `${name.slice(0, 60)}: ${shape(value[name], depth - 1)}`);
  if (names.length > 20) shown.push(`… ${names.length - 20} more`);
  return `{${shown.join(", ")}}`;
}

function short(text, limit) {
  text = String(text);
  return text.length > limit ? text.slice(0, limit) : text;
}

// --- calls to the host ------------------------------------------------------------------------------------------------

class ToolError extends ErrorOf {
  constructor(found, site) {
    super(found.message);
    defineProperty(this, "name", { value: "ToolError", configurable: true, writable: true });
    this.code = found.code;
    this.retryable = found.retryable === true;
    if (found.status !== undefined) this.status = found.status;
    if (site !== undefined) {
      const frames = String(site.stack).replace(/^[^\n]*/, `ToolError: ${found.message}`);
      defineProperty(this, "stack", { value: frames, configurable: true, writable: true });
    }
  }
}

const waiting = create(null);
let calls = 0;
let outstanding = 0;

function call(op, args) {
  const site = new ErrorOf(); // the place in the program, should the call fail
  return new PromiseOf((resolve, reject) => {
    let text;
    try {
      text = json(args);
    } catch (error) {
      throw new ToolError({ code: "invalid_arguments", message: `the arguments cannot be sent as JSON: ${error.message}` }, site);
    }
    const size = text.length > limits.argument ? text.length : encode(text).length;
    if (size > limits.argument) {
      const message = `the arguments are ${size} bytes, more than ${limits.argument} (the limit of one call)`;
      throw new ToolError({ code: "invalid_arguments", message }, site);
    }
    const id = ++calls;
    waiting[id] = { resolve, reject, site };
    outstanding += 1;
    write(`{"t":"call","id":${id},"op":"${op}","args":${text}}`);
  });
}

function answered(text) {
  const frame = read(text);
  if (frame.t === "run") return start(frame);
  const { resolve, reject, site } = waiting[frame.id];
  delete waiting[frame.id];
  outstanding -= 1;
  if (frame.error !== undefined) reject(new ToolError(frame.error, site));
  else resolve(frame.text === undefined ? frame.value : readText(frame.text));
}

// --- what the program sees ----------------------------------------------------------------------------------------------

const handles = new WeakSet();
let namespaces = [];

function callTool(name, args) {
  if (typeof name === "object" && name !== null && typeof name.name === "string") name = name.name;
  return call("tool", { name: String(name), args: args === undefined ? {} : args });
}

function unlisted(path) {
  throw new TypeError(`the tools of ${path} cannot be enumerated here: use catalog.tools.list({namespace: "${path}"})`);
}

/** `tools.a.b` for any a and b: nothing is known about them until they are called. */
function handle(path) {
  const made = new ProxyOf(function () {}, {
    get: (_target, key) => (typeof key === "symbol" || key === "then" || key === "toJSON" ? undefined : handle(`${path}.${key}`)),
    apply: (_target, _self, args) => callTool(path, args[0]),
    set: () => false,
    ownKeys: () => unlisted(path),
    has: () => unlisted(path),
  });
  handles.add(made);
  return made;
}

const tools = new ProxyOf(create(null), {
  get: (_target, key) => {
    if (typeof key === "symbol" || key === "then" || key === "toJSON") return undefined;
    return key === "call" ? callTool : handle(key);
  },
  set: () => false,
  has: (_target, key) => namespaces.includes(key),
  ownKeys: () => namespaces,
  getOwnPropertyDescriptor: (_target, key) =>
    namespaces.includes(key) ? { value: handle(key), enumerable: true, configurable: true } : undefined,
});

const catalog = freeze({
  namespaces: () => call("namespaces", {}),
  tools: freeze({
    list: (options) => call("list", { options }),
    search: (query, options) => call("search", { query, options }),
    describe: (name, options) => call("describe", { name, options }),
  }),
  toolkits: freeze({
    list: () => call("toolkits", {}),
    get: (name) => call("toolkit", { name }),
  }),
});

function shown(value) {
  return typeof value === "string" ? value : inspect(value, { depth: 6, colors: false, strAbbreviateSize: 2000 });
}

function log(level, values) {
  let text = level === "" ? "" : `[${level}]`;
  for (let at = 0; at < values.length; at++) text += (text === "" ? "" : " ") + shown(values[at]);
  if (text.length > limits.output) return oversize("console", text.length, text, "string");
  write(`{"t":"log","text":${json(text)}}`);
}

const quiet = () => {};
const say = (...values) => log("", values);
const console = {
  log: say, info: say, debug: say, dir: (value) => log("", [value]), table: (value) => log("", [value]), group: say,
  warn: (...values) => log("warn", values), error: (...values) => log("error", values),
  trace: (...values) => log("trace", values),
  assert: (holds, ...values) => holds || log("assertion failed", values),
  groupCollapsed: say, groupEnd: quiet, count: quiet, countReset: quiet, time: quiet, timeEnd: quiet, timeLog: quiet, clear: quiet,
};

function away(name) {
  return () => {
    throw new ErrorOf(`${name} is not available here: call tools.<namespace>.<name>(args)`);
  };
}

/** What is of no use in here goes, so that a program is told so by name. (What would be of use needs a permission.) */
function furnish() {
  const gone = ["Deno", "Worker", "WebSocket", "WebSocketStream", "EventSource", "WebAssembly", "SharedArrayBuffer",
    "localStorage", "sessionStorage", "caches", "indexedDB", "BroadcastChannel", "navigator", "location", "process", "global",
    "prompt", "alert", "confirm", "close", "Cache", "CacheStorage", "GPU", "onmessage", "postMessage"];
  for (const name of gone) delete globalThis[name];
  const here = { tools, catalog, console, ToolError, fetch: away("fetch"), require: away("require"), XMLHttpRequest: away("XMLHttpRequest") };
  for (const name of keys(here)) {
    defineProperty(globalThis, name, { value: here[name], writable: true, configurable: true, enumerable: false });
  }
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    log("error", [`not awaited, and failed: ${described(event.reason).message}`]);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    log("error", [`thrown outside of the program's own flow: ${described(event.error).message}`]);
  });
}

// --- one program -------------------------------------------------------------------------------------------------------

function oversize(what, size, preview, form) {
  write(`{"t":"oversize","what":"${what}","bytes":${size},"preview":${json(short(preview, PREVIEW))},"shape":${json(short(form, 2000))}}`);
}

/** Name, message and place of whatever was thrown. */
function described(error) {
  if (typeof error !== "object" || error === null) return { name: "", message: short(shown(error), 5000) };
  const found = { name: "Error", message: "" };
  try {
    found.name = short(error.name ?? "Error", 200);
    [found.message] = short(error.message ?? shown(error), 5000).split("\n    at "); // no frames of ours
    const place = RegExpOf.prototype.exec.call(PLACE, short(error.stack ?? "", 20000));
    if (place !== null) assign(found, { line: Number(place[1]), column: Number(place[2]) });
    if (typeof error.code === "string") found.code = short(error.code, 200);
    if (typeof error.retryable === "boolean") found.retryable = error.retryable;
    if (isInteger(error.status)) found.status = error.status;
  } catch {
    // a getter that throws: what was read stands
  }
  return found;
}

/** What the parser said, without the program's text in it. */
function unreadable(error) {
  const text = String(error.message);
  const place = PLACE.exec(text) ?? PLACE.exec(String(error.stack));
  const [first] = text.replace(/^SyntaxError: /, "").split(/\n| at data:/, 1);
  const found = { name: "SyntaxError", message: short(first, 2000) };
  return place === null ? found : { ...found, line: Number(place[1]), column: Number(place[2]) };
}

function failed(kind, module, found) {
  write(json(assign(create(null), { t: "error", kind, module }, found)));
}

async function load(modules) {
  for (let at = 0; at < modules.length; at++) {
    try {
      return { at, execute: (await import(modules[at])).default };
    } catch (error) {
      if (at === modules.length - 1 || calls > 0) {
        failed("syntax", at, unreadable(error));
        return null;
      }
    }
  }
}

async function start(frame) {
  assign(limits, { output: frame.maxOutput, argument: frame.maxArgument });
  namespaces = frame.namespaces;
  furnish();
  const loaded = await load(frame.modules);
  if (loaded === null) return;
  let value;
  try {
    value = await loaded.execute();
    if (typeof value === "function" && !handles.has(value)) value = await value();
  } catch (error) {
    return failed("runtime", loaded.at, described(error));
  }
  if (handles.has(value)) {
    return failed("result", loaded.at, { name: "TypeError", message: "the value is a tool, not what it answers: call it with its arguments" });
  }
  finish(value, loaded.at);
}

function finish(value, module) {
  let text;
  try {
    text = json(value);
  } catch (error) {
    return failed("result", module, { name: "TypeError", message: `the value cannot be written as JSON: ${short(error.message, 2000)}` });
  }
  const isNothing = text === undefined;
  if (isNothing) text = "null";
  const size = text.length > limits.output ? text.length : encode(text).length;
  if (size > limits.output) return oversize("result", size, text, shape(value));
  write(`{"t":"done","value":${text},"undefined":${isNothing},"calls":${outstanding}}`);
}

// --- the line from the gateway --------------------------------------------------------------------------------------------

async function listen() {
  const buffer = new Uint8Array(1 << 16);
  let parts = [];
  for (;;) {
    const count = await stdin.read(buffer);
    if (count === null) exit(0); // the gateway is gone
    let from = 0;
    for (let end = buffer.indexOf(10); end !== -1 && end < count; end = buffer.indexOf(10, from)) {
      parts[parts.length] = buffer.slice(from, end);
      answered(joined(parts));
      parts = [];
      from = end + 1;
    }
    if (from < count) parts[parts.length] = buffer.slice(from, count);
  }
}

function joined(parts) {
  if (parts.length === 1) return decode(parts[0]);
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return decode(whole);
}

// The parser of TypeScript is made on its first use: better now than when a program waits.
await import("data:application/typescript,export const ready: boolean = true");
write(`{"t":"ready","version":1}`);
listen();
