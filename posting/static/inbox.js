// The inbox: the notifications of a member, and which of them are read.

import { me } from "./account.js";
import { onAction } from "./actions.js";
import { request } from "./api.js";
import { copyOf, first, onEvent } from "./dom.js";
import { faceOf } from "./faces.js";
import "./main.js";
import { groupByPost, isOnlyHere, pathOf, reasonOf, sentenceOf } from "./notifications.js";
import { root } from "./page.js";
import { problemOf } from "./problem.js";
import { say } from "./status.js";
import { read } from "./storage.js";
import { showTimes } from "./times.js";
import { setUnread } from "./unread.js";
import { whenVisible } from "./visible.js";

/** @typedef {import("./notifications.js").Notification} Notification */

/** @type {Notification[]} the notifications on this page, newest first */
const notifications = [];
/** @type {string | null} the URL of the next page of the list */
let next = null;
let isShown = false;

const list = () => first(document, "[data-notifications]");
const countShown = () => notifications.filter((each) => !each.read).length;

/** Show the newest notifications of the reader. When another member signs in, the page is reloaded. */
async function showInbox() {
  if (me === null || isShown) return;
  isShown = true;
  try {
    await addPage(`${root}/notifications`);
  } catch (error) {
    isShown = false;
    first(document, "#inbox > .problem").textContent = problemOf(error).message;
    return;
  }
  first(document, "#no-notifications").hidden = notifications.length > 0;
  if (next === null) setUnread(countShown()); // they are all here
}

/** Add a page of the list. */
async function addPage(url) {
  const { data, next: following } = await request("GET", url);
  const items = groupByPost(data).map(itemOf);
  notifications.push(...data);
  next = following;
  list().append(...items);
  showTimes(list());
  showButtons();
  const onlyHere = data.filter(({ kind }) => isOnlyHere(kind));
  whenVisible(() => markSomeRead(onlyHere).catch(() => {}));
  return items;
}

function showButtons() {
  first(document, "[data-action=show-older]").hidden = next === null;
  const isDone = countShown() === 0 && !(next && read("unread")?.count > 0);
  first(document, "[data-action=mark-all-read]").hidden = isDone;
}

/**
 * Return an item of the list: a post and the notifications about it, or one about no post.
 * @param {Notification[]} group
 */
function itemOf(group) {
  const item = copyOf("notification-group");
  const [{ post }] = group;
  const heading = first(item, "h2");
  if (post) {
    const link = first(heading, "a");
    link.textContent = post.title;
    link.href = `${root}/p/${post.id}`;
  } else heading.remove();
  first(item, "ul").append(...group.map(rowOf));
  return item;
}

/** @param {Notification} notification */
function rowOf(notification) {
  const row = copyOf("notification-row");
  const { id, created_at, read, comment, excerpt } = notification;
  row.id = `n-${id}`;
  row.classList.toggle("unread", !read);
  const [name, words] = sentenceOf(notification);
  first(row, "[data-name]").textContent = name;
  const { actor } = notification;
  if (name && actor) first(row, "[data-face]").replaceWith(faceOf(actor));
  else first(row, "[data-face]").remove();
  first(row, "[data-words]").textContent = words;
  const path = pathOf(notification);
  if (path) first(row, "a").href = root + path;
  first(row, "time").dateTime = created_at;
  const texts = {
    "[data-excerpt]": excerpt ?? comment?.excerpt,
    "[data-reason]": reasonOf(notification),
  };
  for (const [selector, text] of Object.entries(texts)) {
    const place = first(row, selector);
    if (text) place.textContent = text;
    else place.remove();
  }
  return row;
}

/** Show a notification and all older ones as read. */
function showRead(position) {
  for (const notification of notifications.slice(position)) {
    notification.read = true;
    document.getElementById(`n-${notification.id}`).classList.remove("unread");
  }
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
  const count = await markRead(notifications[0]);
  showRead(0);
  setUnread(count);
  list().focus();
  say(count === 0 ? "All are marked as read." : "There are new ones. Load the page again.");
});

onAction("show-older", async () => {
  const [item] = await addPage(next);
  item.tabIndex = -1;
  item.focus();
});

/** Mark what only the inbox says, or what leads to no post, as read. */
async function markSomeRead(some) {
  const ids = some.filter((each) => !each.read).map(({ id }) => id);
  if (ids.length === 0) return;
  const { data } = await request("POST", `${root}/notifications/read`, {
    body: { ids },
    keepalive: true,
  });
  for (const notification of some) notification.read = true;
  setUnread(data.count);
  showButtons();
}

/**
 * Mark a notification as read when its link is followed. The page of a post reads those about what
 * it shows.
 */
function readFollowed(target, { button }) {
  const row = target.closest("[data-notifications] a")?.closest("[id^=n-]");
  const followed = notifications.filter(
    (each) => row?.id === `n-${each.id}` && !pathOf(each)?.startsWith("/p/"),
  );
  if (button <= 1) markSomeRead(followed).catch(() => {}); // it is still unread, then
}

onEvent("click", readFollowed);
onEvent("auxclick", readFollowed); // in a new tab
document.addEventListener("account", showInbox);
