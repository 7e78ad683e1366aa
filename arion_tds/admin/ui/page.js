// The operator's page: one view per hash, asked anew when something changes. No build step, nothing from outside.
import { ago, ask, chip, h, number, OUTCOMES, span, table, verdicts } from "./parts.js";

const $ = (id) => document.getElementById(id);
const PAGE = 100, POLL = 5000, KEPT = 200, SOON = 250;
const state = { status: null, scope: null, query: "", namespace: "", happened: [], asked: 0 };

const GOOD = { served: "good", restricted: "warn", not_listed: "warn", older_version: "warn", pending: "warn" };

// ---- views: each gives the nodes of <main> ----

async function overview() {
  const { status } = state;
  const here = status.scopes.find((one) => one.scope === state.scope);
  const sum = (what) => status.scopes.reduce((all, one) => all + what(one), 0);
  const card = (value, what) => h("div", { class: "card" }, h("strong", {}, number(value)), what);
  const listeners = Object.entries(status.listeners);
  return [
    h("div", { class: "cards" },
      card(sum((one) => one.tools), "tools"), card(status.scopes.length, "scopes"),
      card(sum((one) => one.tokens?.total ?? 0), "tokens of definitions"),
      card(status.problems.rejected, "rejected resources"),
      card(listeners.reduce((all, [, one]) => all + one.open_streams, 0), "open streams"),
      card(listeners.reduce((all, [, one]) => all + one.running_calls, 0), "running calls")),
    table("Scopes", [["scope", "name"], ["listener", ""], ["endpoint", "name"], ["names", ""], ["tools", "number"],
      ["tokens", "number"], ["revision", "number"]],
    status.scopes.map((one) => {
      const [name, found] = listeners.find(([, listener]) => listener.scope === one.scope) ?? ["–", null];
      return [choose(one.scope), name, found?.endpoint ?? "–", one.tool_names, number(one.tools),
        tokens(one.tokens), number(one.revision)];
    }), "No scope is served yet."),
    here ? table(`Namespaces of ${here.scope}`, [["namespace", "name"], ["owner", ""], ["tools", "number"], ["tokens", "number"], ["", ""]],
      Object.entries(here.namespaces).map(([name, one]) => [
        link(name, () => { state.namespace = name; state.query = ""; location.hash = "tools"; }),
        chip({ tools: "tools, one by one", source: "OpenAPI source", server: "MCP server" }[one.owner] ?? one.owner),
        number(one.tools), one.tokens === undefined ? "–" : number(one.tokens), link("why", () => explain(name))]),
      "Nothing is served in this scope yet.") : null,
  ];
}

async function tools() {
  const { scope, query, namespace } = state;
  const spaces = Object.keys(state.status.scopes.find((one) => one.scope === scope)?.namespaces ?? {});
  const search = h("input", { type: "search", id: "query", value: query, placeholder: "search, or empty for all", "aria-label": "search tools",
    oninput: (event) => { state.query = event.target.value; soon(); } });
  const space = h("select", { "aria-label": "namespace", onchange: (event) => { state.namespace = event.target.value; show(); } },
    h("option", { value: "" }, "every namespace"),
    spaces.map((name) => h("option", { value: name, selected: name === namespace }, name)));
  const bar = h("div", { class: "tools" }, search, space);
  if (!scope) return [bar, h("p", { class: "quiet" }, "No scope is served yet.")];
  const found = await ask("/tools", { scope, namespace, query, limit: PAGE });
  const body = h("tbody", {});
  const count = h("p", { class: "quiet", role: "status" });
  const more = h("button", { onclick: () => next(found.next) }, "More");
  const add = (page) => {
    body.append(...page.tools.map(row));
    found.next = page.next;
    more.hidden = !page.next;
    count.textContent = `${number(body.children.length)} of ${number(page.total)} tools`;
  };
  const next = async (after) => add(await ask("/tools", { scope, namespace, query, after, limit: PAGE }));
  add(found);
  const heads = [["name", ""], ["owner", ""], ["backend", ""], ["seen by", ""], ["tokens", "number"], ["description", ""]];
  return [bar, count, found.tools.length ? h("table", { "aria-label": "Tools" },
    h("thead", {}, h("tr", {}, heads.map(([head, kind]) => h("th", { class: kind, scope: "col" }, head)))), body)
    : h("p", {}, "Nothing fits. ", query ? link("Why is it not there?", () => explain(query)) : null), more];
}

