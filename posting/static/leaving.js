// Signing out, and what this browser then forgets.

import { setMe, writer } from "./account.js";
import { onAction } from "./actions.js";
import { goTo, root } from "./page.js";
import { Problem } from "./problem.js";
import { store } from "./storage.js";
import { namesOf } from "./stored.js";

const TIMEOUT = 30_000; // milliseconds

const texts = () => namesOf(`draft:${writer}:`);

/**
 * Return whether the unsent texts may be deleted. Ask if there are some.
 * @param {string} act what deletes them, such as "Sign out and delete"
 */
export function mayDeleteTexts(act) {
  const { length } = texts();
  const question = `${act} your ${length} unsent text${length === 1 ? "" : "s"}?`;
  return length === 0 || confirm(question);
}

/** Let this device show no more notifications, since somebody else may use it. */
async function endPush() {
  const registration = await navigator.serviceWorker?.getRegistration(`${root}/`);
  const subscription = await registration?.pushManager?.getSubscription();
  await subscription?.unsubscribe();
}

/** Forget the member, their texts and what they have seen, since others may use this computer. */
export function forget() {
  for (const name of [...texts(), "seen"]) store(name, null);
  setMe(null);
}

onAction("sign-out", async () => {
  if (!mayDeleteTexts("Sign out and delete")) return;
  const options = { method: "POST", signal: AbortSignal.timeout(TIMEOUT) };
  const response = await fetch(`${root}/signout`, options).catch(() => null);
  if (!response?.ok && response?.status !== 401)
    throw new Problem(0, "You are still signed in, because the service did not answer. Try again.");
  await endPush().catch(() => {});
  forget();
  goTo(`${root}/`);
});
