// Comments that are new since the reader last saw the post. The service knows them, so that all
// devices of the reader agree, and a page can lead to those on other pages.

import { me } from "./account.js";
import { request } from "./api.js";
import { all, first } from "./dom.js";
import { unfold } from "./folds.js";
import { gettext } from "./language.js";
import { goTo, root } from "./page.js";
import { MAX_NEW, progressOf } from "./readings.js";
import { read, store } from "./storage.js";
import { setUnread } from "./unread.js";
import { whenVisible } from "./visible.js";

/** @typedef {import("./readings.js").Seen} Seen */

const MAX_POSTS = 300; // of which this browser knows what it has shown
const MAX_SHOWN = 200; // comments in a request
const NAME = "seen";
const PAUSE = 30_000; // milliseconds between two requests of a page that note what was seen

/** @type {string[]} the ids of new comments, also of those that were seen since the page was opened */
let newIds = [];
/** The id of the new comment that was led to last. */
let last = "";
/** @type {string | undefined} whose new comments are marked */
let reader;
/** @type {Seen | null} what the service knew when this page showed more */
let pending = null;
let sentAt = 0;
let timer = 0;

/** Return a comment of this page, unless only a line of it is shown. */
function elementOf(id) {
  const comment = document.getElementById(`c-${id}`);
  return comment && first(comment, "time") ? comment : null;
}

const urlOf = (id) => `${location.pathname}?comment=${id}#c-${id}`;
const url = () => `${root}/posts/${location.pathname.split("/").at(-1)}/seen`;

/** Return the ids of the comments by others that this page shows. */
const shownIds = () =>
  all(document, ".thread > li")
    .filter(({ dataset, id }) => dataset.by !== reader && elementOf(id.slice(2)))
    .map(({ id }) => id.slice(2));

/**
 * The new comments of each post that this browser has shown to the reader.
 * @returns {Record<string, string[]>}
 */
function known() {
  const found = read(NAME);
  return found?.member === reader ? found.posts : {};
}

/** Ask which comments are new, mark them, and note that they were seen. */
export async function markNew() {
  reader = me.id;
  show(); // again, on a part of the page that was replaced
  try {
    const { data } = await request("GET", url());
    newIds = [...new Set([...newIds.filter(elementOf), ...data.new])];
    show();
    whenVisible(() => note(data));
  } catch {
    // Without a connection, nothing else is marked.
  }
}

function show() {
  for (const comment of newIds.map(elementOf).filter(Boolean)) {
    comment.classList.add("new");
    first(comment, ".meta").dataset.new = gettext("new");
    comment.tabIndex = -1;
  }
  for (const button of all(document, "[data-action=next-new]")) {
    button.hidden = newIds.length === 0;
    button.textContent = gettext("Next new (%(number)s)", { number: newIds.length });
  }
}

/** Note what was seen, but not too often, and at the latest when the page is left. */
function note(seen) {
  clearTimeout(timer);
  pending = seen;
  const wait = sentAt + PAUSE - Date.now();
  if (wait > 0) timer = setTimeout(() => flush(), wait);
  else flush();
}

/** @param {boolean} [isLeaving] whether the request must outlive the page */
function flush(isLeaving = false) {
  if (pending === null || reader !== me?.id) return;
  const seen = pending;
  pending = null;
  send(seen, isLeaving).catch((problem) => {
    if (problem.status === 422) markNew(); // the last comment was deleted meanwhile
  });
}

/**
 * @param {Seen} seen
 * @param {boolean} keepalive
 */
async function send(seen, keepalive) {
  const { pathname } = location;
  const { [pathname]: others = [], ...posts } = known(); // `others` are those of other pages
  const page = shownIds();
  const shown = [...page, ...others];
  const upTo = progressOf(seen, shown);
  posts[pathname] = seen.new.filter((id) => shown.includes(id)); // the newest entries come last
  const latest = Object.fromEntries(Object.entries(posts).slice(-MAX_POSTS));
  store(NAME, { member: reader, posts: latest });
  const hasProgress = upTo !== seen.up_to || seen.until === null;
  const hasMore = seen.new.some((id) => page.includes(id) && !others.includes(id));
  if (!hasProgress && !hasMore && !seen.unread) return;
  sentAt = Date.now();
  const body = { up_to: upTo, shown: page.slice(-MAX_SHOWN) };
  await request("PUT", url(), { body, keepalive });
  const { data, etag } = await request("GET", `${root}/notifications/unread`);
  setUnread(data.count, etag);
  if (hasProgress && seen.new.length === MAX_NEW) await markNew(); // there may be more
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

addEventListener("pagehide", () => flush(true));
