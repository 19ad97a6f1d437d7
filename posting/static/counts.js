// The count of unread notifications: how it is shown, and when it is asked for again.

const MAX = 100; // the API counts no further
const INTERVAL = 60_000; // milliseconds

/**
 * Return a count as it is shown. None is shown as nothing.
 * @param {number} count
 */
export function numberOf(count) {
  if (count === 0) return "";
  return count < MAX ? String(count) : `${MAX - 1}+`;
}

/**
 * Return the title of a page with a number in front.
 * @param {string} title
 * @param {string} number
 */
export const titleWith = (title, number) => (number ? `(${number}) ${title}` : title);

/**
 * Return whether to ask for the count again. A time in the future is that of a wrong clock.
 * @param {number} asked when any tab has asked last, in milliseconds
 * @param {number} now
 */
export const isDue = (asked, now) => Math.abs(now - asked) >= INTERVAL;
