// How many reports and applications wait for a moderator: beside the links to the page of moderation.

import { me } from "./account.js";
import { numberOf } from "./counts.js";
import { all } from "./dom.js";
import { root } from "./page.js";
import { PREFIX, read, store } from "./storage.js";

const NAME = "waiting";
const TIMEOUT = 30_000; // milliseconds

function show() {
  const known = read(NAME);
  const isKnown = me?.role === "moderator" && known?.moderator === me.id;
  const number = isKnown ? numberOf(known.count) : "";
  for (const place of all(document, "[data-waiting]")) {
    place.textContent = number;
    place.hidden = number === "";
  }
}

/** Ask how much waits, if the reader is a moderator. Without a connection, what is known stays. */
export async function countWaiting() {
  if (me?.role !== "moderator") return;
  const moderator = me.id;
  const options = { signal: AbortSignal.timeout(TIMEOUT) };
  const response = await fetch(`${root}/moderation/open`, options);
  if (response.status === 403) store(NAME, null); // who is no moderator any more
  if (!response.ok) return show();
  const { reports, applications } = await response.json();
  if (me?.id !== moderator) return; // they have signed out meanwhile
  store(NAME, { moderator, count: reports + applications });
  show();
}

document.addEventListener("account", () => {
  if (!me) store(NAME, null); // after sign-out, nothing is left in the browser
  show();
});
document.addEventListener("acted", () => countWaiting().catch(() => {}));
addEventListener("storage", ({ key }) => key === PREFIX + NAME && show());
show();
