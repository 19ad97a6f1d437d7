// Going on as a member after sign-in: where it leads, and what a browser must allow for it.

import { setMe } from "./account.js";
import { request } from "./api.js";
import { all, first, onEvent } from "./dom.js";
import { goTo, ready, root } from "./page.js";
import { Problem } from "./problem.js";
import { read, store } from "./storage.js";

const PATHS = ["signin", "signup", "reset"].map((name) => `${root}/${name}`);

/** Return whether the form to sign in takes the place of a page that only members may read. */
const isInPlace = () => !PATHS.includes(location.pathname);

/** Return where to go after sign-in: the `next` of the query if it is a path of this service. */
function nextUrl() {
  if (isInPlace()) return location.href;
  const front = `${location.origin}${root}/`;
  try {
    const next = new URL(new URLSearchParams(location.search).get("next") ?? "", front);
    return next.href.startsWith(front) ? next.href : front;
  } catch {
    return front;
  }
}

/** Return whether this browser refuses what signing in needs. Sign-in would lead back here. */
function isBlocked() {
  const canStore = store("test", true) && read("test") === true && store("test", null);
  return !(navigator.cookieEnabled && canStore);
}

/** Go on as a member who has signed in, if the browser has kept the session. */
export async function goOn(user) {
  try {
    await request("GET", `${root}/users/me`);
  } catch (problem) {
    if (problem.status === 401) throw new Problem(0, first(document, "#blocked").textContent);
  }
  setMe(user);
  goTo(nextUrl());
}

/**
 * Sign in with a password that was just chosen, and continue. If that fails, only sign in again.
 * @param {string} username
 * @param {string} password
 */
export async function signIn(username, password) {
  const body = { username, password };
  const response = await request("POST", `${root}/signin`, { body }).catch(() => null);
  if (response) await goOn(response.data);
  else goTo(`${root}/signin${location.search}`);
}

onEvent("click", (target, event) => {
  if (!target.closest("[data-go-on]")) return;
  event.preventDefault();
  goTo(nextUrl()); // which can be the URL of this page
});

ready(() => {
  const query = isInPlace() ? new URLSearchParams({ next: nextUrl() }) : location.search;
  for (const link of all(document, "[data-keep-next]")) link.search = query.toString();
  for (const link of all(document, "[data-go-on]")) link.href = nextUrl();
  const blocked = isBlocked();
  for (const notice of all(document, "#blocked")) notice.hidden = !blocked;
  for (const form of all(document, "form[data-form]")) form.hidden = blocked;
});
