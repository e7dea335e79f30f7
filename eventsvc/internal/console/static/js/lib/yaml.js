// YAML of an object, to be read by people.

/**
 * @param {unknown} value @param {string} [indent]
 * @returns {string}
 */
export function yaml(value, indent = "") {
  if (Array.isArray(value)) {
    if (!value.length) return " []\n";
    return "\n" + value.map((v) => `${indent}-${nested(v, indent + "  ").replace(/^\n\s*/, " ")}`).join("");
  }
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value);
    if (!entries.length) return " {}\n";
    return "\n" + entries.map(([k, v]) => `${indent}${scalar(k)}:${nested(v, indent + "  ")}`).join("");
  }
  return ` ${scalar(value, indent)}\n`;
}

/** @param {unknown} v @param {string} indent */
const nested = (v, indent) => yaml(v, indent);

/** @param {unknown} v @param {string} [indent] */
function scalar(v, indent = "") {
  if (typeof v !== "string") return String(v);
  if (v.includes("\n") && !/^\s|\s$|[\u0000-\u0008\u000b-\u001f]/.test(v)) return "|-\n" + v.split("\n").map((l) => indent + l).join("\n");
  // What YAML would read as something else, and what begins or holds its punctuation, is quoted.
  if (v === "" || /^(true|false|null|yes|no|on|off|~|[-+.]?\d.*)$/i.test(v) || /^[\s\-?:,[\]{}#&*!|>'"%@`]|: |\s#|:$|\s$|[\u0000-\u001f]/.test(v)) return JSON.stringify(v);
  return v;
}

/** @param {any} object */
export const document = (object) => yaml(object).trimStart();
