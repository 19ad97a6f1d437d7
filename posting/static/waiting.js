// How many reports and applications wait for a moderator: beside the links to the page of moderation.
// One tab sends the request, at most once a minute. It also reads the role and the face of the reader.

import { FIELDS, me, moderates, setMe } from "./account.js";
import { isDue, numberOf } from "./counts.js";
import { all } from "./dom.js";
import { ready, root } from "./page.js";
import { PREFIX, read, store } from "./storage.js";

/** @typedef {{member: string, count: number, asked: number}} Waiting what is known */

const NAME = "waiting";
const TIMEOUT = 30_000; // milliseconds

/** @returns {Waiting} */
function known() {
  const found = read(NAME);
  return found?.member === me.id ? found : { member: me.id, count: 0, asked: 0 };
}

function show() {
  const number = moderates() ? numberOf(known().count) : "";
  for (const place of all(document, "[data-waiting]")) {
    place.textContent = number;
    place.hidden = number === "";
  }
}

const fetchJson = async (path) => {
  const response = await fetch(root + path, { signal: AbortSignal.timeout(TIMEOUT) });
  return response.ok ? response.json() : null;
};

/** Ask for the role of the reader, and a moderator how much waits, if somebody looks at the page. */
async function ask() {
  const asked = Date.now();
  if (document.visibilityState === "hidden" || !isDue(known().asked, asked)) return;
  store(NAME, { ...known(), asked }); // before the response, for the other tabs
  const user = await fetchJson("/users/me");
  if (user === null || user.id !== me?.id) return; // they have signed out meanwhile
  if (FIELDS.some((name) => user[name] !== me[name])) setMe(user);
  await countWaiting();
}

/** Ask how much waits, if the reader is a moderator. */
async function countWaiting() {
  if (!moderates()) return;
  const moderator = me.id;
  const found = await fetchJson("/moderation/open");
  if (found === null || me?.id !== moderator) return;
  store(NAME, { ...known(), count: found.reports + found.applications });
  show();
}

/** Without a connection, what is known stays. After sign-out, nothing is left in the browser. */
function update() {
  show();
  if (me) ask().catch(() => {});
  else store(NAME, null);
}

document.addEventListener("account", update);
document.addEventListener("visibilitychange", update);
document.addEventListener("acted", () => countWaiting().catch(() => {}));
addEventListener("storage", ({ key }) => key === PREFIX + NAME && show());
ready(update);
