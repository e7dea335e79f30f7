// The search box of the manual's pages. The address keeps the question as ?q=, so that a search can be linked to.

import { excerpt, find } from "./search.js";

/** @type {Promise<import("./search.js").Entry[]>|undefined} */
let index; // loaded when somebody searches

const box = /** @type {HTMLInputElement} */ (document.getElementById("search"));
const list = /** @type {HTMLElement} */ (document.getElementById("found"));

async function search() {
  if (box.value.trim() === "") return list.replaceChildren();
  index ??= fetch(new URL("search.json", import.meta.url)).then((answer) => answer.json());
  let entries;
  try {
    entries = await index;
  } catch {
    index = undefined;
    return list.replaceChildren(note("The search could not be loaded. Try again."));
  }
  const found = find(entries, box.value);
  list.replaceChildren(...(found.length ? found.map(row) : [note("No page has these words.")]));
}

box.addEventListener("input", () => {
  const here = new URL(location.href);
  if (box.value.trim() === "") here.searchParams.delete("q");
  else here.searchParams.set("q", box.value.trim());
  history.replaceState(null, "", here);
  void search();
});

const asked = new URL(location.href).searchParams.get("q");
if (asked) {
  box.value = asked.slice(0, 200);
  void search();
}

/** @param {string} text */
function note(text) {
  const item = document.createElement("li");
  item.textContent = text;
  return item;
}

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
