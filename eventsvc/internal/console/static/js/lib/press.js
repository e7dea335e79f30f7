// Keeps the page still while something on it is pressed: what an answer drew between press and release would move the target away, and
// the click would be lost.

/** A press that does not end holds nothing up after so many milliseconds. */
const longest = 1000;

/** So many pixels of movement make a press a drag, which may be drawn. */
const drag = 4;

/**
 * @param {() => void} draw
 * @returns {() => void} draws, but during a press only after its end
 */
export function afterPress(draw) {
  /** @type {PointerEvent|null} */
  let press = null;
  let due = false;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let timer;
  const end = () => {
    if (!press) return;
    press = null;
    clearTimeout(timer);
    if (due) requestAnimationFrame(draw);
    due = false;
  };
  addEventListener("pointerdown", (e) => {
    press = e;
    clearTimeout(timer);
    timer = setTimeout(end, longest);
  }, true);
  addEventListener("pointermove", (e) => press && Math.hypot(e.clientX - press.clientX, e.clientY - press.clientY) > drag && end(), true);
  for (const type of ["pointerup", "pointercancel", "scroll"]) addEventListener(type, end, true);
  return () => {
    if (press) due = true;
    else draw();
  };
}
