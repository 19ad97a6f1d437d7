// The tabs of a page. The style sheet shows the one that the URL names; this says which one it is.

import { all } from "./dom.js";
import { ready } from "./page.js";

function markTab() {
  const shown = all(document, ".tab").find((tab) => tab.checkVisibility());
  for (const link of all(document, "[data-tabs] > a")) {
    const isShown = link.hash === `#${shown?.id}`;
    if (!isShown) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "true");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }
}

addEventListener("hashchange", markTab);
document.addEventListener("account", markTab);
ready(markTab);
