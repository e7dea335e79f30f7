// What the server says of itself.

/**
 * What the server is: the page has it, and asks again once that may have changed.
 * @param {boolean} [again] @returns {Promise<import("../app.js").Config & {from?: string, to?: string}>}
 */
export async function configuration(again = false) {
  if (!again) return JSON.parse(document.querySelector("meta[name=config]")?.getAttribute("content") ?? "");
  const response = await fetch("config.json");
  return response.json();
}
