// What this browser stores for this service.

import { root } from "./page.js";

export const PREFIX = `posting:${root}:`;

/**
 * Return a stored value, or null. Browsers may refuse to store anything.
 * @param {string} name
 */
export function read(name) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name) ?? "null");
  } catch {
    return null;
  }
}

/**
 * Store a value, or remove it if it is null. Return whether the browser did so.
 * @param {string} name
 * @param {unknown} value
 */
export function store(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
    return true;
  } catch {
    return false; // it is full or turned off
  }
}
