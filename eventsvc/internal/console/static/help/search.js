// Search of the manual: which sections, settings, metrics and alerts a text finds.

/**
 * One entry of the index.
 * @typedef {{title: string, page: string, url: string, text: string}} Entry
 */

/** What is shown at most. */
const most = 20;

/**
 * Returns the entries that have all words, the best first: those whose title is the question, then those whose title
 * has all words, then those whose text has them.
 * @param {Entry[]} entries @param {string} question
 * @returns {Entry[]}
 */
export function find(entries, question) {
  const wanted = question.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter((w) => w !== "");
  if (words.length === 0) return [];
  return entries
    .map((entry) => ({ entry, rank: rank(entry, wanted, words) }))
    .filter((found) => found.rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, most)
    .map((found) => found.entry);
}

/** @param {Entry} entry @param {string} wanted @param {string[]} words */
function rank(entry, wanted, words) {
  const title = entry.title.toLowerCase();
  const all = `${title} ${entry.page} ${entry.text}`.toLowerCase();
  if (!words.every((w) => all.includes(w))) return 0;
  if (title.replace(/^--/, "") === wanted.replace(/^--/, "")) return 4;
  if (title.includes(wanted)) return 3;
  return words.every((w) => title.includes(w)) ? 2 : 1;
}

/**
 * Returns the text around the first word of a question.
 * @param {string} text @param {string} question
 */
export function excerpt(text, question) {
  const [word] = question.trim().toLowerCase().split(/\s+/);
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 60);
  const end = at + 180;
  return (at > 0 ? "…" : "") + text.slice(at, end) + (end < text.length ? "…" : "");
}
