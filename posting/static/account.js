// Who is signed in: a mark that sign-in leaves, so that visitors cause no request and no flicker.
// The event `account` says that this has changed.

import { all } from "./dom.js";
import { ready, root } from "./page.js";
import { say } from "./status.js";
import { PREFIX, read, store } from "./storage.js";

/** @type {any} */
export let me = read("me");
/** The id of who wrote the texts of this page, even if their session has ended. */
export let writer = me?.id ?? null;

const html = document.documentElement;
/** What is known of the reader. */
export const FIELDS = ["id", "username", "display_name", "role", "avatar_url"];

/**
 * Remember who is signed in.
 * @param {any} user
 */
export function setMe(user) {
  me = user && Object.fromEntries(FIELDS.map((name) => [name, user[name]]));
  writer = me?.id ?? writer;
  store("me", me);
  show();
}

/** Owners moderate too. */
export const moderates = () => me !== null && me.role !== "member";

/** Show what is for whom. */
function show() {
  if (me) html.dataset.role = me.role;
  else delete html.dataset.role;
  showReader(document);
  document.dispatchEvent(new Event("account"));
}

/**
 * Show who the reader is, and what they may do.
 * @param {ParentNode} part
 */
export function showReader(part) {
  for (const element of all(part, "[data-my-name]"))
    element.textContent = me ? me.display_name || me.username : (element.dataset.visitor ?? "");
  for (const link of all(part, "[data-my-page]")) if (me) link.href = `${root}/@${me.username}`;
  for (const input of all(part, "[data-my-username]")) input.value = me?.username ?? "";
  for (const actions of all(part, "[data-author]")) {
    const isAuthor = me !== null && actions.dataset.author === me.id;
    const mayDelete = isAuthor || moderates();
    for (const element of all(actions, ".for-author")) element.hidden = !isAuthor;
    for (const element of all(actions, ".for-deleter")) element.hidden = !mayDelete;
    for (const element of all(actions, ".for-others")) element.hidden = !me || mayDelete;
  }
}

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

/** Load what signs out when a reader asks for it, since most never do. */
async function loadSignOut(event) {
  const button = event.target.closest("[data-action=sign-out]");
  if (!button) return;
  event.stopPropagation(); // a second click follows
  document.removeEventListener("click", loadSignOut, true);
  try {
    await import("./leaving.js");
  } catch {
    document.addEventListener("click", loadSignOut, true);
    return say(button.dataset.offline);
  }
  button.click();
}

document.addEventListener("click", loadSignOut, true);
html.classList.add("ready");
ready(show);
