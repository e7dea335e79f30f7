// The beginning: reads the configuration, and draws the page whenever something changed.

import { App } from "./app.js";
import { begin, tokenIn } from "./lib/address.js";
import { configuration } from "./lib/config.js";
import { render } from "./lib/dom.js";
import { arrive } from "./lib/oidc.js";
import { afterPress } from "./lib/press.js";
import { keyboard } from "./parts/keys.js";
import { Frame } from "./parts/frame.js";
import { dress } from "./parts/settings.js";
import { Changes } from "./views/changes.js";
import { Events } from "./views/events.js";
import { Groups } from "./views/groups.js";
import { Live } from "./views/live.js";
import { ObjectView } from "./views/object.js";
import { Overview } from "./views/overview.js";

const host = /** @type {HTMLElement} */ (document.getElementById("app"));

async function main() {
  const arrival = arrive(); // before any request
  dress();
  const fonts = Promise.all(["400", "600"].map((weight) => document.fonts.load(`${weight} 1rem Inter`)));
  const config = await configuration();
  if (config.from) begin(config.from, config.to ?? "now");
  const token = tokenIn(location.hash);
  /** @type {Frame} */
  let frame;
  const app = new App(config, afterPress(() => render(host, frame.draw())));
  frame = new Frame(app, {
    overview: () => new Overview(app), events: () => new Events(app), live: () => new Live(app),
    groups: () => new Groups(app), changes: () => new Changes(app), object: () => new ObjectView(app),
  });
  if (token) {
    app.session.useToken(token);
    history.replaceState(null, "", app.href({})); // nobody copies it with the address
  } else if (arrival) app.session.arrived(arrival, config.signIn);
  else await app.session.resume(config.signIn);
  addEventListener("pageshow", (e) => e.persisted && app.session.stay());
  keyboard(app, frame);
  await Promise.race([fonts, new Promise((late) => setTimeout(late, 500))]).catch(() => {}); // texts are measured; without the font others do
  host.replaceChildren(); // what the page shows until its scripts are there
  app.redraw();
}

main().catch((err) => {
  host.textContent = `The page could not begin: ${err instanceof Error ? err.message : err}. Reload it.`;
});
