// Comments that are new since this browser last showed the post.

import { all, first } from "./dom.js";
import { unfold } from "./folds.js";
import { isNew, readingOf, withShown } from "./readings.js";
import { read, store } from "./storage.js";

const MAX_POSTS = 300;
const NAME = "seen";

/** @type {import("./readings.js").Reading | undefined} What was known when the page was opened. */
let known;
/** The new comment that was shown last. */
let lastShown = null;

const newComments = () => all(document, ".thread > .new");

/** Return the time of a comment, which sorts as text. Those of which only a line is shown have none. */
const timeOf = (comment) => first(comment, "time")?.dateTime ?? "";

/**
 * Mark the comments that have come since, except the reader's own, and remember what is shown.
 * @param {HTMLElement[]} comments
 * @param {string} [reader] the id of the reader
 */
export function markNew(comments, reader) {
  const { pathname, search } = location;
  const threads = first(document, "#threads");
  const seen = read(NAME) ?? {};
  const reading = readingOf(seen[pathname], threads.dataset.latest);
  known ??= reading; // so that the marks stay when comments are shown again
  for (const comment of comments) {
    if (!isNew(known, timeOf(comment)) || comment.dataset.by === reader) continue;
    comment.classList.add("new");
    comment.tabIndex = -1;
  }
  const isWhole = search === "" && !first(threads, "[rel=next]");
  delete seen[pathname]; // the newest entries come last
  seen[pathname] = withShown(reading, comments.map(timeOf), isWhole);
  store(NAME, Object.fromEntries(Object.entries(seen).slice(-MAX_POSTS)));
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
