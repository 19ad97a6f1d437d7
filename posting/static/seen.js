// Comments that are new since this browser last showed the post.

import { all, first } from "./dom.js";
import { unfold } from "./folds.js";
import { read, store } from "./storage.js";

const MAX_PAGES = 300;
const NAME = "seen";

/** The new comment that was shown last. */
let lastShown = null;

const newComments = () => all(document, ".thread > .new");

/** @returns {string} the time of a comment, which sorts as text */
const timeOf = (comment) => first(comment, "time")?.dateTime ?? "";

/**
 * Mark the comments that have come since, except the reader's own, and remember the newest.
 *
 * A page that has only some of the comments is remembered apart, since others may be new there.
 * @param {HTMLElement[]} comments
 * @param {string} [reader] the id of the reader
 */
export function markNew(comments, reader) {
  const { pathname, search } = location;
  const isWhole = search === "" && !first(document, "#threads [rel=next]");
  const page = isWhole ? pathname : `${pathname}?${search}`;
  const seen = read(NAME) ?? {};
  const last = [seen[pathname], seen[page]].filter(Boolean).sort().at(-1);
  for (const comment of comments) {
    if (last === undefined || timeOf(comment) <= last || comment.dataset.by === reader) continue;
    comment.classList.add("new");
    comment.tabIndex = -1;
  }
  delete seen[page]; // the newest entries come last
  seen[page] = [...comments.map(timeOf), last ?? ""].sort().at(-1);
  store(NAME, Object.fromEntries(Object.entries(seen).slice(-MAX_PAGES)));
  const { length } = newComments();
  const button = first(document, "[data-action=next-new]");
  if (!button || length === 0) return;
  button.hidden = false;
  button.textContent = `Next new (${length})`;
}

/** Return the new comment after the one that was shown last, or the first one. */
export function nextNew() {
  const comments = newComments();
  const shown = comments.indexOf(document.activeElement?.closest(".new") ?? lastShown);
  lastShown = comments[(shown + 1) % comments.length];
  if (lastShown?.hidden) unfold();
  return lastShown;
}
