// The time zone of this device. Mails come at eight in the morning there.

import { request } from "./api.js";
import { root } from "./page.js";

/** Return the time zone as a setting, or nothing if it is not known. */
export function zoneOfDevice() {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return timeZone?.includes("/") && !timeZone.startsWith("Etc/") ? { time_zone: timeZone } : {};
}

/** Save the time zone for the member. The service may not know it, and then keeps the last one. */
export const saveZone = () =>
  request("PATCH", `${root}/users/me/notifications`, { body: zoneOfDevice() }).catch(() => {});
