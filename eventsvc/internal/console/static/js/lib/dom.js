// A small virtual DOM: views describe what is to be seen, and render makes the document
// agree with it by the fewest changes, so that focus, selection and scroll stay. Texts
// become text nodes and never markup.

/**
 * A node that is to be there. Unkeyed siblings are matched by their place, keyed ones by
 * their key.
 * @typedef {{tag: string, props: Record<string, any>, children: Child[], key: string|number|undefined}} VNode
 */
/** @typedef {VNode|string|number|false|null|undefined|any[]} Child */
/** @typedef {{vnode: VNode|string, node: Element|Text}} Held */

/** @type {WeakMap<Element, (Held|null)[]>} */
const held = new WeakMap();

const SVG = "http://www.w3.org/2000/svg";

/**
 * Describes an element. Properties that begin with "on" are event handlers; `css` is an
 * object of style properties; `ref` is called with the element once it is in the document;
 * `key` tells siblings apart; all others are attributes, not there if false or null.
 * @param {string} tag @param {Record<string, any>|null} [props] @param {...Child} children
 * @returns {VNode}
 */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children, key: props?.key };
}

/**
 * Makes the children of host those that are described.
 * @param {Element} host @param {Child} child
 */
export function render(host, child) {
  patch(host, Array.isArray(child) ? child : [child]);
}

/** @param {Child[]} children @param {(VNode|string|null)[]} into */
function flatten(children, into) {
  for (const c of children) {
    if (Array.isArray(c)) flatten(c, into);
    else if (c === false || c === null || c === undefined) into.push(null);
    else if (typeof c === "object") into.push(c);
    else into.push(String(c));
  }
  return into;
}

/** @param {Element} parent @param {Child[]} children */
function patch(parent, children) {
  const next = flatten(children, []);
  const old = held.get(parent) ?? [];
  /** @type {Map<string|number, Held>} */
  const keyed = new Map();
  /** @type {(Held|null)[]} */
  const placed = [];
  for (const o of old) {
    if (o && typeof o.vnode === "object" && o.vnode.key !== undefined) keyed.set(o.vnode.key, o);
    else placed.push(o);
  }
  const kept = new Set();
  let place = 0;
  const matches = next.map((c) => {
    const key = c !== null && typeof c === "object" ? c.key : undefined;
    const o = key !== undefined ? keyed.get(key) : placed[place++];
    if (!c || !o || !alike(o.vnode, c) || kept.has(o)) return null;
    kept.add(o);
    return o;
  });
  for (const o of old) {
    if (o && !kept.has(o)) o.node.remove();
  }
  let at = parent.firstChild;
  /** @type {(() => void)[]} */
  const refs = [];
  const now = next.map((c, i) => {
    if (c === null) return null;
    const o = matches[i];
    const node = o ? o.node : create(c, parent, refs);
    if (o) update(o, c);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
    return { vnode: c, node };
  });
  held.set(parent, now);
  refs.forEach((f) => f());
}

/** @param {VNode|string} a @param {VNode|string} b */
function alike(a, b) {
  return typeof a === "object" && typeof b === "object" ? a.tag === b.tag : typeof a === typeof b;
}

/** @param {VNode|string} c @param {Element} parent @param {(() => void)[]} refs @returns {Element|Text} */
function create(c, parent, refs) {
  if (typeof c === "string") return document.createTextNode(c);
  const svg = c.tag === "svg" || parent.namespaceURI === SVG;
  const node = svg ? document.createElementNS(SVG, c.tag) : document.createElement(c.tag);
  setProps(node, {}, c.props);
  patch(node, c.children);
  if ("value" in c.props) setProp(node, "value", undefined, c.props.value); // of a select, whose options are there now
  if (c.props.ref) refs.push(() => c.props.ref(node));
  return node;
}

/** @param {Held} o @param {VNode|string} c */
function update(o, c) {
  if (typeof c === "string") {
    if (o.vnode !== c) o.node.nodeValue = c;
    return;
  }
  if (o.vnode === c) return;
  const node = /** @type {Element} */ (o.node);
  setProps(node, /** @type {VNode} */ (o.vnode).props, c.props);
  patch(node, c.children);
}

/** @param {Element} node @param {Record<string, any>} old @param {Record<string, any>} next */
function setProps(node, old, next) {
  for (const name in old) if (!(name in next)) setProp(node, name, old[name], undefined);
  for (const name in next) setProp(node, name, old[name], next[name]);
}

/** @param {Element} node @param {string} name @param {any} old @param {any} value */
function setProp(node, name, old, value) {
  if (name === "key" || name === "ref") return;
  const any = /** @type {any} */ (node);
  if (name === "value" || name === "checked") {
    if (any[name] !== value) any[name] = value ?? "";
  } else if (old === value) {
    return;
  } else if (name.startsWith("on")) {
    any[name] = value ?? null;
  } else if (name === "css") {
    for (const p in old ?? {}) if (!value || !(p in value)) any.style.removeProperty(p);
    for (const p in value ?? {}) if (old?.[p] !== value[p]) any.style.setProperty(p, value[p]);
  } else if (name.startsWith("aria-") && value !== undefined && value !== null) {
    node.setAttribute(name, String(value));
  } else if (value === false || value === null || value === undefined) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}