function row(one) {
  const who = [one.restricted ? chip("some callers", "warn") : "all", one.eager ? " " : null, one.eager ? chip("eager") : null];
  return h("tr", {}, h("td", { class: "name" }, link(one.name, () => detail(one.name))), h("td", {}, one.owner ?? "–"),
    h("td", {}, one.backend), h("td", {}, who), h("td", { class: "number" }, number(one.tokens)),
    h("td", {}, one.description.split("\n")[0].slice(0, 160)));
}

async function history() {
  const found = await ask("/history", { scope: state.scope, limit: PAGE });
  return [table(`What was pushed to ${state.scope ?? "this gateway"}, newest first`,
    [["type", ""], ["resource", "name"], ["last", ""], ["version", "name"], ["when", ""], ["verdicts", ""], ["reason", "reason"]],
    found.resources.map((one) => {
      const last = one.verdicts[one.verdicts.length - 1];
      const past = one.verdicts.map((each) => each.outcome[0].toUpperCase()).join(" ");
      return [one.type, link(one.name, () => resource(one)), chip(last.outcome, OUTCOMES[last.outcome]), last.version, ago(last.last_at),
        h("span", { title: "A accepted, R rejected (NACK), oldest first" }, past), last.reason];
    }), "Nothing was pushed yet.")];
}

async function problems() {
  const found = await ask("/problems", { scope: state.scope });
  return [table("What stands rejected or is served in part", [["state", ""], ["type", ""], ["resource", "name"], ["version", "name"],
    ["since", ""], ["reason", "reason"]],
  found.problems.map((one) => [chip(one.state, one.state === "rejected" ? "bad" : "warn"), one.type,
    link(one.name, () => explain(one.name)), one.version, ago(one.at), one.reason]), "Nothing stands rejected. All that was pushed serves.")];
}

async function upstreams() {
  const { status } = state;
  return [
    table("MCP servers", [["state", ""], ["server", "name"], ["speaks", ""], ["tools", "number"], ["listed", ""], ["calls", "number"],
      ["failures", "number"], ["last error", "reason"]],
    status.mcp_servers.map((one) => [server(one), one.url, one.version ?? "–", number(one.listed_tools), ago(one.listed_at),
      `${number(one.calls)} (${one.calls_in_flight} now)`, number(one.failures),
      one.last_error ? `${one.last_error} (${ago(one.last_error_at)})` : ""]), "No MCP server is in use."),
    status.pending_servers.length ? table("Asked again until they answer", [["server", "name"], ["tries", "number"], ["last", "reason"]],
      status.pending_servers.map((one) => [`${one.scope}/${one.namespace}`, number(one.failures), one.reason]), "") : null,
    table("Clusters", [["state", ""], ["cluster", "name"], ["endpoint", "name"], ["active", "number"], ["calls", "number"], ["retries", "number"],
      ["overflows", "number"], ["last error", "reason"]],
    status.clusters.flatMap((one) => one.endpoints.map((endpoint) => [chip(endpoint.down ? "down" : "up", endpoint.down ? "bad" : "good"),
      one.name, endpoint.origin, number(one.active), number(one.calls), number(one.retries), number(one.overflows),
      endpoint.last_error ?? ""])), "No cluster is configured."),
  ];
}

async function events() {
  return [table("As it happens", [["when", ""], ["what", ""], ["", "reason"]],
    state.happened.map(({ name, data }) => [new Date(data.at * 1000).toLocaleTimeString(), ...told(name, data)]),
    "Nothing has happened since this page was opened. Push something.")];
}

