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

// Visitors have read nothing before, so they do not load what shows the news.
document.addEventListener("account", () => me && import("./news.js").catch(() => {}));

// A page that comes back from the browser's memory may show what has changed since.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
