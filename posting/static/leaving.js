// Signing out, and what this browser then forgets.

import { setMe, writer } from "./account.js";
import { onAction } from "./actions.js";
import { gettext, ngettext } from "./language.js";
import { goTo, root } from "./page.js";
import { Problem } from "./problem.js";
import { store } from "./storage.js";
import { namesOf } from "./stored.js";

const TIMEOUT = 30_000; // milliseconds

const texts = () => namesOf(`draft:${writer}:`);

/**
 * Return whether the unsent texts may be deleted. Ask if there are some.
 * @param {(number: number) => string} questionOf what to ask about a number of texts
 */
export function mayDeleteTexts(questionOf) {
  const { length } = texts();
  return length === 0 || confirm(questionOf(length));
}

/** @param {number} number */
const askToSignOut = (number) =>
  ngettext(
    "Sign out and delete your %(num)s unsent text?",
    "Sign out and delete your %(num)s unsent texts?",
    number,
  );

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
  if (!mayDeleteTexts(askToSignOut)) return;
  const options = { method: "POST", signal: AbortSignal.timeout(TIMEOUT) };
  const response = await fetch(`${root}/signout`, options).catch(() => null);
  if (!response?.ok && response?.status !== 401)
    throw new Problem(
      0,
      gettext("You are still signed in, because the service did not answer. Try again."),
    );
  await endPush().catch(() => {});
  forget();
  goTo(`${root}/`);
});
