// Comments that are new since the reader last saw the post. The service knows them, so that all
// devices of the reader agree, and a page can lead to those on other pages.

import { me } from "./account.js";
import { request } from "./api.js";
import { all } from "./dom.js";
import { unfold } from "./folds.js";
import { goTo, root } from "./page.js";
import { progressOf } from "./readings.js";
import { read, store } from "./storage.js";
import { setUnread } from "./unread.js";

const MAX_POSTS = 300; // of which this browser knows what it has shown
const NAME = "seen";
const PAUSE = 30_000; // milliseconds between two requests that note what was seen

/** @type {string[]} the ids of new comments, also of those that were seen since the page was opened */
let newIds = [];
/** The id of the new comment that was led to last. */
let last = "";
/** Whose new comments are marked. */
let reader;
let sentAt = 0;
let timer = 0;

const hasUnread = () => read("unread")?.count > 0;
const elementOf = (id) => document.getElementById(`c-${id}`);
const urlOf = (id) => `${location.pathname}?comment=${id}#c-${id}`;
const url = () => `${root}/posts/${location.pathname.split("/").at(-1)}/seen`;

/** Ask which comments are new, mark them, and note that they were seen. */
export async function markNew() {
  reader = me?.id;
  if (!me) return;
  try {
    const { data } = await request("GET", url());
    newIds = [...new Set([...newIds, ...data.new])];
    show();
    note(data);
  } catch {
    // Without a connection, nothing is marked.
  }
}

function show() {
  for (const comment of newIds.map(elementOf).filter(Boolean)) {
    comment.classList.add("new");
    comment.tabIndex = -1;
  }
  for (const button of all(document, "[data-action=next-new]")) {
    button.hidden = newIds.length === 0;
    button.textContent = `Next new (${newIds.length})`;
  }
}

/** Note what was seen, once somebody looks at the page, and not too often. */
function note(seen) {
  clearTimeout(timer);
  if (document.visibilityState === "hidden") {
    document.addEventListener("visibilitychange", () => note(seen), { once: true });
    return;
  }
  const wait = sentAt + PAUSE - Date.now();
  if (wait > 0) timer = setTimeout(() => note(seen), wait);
  else send(seen).catch(() => {}); // it is new the next time, then
}

async function send(seen) {
  const { pathname } = location;
  const known = read(NAME) ?? {};
  const ids = seen.new.filter((id) => elementOf(id) || known[pathname]?.includes(id));
  const { upTo, later } = progressOf(seen, ids);
  delete known[pathname]; // the newest entries come last
  known[pathname] = later;
  store(NAME, Object.fromEntries(Object.entries(known).slice(-MAX_POSTS)));
  if (upTo === seen.up_to && seen.until && !hasUnread()) return;
  sentAt = Date.now();
  await request("PUT", url(), { body: { up_to: upTo, shown: later } });
  if (!hasUnread()) return;
  const { data, etag } = await request("GET", `${root}/notifications/unread`);
  setUnread(data.count, etag);
}

/** Lead to the new comment after the last one, or to the first one. It may be on another page. */
export function nextNew() {
  const focused = document.activeElement?.closest(".new")?.id.slice(2);
  const place = newIds.indexOf(focused ?? last);
  last = newIds[(place + 1) % newIds.length];
  const comment = elementOf(last);
  if (!comment) return goTo(urlOf(last));
  if (comment.hidden) unfold();
  comment.focus();
}

document.addEventListener("account", () => {
  if (reader !== me?.id) markNew();
});
