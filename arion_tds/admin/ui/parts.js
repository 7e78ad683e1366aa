// Small parts of the page: elements, tables, times, questions to the gateway. Everything that was pushed is text, never markup.

/** An element. Attributes that are functions become listeners, `class` and the rest attributes; children: nodes or text. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A table. `columns`: [head, class]; `rows`: arrays of nodes or text. */
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("div", {}, caption ? h("h2", {}, caption) : null, h("p", { class: "quiet" }, empty));
  return h("div", {}, caption ? h("h2", {}, caption) : null, h("table", { "aria-label": caption || empty },
    h("thead", {}, h("tr", {}, columns.map(([head, kind]) => h("th", { class: kind, scope: "col" }, head)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h("td", { class: columns[at][1] }, cell)))))));
}

export const chip = (text, kind = "") => h("span", { class: `chip ${kind}` }, text);

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];

/** Seconds in one unit. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  for (const [size, unit] of UNITS) if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit}`;
  return `${Math.max(0, Math.round(seconds))} s`;
}

/** How long ago that was (seconds since the epoch). */
export const ago = (at) => (at === null || at === undefined ? "–" : `${span(Date.now() / 1000 - at)} ago`);

export const number = (value) => (value ?? "–").toLocaleString("en");

/** A page of the admin listener as JSON; throws an Error whose message is a sentence. */
export async function ask(path, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  const response = await fetch(query ? `${path}?${query}` : path, { cache: "no-store" });
  const body = await response.json();
  if (!response.ok && body.error) throw new Error(body.error);
  return body;
}

export const OUTCOMES = { accepted: "good", rejected: "bad", removed: "warn" };

/** The verdicts on a resource, newest first, as a list. */
export function verdicts(given) {
  return h("ul", {}, [...given].reverse().map((one) => h("li", {},
    chip(one.outcome, OUTCOMES[one.outcome]), one.version ? ` version ${one.version}` : "",
    one.times > 1 ? ` · ${one.times} times` : "", h("span", { class: "quiet" }, ` · ${ago(one.at)}`),
    one.reason ? h("div", { class: "reason" }, one.reason) : null)));
}
