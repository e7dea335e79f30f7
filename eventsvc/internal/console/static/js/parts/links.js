// Ways to take what is shown elsewhere: a link to the same rows, and the same question for
// other programs.

import { h } from "../lib/dom.js";
import * as grammar from "../lib/grammar.js";
import { takeAway } from "../lib/takeaway.js";
import { url } from "../lib/api.js";
import { icon } from "./icons.js";
import { Menu } from "./menu.js";

/**
 * Copies a text, and says so.
 * @param {import("../app.js").App} app @param {string} text @param {string} what
 */
export async function copy(app, text, what) {
  try {
    await navigator.clipboard.writeText(text);
    app.say(`${what} copied`);
  } catch {
    app.say(`The browser did not allow ${what.toLowerCase()} to be copied`);
  }
}

/**
 * A button that copies.
 * @param {import("../app.js").App} app @param {string} text @param {string} what
 */
export const copyButton = (app, text, what) =>
  h("button", { type: "button", class: "plain icon copy", title: `Copy ${what.toLowerCase()}`, "aria-label": `Copy ${what.toLowerCase()}`, onclick: () => copy(app, text, what) }, icon("copy"));

/**
 * A value within single quotes for a shell.
 * @param {string} s
 */
const quote = (s) => (/^[\w./:=@%+-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

/**
 * A value within double quotes for LogQL.
 * @param {string} s
 */
const logql = (s) => JSON.stringify(s);

/**
 * The LogQL label or structured metadata of a field.
 * @type {Record<string, string>}
 */
const labels = Object.fromEntries(grammar.dimensions.map((d) => [d, d]));

/** @type {Record<string, string>} */
const metadata = { name: "name", uid: "uid" };

/**
 * The present question for other programs. What one of them cannot ask is said in `lacks`.
 * @param {import("../app.js").App} app @returns {{name: string, text: string, lacks: string}[]}
 */
function commands(app) {
  const terms = grammar.parse(app.state.q);
  const { from, to, revision } = app.state;
  const p = grammar.parameters(app.state.q);
  const path = url("/query/v1/events", { ...p, from, to, revision });
  const namespace = grammar.namespaceOf(terms)?.value;
  const selectLabels = grammar.labelSelector(terms);
  const selector = grammar.listSelector(terms.filter((t) => t.field !== "namespace" || t.not));
  const kubectl = ["kubectl get events.events.k8s.io".replace("events.k8s.io", app.config.eventsPath.split("/")[2]), namespace ? `-n ${quote(namespace)}` : "-A",
    selector && `--field-selector ${quote(selector)}`, selectLabels && `-l ${quote(selectLabels)}`].filter(Boolean).join(" ");
  const streams = terms.filter((t) => labels[t.field]).map((t) => labels[t.field] + (isPattern(t) ? `${t.not ? "!~" : "=~"}${logql("(?i)" + grammar.pattern(t))}` : `${t.not ? "!=" : "="}${logql(t.value)}`));
  const filters = terms.filter((t) => !t.field).map((t) => `${t.not ? "!~" : "|~"} ${logql("(?i)" + t.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))}`)
    .concat(terms.filter((t) => metadata[t.field]).map((t) => `| ${metadata[t.field]}${t.not ? "!=" : "="}${logql(t.value)}`));
  const unasked = terms.filter((t) => t.field && !labels[t.field] && !metadata[t.field]).map((t) => (t.field === "()" ? "OR, NOT and parentheses" : t.field));
  return [
    { name: "curl", text: `curl -H "Authorization: Bearer $TOKEN" ${quote(location.origin + path)}`, lacks: "" },
    { name: "eventsvc", text: ["eventsvc query", `--from=${quote(from)}`, to !== "now" && `--to=${quote(to)}`, ...terms.map((t) => quote(grammar.write(t)))].filter(Boolean).join(" "), lacks: "" },
    { name: "kubectl", text: kubectl, lacks: lacking(["the range, as lists have none", terms.some((t) => !t.field || t.field === "()" || t.field === "note") && "texts", ...["cluster", "owner", "node", "reporter"].map((f) => terms.some((t) => t.field === f) && `the ${f}`)]) },
    { name: "kubectl, raw", text: `kubectl get --raw ${quote(path)}`, lacks: "" },
    { name: "LogQL", text: [`{${streams.some((s) => !s.includes("!=")) ? streams.join(", ") : ['type=~".+"', ...streams].join(", ")}}`, ...filters].join(" "), lacks: lacking([unasked.length && unasked.join(", ")]) },
  ];
}

/**
 * Whether a term may fit other texts than its value.
 * @param {grammar.Term} t
 */
const isPattern = (t) => Boolean(t.list) || t.value.includes("*") || /^[a-z]/.test(t.value) && ["type", "reason", "kind"].includes(t.field);

/** @param {(string|false|0|undefined)[]} parts */
const lacking = (parts) => parts.filter(Boolean).join("; ");

/** @param {import("../app.js").App} app */
export function permalinkMenu(app) {
  const menu = new Menu(app.redraw);
  return {
    copy: () => copy(app, app.permalink(), "Link"),
    draw: () => menu.draw({ class: "icon", title: "Link to this (c), and the same elsewhere", "aria-label": "Link to this, and the same elsewhere" }, icon("link"), "Elsewhere", () => [
      h("div", { class: "same" }, h("h3", null, "A link that shows the same rows"), h("p", { class: "hint" }, "With absolute times and the state that is shown. Whoever opens it has to sign in."),
        line(app, app.permalink(), "Link")),
      app.state.view !== "changes" && h("div", { class: "take" }, h("h3", null, "The events as a file"), h("p", { class: "hint" }, "At most 20,000, the newest first."),
        /** @type {const} */ (["csv", "json"]).map((form) => h("button", { type: "button", key: form, onclick: () => takeAway(app, form) }, form.toUpperCase()))),
      commands(app).map((c) => h("div", { class: "same", key: c.name }, h("h3", null, c.name), c.lacks && h("p", { class: "hint" }, `Without ${c.lacks}.`), line(app, c.text, c.name))),
    ]),
  };
}

/** @param {import("../app.js").App} app @param {string} text @param {string} what */
const line = (app, text, what) => h("div", { class: "line" }, h("code", { tabindex: "0" }, text), copyButton(app, text, what));