function told(name, data) {
  if (name === "catalog") {
    const part = (sign, { count, names }) => names.map((one) => `${sign}${one}`).join(" ") + (count > names.length ? ` ${sign}${count - names.length} more` : "");
    const parts = [part("+", data.added), part("~", data.changed), part("−", data.removed)].filter(Boolean);
    return [chip("catalog", "good"), `${data.scope}: ${data.tools} tools ${parts.join(" ")}`];
  }
  if (name === "rejected") return [chip("rejected", "bad"), `${data.type} ${data.name} version ${data.version}: ${data.reason}`];
  if (name === "control_plane") return [chip("control plane", data.connected ? "good" : "bad"), data.connected ? "is here" : `is away: ${data.reason}`];
  return [chip(name), JSON.stringify(data)];
}

// ---- details: a tool, a resource, an explanation ----

function open(...nodes) {
  const close = h("button", { "aria-label": "Close details", onclick: shut }, "Close");
  $("detail").replaceChildren(h("div", { class: "tools" }, close), ...nodes.flat().filter(Boolean));
  $("detail").hidden = false;
  close.focus({ preventScroll: true });
}

function shut() {
  $("detail").hidden = true;
  (state.opener?.isConnected ? state.opener : $("main")).focus();
}

async function detail(name) {
  await guarded(async () => {
    const [one, why] = await Promise.all([ask("/tool", { scope: state.scope, name }), ask("/explain", { scope: state.scope, name })]);
    open(h("h2", {}, one.name), h("p", {}, one.description), ...why.answers.map(answer),
      h("h3", {}, "Input schema"), h("pre", { tabindex: 0 }, JSON.stringify(one.inputSchema, null, 2)),
      one.outputSchema ? [h("h3", {}, "Output schema"), h("pre", { tabindex: 0 }, JSON.stringify(one.outputSchema, null, 2))] : null);
  });
}

async function explain(name) {
  await guarded(async () => {
    const found = await ask("/explain", { name });
    open(h("h2", {}, `Why ${name}?`), found.answers.map(answer));
  });
}

function resource(one) {
  open(h("h2", {}, one.name), h("p", {}, one.type), verdicts(one.verdicts));
}

function answer(one) {
  return h("section", {},
    h("p", {}, chip(one.state.replaceAll("_", " "), GOOD[one.state] ?? "bad"), ` ${one.name} in ${one.scope}`),
    h("p", { class: "summary" }, one.summary),
    one.details ? h("ul", {}, one.details.map((text) => h("li", {}, text))) : null,
    one.workers ? h("ul", {}, one.workers.map((it) => h("li", {},
      `Worker ${it.worker} ${it.state ? `says ${it.state.replaceAll("_", " ")}: ${it.summary}` : "has no answer"}`))) : null,
    one.advice ? h("p", {}, h("strong", {}, "Next: "), one.advice.join("; ")) : null,
    one.suggestions ? h("p", {}, "Did you mean ", one.suggestions.map((name) => [link(name, () => explain(name)), " "])) : null,
    one.history ? [h("h3", {}, "Verdicts"), verdicts(one.history)] : null);
}

// ---- the frame ----

const VIEWS = { overview, tools, history, problems, upstreams, events };
const link = (text, onclick) => h("button", { class: "link", type: "button", onclick: (event) => { state.opener = event.currentTarget; onclick(); } }, text);
const choose = (scope) => link(scope, () => { state.scope = scope; $("scope").value = scope; show(); });
const tokens = (cost) => (cost ? `${cost.exact ? "" : "~"}${number(cost.total)}` : "–");
const troubled = (one) => one.state === "failing";
const server = (one) => chip(one.state, { failing: "bad", ok: "good" }[one.state] ?? "");

const page = () => (location.hash.slice(1) in VIEWS ? location.hash.slice(1) : "overview");

