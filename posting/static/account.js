// Who is signed in: a mark that sign-in leaves, so that visitors cause no request and no flicker.
// The event `account` says that this has changed.

import { onAction } from "./actions.js";
import { request } from "./api.js";
import { all } from "./dom.js";
import { goTo, ready, root } from "./page.js";
import { PREFIX, read, removeAll, store } from "./storage.js";

/** @typedef {{id: string, username: string, name: string | null, role: string}} Member */

/** @type {Member | null} */
export let me = read("me");
/** The id of the member whose texts this page holds, also after their session has ended. */
export let writer = me?.id ?? null;

const html = document.documentElement;

/**
 * Remember who is signed in. Return whether the browser could store it.
 * @param {{id: string, username: string, display_name: string | null, role: string} | null} user
 */
export function setMe(user) {
  me = user && { id: user.id, username: user.username, name: user.display_name, role: user.role };
  writer = me?.id ?? writer;
  const isStored = store("me", me);
  show();
  return isStored;
}

function show() {
  html.classList.toggle("member", me !== null);
  for (const element of all(document, "[data-my-name]")) {
    element.textContent = me ? me.name || me.username : "Settings";
  }
  for (const element of all(document, "[data-my-username]")) {
    element.value = me?.username ?? "";
  }
  for (const actions of all(document, ".actions[data-author]")) {
    actions.hidden = !showActions(actions, actions.dataset.author);
  }
  document.dispatchEvent(new Event("account"));
}

/**
 * Show what the reader may do with something of an author. Return whether that is anything.
 * @param {Element} actions
 * @param {string | undefined} author
 */
export function showActions(actions, author) {
  const isAuthor = me !== null && author === me.id;
  const mayDelete = isAuthor || me?.role === "moderator";
  for (const part of all(actions, ".for-author")) part.hidden = !isAuthor;
  for (const part of all(actions, ".for-deleter")) part.hidden = !mayDelete;
  return isAuthor || mayDelete;
}

/** Forget the member and their drafts, since others may use this computer. */
export function leave() {
  setMe(null);
  removeAll(`draft:${writer}:`);
  goTo(`${root}/`);
}

onAction("sign-out", async () => {
  await request("POST", `${root}/signout`);
  leave();
});

document.addEventListener("signed-out", () => {
  if (me) setMe(null);
});

addEventListener("storage", (event) => {
  if (event.key !== `${PREFIX}me`) return;
  me = read("me");
  // What this page holds is of another member, or was left out for a visitor.
  const holdsTexts = writer || document.querySelector("form[data-api] textarea");
  if (me && me.id !== writer && holdsTexts) return location.reload();
  writer = me?.id ?? writer;
  show();
});

html.classList.toggle("member", me !== null);
html.classList.add("ready");
ready(show);
