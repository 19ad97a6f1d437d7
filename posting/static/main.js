// The script of every page. Reading works without it; all writing goes through the JSON API. The
// data attributes that it shares with the templates are listed in templates/pages/base.html.

import { me } from "./account.js";
import { ready } from "./page.js";
import { sayWhatIsLeft } from "./status.js";
import { showTimes } from "./times.js";

ready(() => {
  showTimes(document);
  sayWhatIsLeft();
});

// Visitors do not load what only members see.
document.addEventListener("account", () => me && import("./personal.js").catch(() => {}));

// A page that comes back from the browser's memory may show what has changed since.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