/** Draw the page that the hash names; a newer drawing overtakes an older one. What has the focus keeps it. */
async function show() {
  const asked = ++state.asked;
  const name = page();
  for (const one of document.querySelectorAll("nav a")) {
    if (one.getAttribute("href") === `#${name}`) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  await guarded(async () => {
    if (!state.status) await refresh();
    const nodes = await VIEWS[name]();
    if (asked !== state.asked) return;
    const typing = document.activeElement?.id === "query" ? document.activeElement.selectionStart : null;
    $("main").replaceChildren(...nodes.flat().filter(Boolean));
    if (typing !== null && $("query")) { $("query").focus(); $("query").setSelectionRange(typing, typing); }
    dispatchEvent(new Event("drawn"));
    document.title = `${name} · arion-tds`;
  });
}

/** The frame around the pages: what is true whatever is looked at. */
async function refresh() {
  const status = state.status = await ask("/status");
  $("version").textContent = status.version;
  mark($("ready"), status.ready ? "ready" : "not ready", status.ready ? "good" : "bad");
  const plane = status.control_plane;
  if (!plane) mark($("plane"), "no control plane", "");
  else if (plane.connected) mark($("plane"), `control plane ${plane.address} up ${span(plane.connected_for_seconds)}`, "good");
  else mark($("plane"), `control plane ${plane.address} away`, "bad", plane.last_error);
  const scopes = status.scopes.map((one) => one.scope);
  if (!scopes.includes(state.scope)) state.scope = scopes[0] ?? null;
  if ([...$("scope").options].map((one) => one.value).join("\n") !== scopes.join("\n")) {
    $("scope").replaceChildren(...scopes.map((one) => h("option", { value: one }, one)));
  }
  $("scope").value = state.scope;
  count($("problems"), status.problems.rejected);
  const down = status.mcp_servers.filter(troubled).length + status.pending_servers.length;
  count($("troubles"), down + status.clusters.reduce((all, one) => all + one.endpoints.filter((each) => each.down).length, 0));
}

function mark(element, text, kind, title = "") {
  if (element.textContent !== text) element.textContent = text;
  element.className = `chip ${kind}`;
  element.title = title;
}

function count(element, value) {
  element.hidden = !value;
  element.textContent = value;
}

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    mark($("ready"), "the gateway does not answer", "bad", error.message);
    if (!(error instanceof TypeError)) open(h("h2", {}, "That did not work"), h("p", {}, error.message));
  }
}

let timer = 0;
/** Draw again when things have calmed down for a moment. */
function soon() {
  clearTimeout(timer);
  timer = setTimeout(show, SOON);
}

async function again() {
  await guarded(refresh);
  if (["overview", "upstreams"].includes(page()) && !$("main").contains(document.activeElement)) await show();
}

function listen() {
  const source = new EventSource("/events");
  source.onopen = () => { $("live").className = "dot good"; };
  source.onerror = () => { $("live").className = "dot"; };
  for (const name of ["catalog", "rejected", "control_plane", "missed"]) {
    source.addEventListener(name, async (event) => {
      const data = { at: Date.now() / 1000, ...JSON.parse(event.data) };
      state.happened.unshift({ name, data });
      state.happened.length = Math.min(state.happened.length, KEPT);
      clearTimeout(timer);
      timer = setTimeout(async () => { await guarded(refresh); await show(); }, SOON);
    });
  }
}

addEventListener("hashchange", () => { show(); $("main").focus({ preventScroll: true }); });
$("scope").addEventListener("change", (event) => { state.scope = event.target.value; state.namespace = ""; show(); });
$("why").addEventListener("submit", (event) => {
  event.preventDefault();
  state.opener = $("why-name");
  if ($("why-name").value.trim()) explain($("why-name").value.trim());
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("detail").hidden) return shut();
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/") {
    event.preventDefault();
    if (page() === "tools") $("query")?.focus();
    else { location.hash = "tools"; addEventListener("drawn", () => $("query")?.focus(), { once: true }); }
  } else if (event.key === "?") {
    event.preventDefault();
    $("why-name").focus();
  } else if (/^[1-6]$/.test(event.key)) {
    location.hash = Object.keys(VIEWS)[event.key - 1];
  }
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); $("main").focus(); });
setInterval(() => { if (!document.hidden) again(); }, POLL);
await show();
listen();
