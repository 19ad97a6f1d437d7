// The inbox: the notifications of a member, and which of them are read.

import { me } from "./account.js";
import { onAction } from "./actions.js";
import { request } from "./api.js";
import { copyOf, first, onEvent } from "./dom.js";
import { faceOf } from "./faces.js";
import { gettext } from "./language.js";
import "./main.js";
import { isOnlyHere, keyOf, partsOf, pathOf, reasonOf } from "./notifications.js";
import { root } from "./page.js";
import { problemOf } from "./problem.js";
import { say } from "./status.js";
import { read } from "./storage.js";
import { showTimes } from "./times.js";
import { setUnread } from "./unread.js";
import { whenVisible } from "./visible.js";

/** @typedef {import("./notifications.js").Group} Group */

/** @type {Group[]} what this page shows, newest first */
const groups = [];
/** @type {string | null} the URL of the next page of the list */
let next = null;
let isShown = false;

const list = () => first(document, "[data-notifications]");
const countShown = () => groups.reduce((sum, { unread }) => sum + unread, 0);

/** Show the newest notifications of the reader. When another member signs in, the page is reloaded. */
async function showInbox() {
  if (me === null || isShown) return;
  isShown = true;
  try {
    await addPage(`${root}/notifications/posts`);
  } catch (error) {
    isShown = false;
    first(document, "#inbox > .problem").textContent = problemOf(error).message;
    return;
  }
  first(document, "#no-notifications").hidden = groups.length > 0;
  if (next === null) setUnread(countShown()); // they are all here
}

/** Add a page of the list, without what has moved from one page to the next meanwhile. */
async function addPage(url) {
  const { data: page, next: following } = await request("GET", url);
  const shown = groups.map(keyOf);
  const data = page.filter((group) => !shown.includes(keyOf(group)));
  const items = data.map(rowOf);
  groups.push(...data);
  next = following;
  list().append(...items);
  showTimes(list());
  showButtons();
  const onlyHere = data.filter(({ latest }) => isOnlyHere(latest.kind));
  whenVisible(() => markSomeRead(onlyHere).catch(() => {}));
  return items;
}

function showButtons() {
  first(document, "[data-action=show-older]").hidden = next === null;
  const isDone = countShown() === 0 && !(next && read("unread")?.count > 0);
  first(document, "[data-action=mark-all-read]").hidden = isDone;
}

/** @param {Group} group */
function rowOf(group) {
  const row = copyOf("notification-row");
  const { post, unread, actors, first: oldest, latest } = group;
  const told = unread < 2 ? oldest : latest;
  row.id = `n-${latest.id}`;
  row.classList.toggle("unread", unread > 0);
  row.classList.toggle("new", unread === 1); // several are said to be new in words
  const title = first(row, ".title");
  if (post) {
    const link = first(title, "a");
    link.textContent = post.title;
    link.href = `${root}/p/${post.id}`;
  } else title.remove();
  const parts = partsOf(group);
  const actor = unread < 2 ? told.actor : actors[0];
  if (actor && parts.some(({ name }) => name)) first(row, "[data-face]").replaceWith(faceOf(actor));
  else first(row, "[data-face]").remove();
  first(row, "[data-words]").replaceChildren(...parts.map(elementOf));
  const path = pathOf(oldest);
  if (path) first(row, ".meta a").href = root + path;
  first(row, "time").dateTime = told.created_at;
  const texts = {
    "[data-excerpt]": told.excerpt ?? told.comment?.excerpt,
    "[data-reason]": reasonOf(told),
  };
  for (const [selector, text] of Object.entries(texts)) {
    const place = first(row, selector);
    if (text) place.textContent = text;
    else place.remove();
  }
  return row;
}

/** Return a part of a sentence as an element. */
function elementOf({ name, words }) {
  const element = document.createElement(name ? "bdi" : "span");
  element.textContent = name ?? words;
  return element;
}

/** Show all groups as read. */
function showRead() {
  for (const group of groups) {
    Object.assign(group, { unread: 0, first: group.latest });
    document.getElementById(`n-${group.latest.id}`).replaceWith(rowOf(group));
  }
  showTimes(list());
  showButtons();
}

/** Send that a notification and all older ones are read. Return how many are left. */
async function markRead({ id }) {
  const body = { up_to: id };
  const url = `${root}/notifications/read`;
  const { data } = await request("POST", url, { body, keepalive: true });
  return data.count;
}

onAction("mark-all-read", async () => {
  const count = await markRead(groups[0].latest);
  showRead();
  setUnread(count);
  list().focus();
  say(
    count === 0
      ? gettext("All are marked as read.")
      : gettext("There are new ones. Load the page again."),
  );
});

onAction("show-older", async () => {
  const [item] = await addPage(next);
  if (!item) return list().focus(); // those that were older have come to the top
  item.tabIndex = -1;
  item.focus();
});

/** Mark what only the inbox says, or what leads to no post, as read. */
async function markSomeRead(some) {
  const unread = some.filter((group) => group.unread > 0);
  if (unread.length === 0) return;
  const body = { ids: unread.map(({ latest }) => latest.id) };
  const url = `${root}/notifications/read`;
  const { data } = await request("POST", url, { body, keepalive: true });
  for (const group of unread) group.unread = 0; // it looks as before until the page is loaded again
  setUnread(data.count);
  showButtons();
}

/**
 * Mark a notification as read when its link is followed. The page of a post reads those about what
 * it shows.
 */
function readFollowed(target, { button }) {
  const row = target.closest("[data-notifications] a")?.closest("[id^=n-]");
  const followed = groups.filter(
    ({ latest }) => row?.id === `n-${latest.id}` && !pathOf(latest)?.startsWith("/p/"),
  );
  if (button <= 1) markSomeRead(followed).catch(() => {}); // it is still unread, then
}

onEvent("click", readFollowed);
onEvent("auxclick", readFollowed); // in a new tab
document.addEventListener("account", showInbox);
