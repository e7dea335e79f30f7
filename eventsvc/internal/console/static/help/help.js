// The search box of the manual's pages.

import { excerpt, find } from "./search.js";

/** @type {Promise<import("./search.js").Entry[]>|undefined} */
let index; // loaded when somebody searches

const box = /** @type {HTMLInputElement} */ (document.getElementById("search"));
const list = /** @type {HTMLElement} */ (document.getElementById("found"));

box.addEventListener("input", async () => {
  index ??= fetch(new URL("search.json", import.meta.url)).then((answer) => answer.json());
  const entries = await index;
  list.replaceChildren(...find(entries, box.value).map(row));
});

/** @param {import("./search.js").Entry} entry */
function row(entry) {
  const link = document.createElement("a");
  link.href = new URL(entry.url, import.meta.url).href;
  link.textContent = entry.title === entry.page ? entry.title : `${entry.title} – ${entry.page}`;
  const text = document.createElement("small");
  text.textContent = excerpt(entry.text, box.value);
  const item = document.createElement("li");
  item.append(link, text);
  return item;
}
