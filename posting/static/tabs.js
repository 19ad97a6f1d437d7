// The tabs of a page: the one that the URL names is shown, or the first. The style sheet does so until
// this module is there. It also marks the link to the tab.

import { all, first } from "./dom.js";
import { ready } from "./page.js";

/** The place of the link to which the bar of tabs was scrolled last. */
let revealed = 0;

/** Scroll the bar of tabs to a link, once it is shown, and again if another tab moves it. */
function reveal(link) {
  if (link.offsetLeft === revealed || !link.offsetParent) return;
  link.scrollIntoView({ block: "nearest", inline: "nearest" });
  revealed = link.offsetLeft;
}

/** Show the tab of the URL. If the URL names something else, the same tab stays. */
export function showTab() {
  const named = document.getElementById(location.hash.slice(1))?.closest(".tab:not([hidden])");
  const former = location.hash && first(document, ".tab.shown:not([hidden])");
  const tab = named ?? (former || first(document, ".tab"));
  first(document, ".tabs").classList.add("ready");
  for (const each of all(document, ".tab")) each.classList.toggle("shown", each === tab);
  for (const link of all(document, "[data-tabs] > a")) {
    if (link.hash !== `#${tab.id}`) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "true");
      reveal(link);
    }
  }
}

addEventListener("hashchange", showTab);
ready(showTab);
