// Notifications on this device, in the settings.

import { onAction } from "./actions.js";
import { request } from "./api.js";
import { first } from "./dom.js";
import { gettext } from "./language.js";
import { root } from "./page.js";
import { Problem } from "./problem.js";

const URL_OF_DEVICES = `${root}/push/subscriptions`;

const canPush = () => "serviceWorker" in navigator && "PushManager" in window;

/** Return the subscription of this device, or null. */
async function findSubscription() {
  const registration = await navigator.serviceWorker.getRegistration(`${root}/`);
  return (await registration?.pushManager.getSubscription()) ?? null;
}

/** Return the key of the service, by which it signs what it sends. */
const findKey = async () => (await request("GET", `${root}/push/key`)).data.key;

/** Return a key as the service writes it, in base64url. */
const encoded = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

const register = (subscription) => request("PUT", URL_OF_DEVICES, { body: subscription.toJSON() });

/**
 * Return whether this device gets what the service sends.
 *
 * It is added again, in case the service has forgotten it, such as when a session ended. If it is
 * for the key of another database, it gets nothing.
 */
async function isPushed() {
  const subscription = await findSubscription();
  if (!subscription) return false;
  if (encoded(subscription.options.applicationServerKey) !== (await findKey())) return false;
  await register(subscription);
  return true;
}

/** Say whether this device shows notifications, and offer to change it. */
export async function showPush() {
  const place = first(document, "[data-push]");
  const [start, stop] = ["push", "stop-push"].map((name) =>
    first(document, `[data-action=${name}]`),
  );
  if (!canPush()) {
    place.textContent = isSecureContext
      ? gettext(
          "This browser cannot show notifications. On an iPhone, first add this site to the home screen.",
        )
      : gettext("Notifications need a secure connection (https).");
    return;
  }
  const isOn = await isPushed();
  place.textContent = isOn
    ? gettext("Notifications are on for this device.")
    : gettext("Notifications are off for this device.");
  start.hidden = isOn;
  stop.hidden = !isOn;
}

onAction("push", async () => {
  if ((await Notification.requestPermission()) !== "granted")
    throw new Problem(
      0,
      gettext("Your browser blocks notifications of this site. Allow them there, and try again."),
    );
  const key = await findKey();
  const registration = await navigator.serviceWorker.register(`${root}/worker.js`);
  const options = { userVisibleOnly: true, applicationServerKey: key };
  let subscription;
  try {
    // A former one may be for the key of another database.
    await (await registration.pushManager.getSubscription())?.unsubscribe();
    subscription = await registration.pushManager.subscribe(options);
  } catch {
    throw new Problem(
      0,
      gettext("The push service of your browser does not answer. Try again later."),
    );
  }
  await register(subscription);
  await showPush();
});

onAction("stop-push", async () => {
  const subscription = await findSubscription();
  if (subscription) {
    const query = new URLSearchParams({ endpoint: subscription.endpoint });
    await request("DELETE", `${URL_OF_DEVICES}?${query}`);
    await subscription.unsubscribe();
  }
  await showPush();
});
