// The names of what this browser stores, for modules that do not know them.

import { PREFIX } from "./storage.js";

/**
 * Return the names of all values that begin with `start`.
 * @param {string} start
 */
export function namesOf(start) {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX + start));
    return names.map((name) => name.slice(PREFIX.length));
  } catch {
    return [];
  }
}
