// Icons, drawn by lines in the colour of the text. They are decoration: what they mean is
// said by the label of what they are in.

import { h } from "../lib/dom.js";

/** @type {Record<string, string>} */
const paths = {
  help: "M6.2 6a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.8.7-.8 1.4M8 11.6v.1M14.5 8a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.8 10.8 14.5 14.5",
  reload: "M13.5 8a5.5 5.5 0 1 1-1.6-3.9M12.5 1.5v3h-3",
  close: "M4 4l8 8M12 4l-8 8",
  link: "M6.5 9.5l3-3M7 5l1.8-1.8a2.8 2.8 0 0 1 4 4L11 9M9 11l-1.8 1.8a2.8 2.8 0 0 1-4-4L5 7",
  clock: "M14.5 8a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0zM8 4.5V8l2.5 1.5",
  gear: "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M10.5 6a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM5.500 13a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3z",
  copy: "M5.500 5.500v-3h8v8h-3M2.500 5.500h8v8h-8z",
  columns: "M2 3h12v10H2zM6 3v10M10 3v10",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  play: "M5 3l8 5-8 5z",
  left: "M10 3 5 8l5 5",
  right: "M6 3l5 5-5 5",
  out: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.800 10.800 14.500 14.500M4.800 7h4.400",
  more: "M3.500 6 8 10.500 12.500 6",
  less: "M3.500 10 8 5.500 12.500 10",
  minus: "M3.500 8h9",
  plus: "M3.500 8h9M8 3.500v9",
  filter: "M2 3h12L9.500 8.500V13l-3-1.500v-3z",
  star: "M8 1.800l1.900 4 4.300.500-3.200 3 .900 4.300L8 11.500l-3.900 2.100.900-4.300-3.200-3 4.300-.500z",
  alert: "M8 2l6.500 11.500h-13zM8 6.500v3M8 11.400v.1",
};

/** @param {string} name */
export function icon(name) {
  return h("svg", { class: "glyph", viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", focusable: "false" }, h("path", { d: paths[name] }));
}
