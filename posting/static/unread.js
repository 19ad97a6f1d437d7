// How many notifications a member has not read: in the header, and in the title of the tab. All
// tabs of a browser share the count, and one of them asks for it, at most once a minute.

import { me } from "./account.js";
import { isDue, numberOf, titleWith } from "./counts.js";
import { all } from "./dom.js";
import { ready, root } from "./page.js";
import { PREFIX, read, store } from "./storage.js";

/**
 * What is known of the reader. The ETag is that of the response that had the count, if one had it.
 * @typedef {{member: string, count: number, etag: string | null, asked: number}} Unread
 */

const NAME = "unread";
const TIMEOUT = 30_000; // milliseconds
const title = document.title;

/** @returns {Unread} */
function known() {
  const found = read(NAME);
  return found?.member === me.id ? found : { member: me.id, count: 0, etag: null, asked: 0 };
}

/**
 * Remember and show how many notifications are left.
 * @param {number} count
 * @param {string | null} [etag] of the response that has this count
 */
export function setUnread(count, etag = null) {
  store(NAME, { member: me.id, count, etag, asked: Date.now() });
  show();
}

function show() {
  const number = me ? numberOf(known().count) : "";
  document.title = titleWith(title, number);
  for (const place of all(document, "[data-unread]")) {
    place.textContent = number;
    place.hidden = number === "";
  }
}

/** Ask for the count if somebody looks at the page and no tab has asked in the last minute. */
async function ask() {
  const unread = known();
  const asked = Date.now();
  if (document.visibilityState === "hidden" || !isDue(unread.asked, asked)) return;
  store(NAME, { ...unread, asked }); // before the response, for the other tabs
  /** @type {Record<string, string>} */
  const headers = unread.etag ? { "If-None-Match": unread.etag } : {};
  const options = { headers, signal: AbortSignal.timeout(TIMEOUT) };
  const response = await fetch(`${root}/notifications/unread`, options);
  if (response.status === 401) document.dispatchEvent(new Event("signed-out"));
  if (!response.ok) return; // 304: the count is the same
  const { count } = await response.json();
  // In the meantime, the reader may have read some, or signed out.
  if (me && known().asked === asked) setUnread(count, response.headers.get("ETag"));
}

/**
 * Show what is known of the reader, and ask for what is not. Without a connection, what is known
 * stays. After sign-out, nothing is left in the browser.
 */
function update() {
  show();
  if (me) ask().catch(() => {});
  else store(NAME, null);
}

document.addEventListener("account", update);
document.addEventListener("visibilitychange", update);
addEventListener("storage", ({ key }) => key === PREFIX + NAME && show());
ready(update);
