// What a browser knows of the comments of a post that it has shown: the time up to which all count as
// read, and then the times of later ones that it has shown. Only some may have been on its pages.

/** @typedef {string[]} Reading the times, of which the first is the earliest */

const MAX_TIMES = 500;

/**
 * Return what is stored of a post. At the first visit, what is there counts as read.
 * @param {Reading | string | undefined} stored a text if an earlier version has stored it
 * @param {string} latest the time of the last comment, or of the post if it has none
 * @returns {Reading}
 */
export const readingOf = (stored, latest) => [stored ?? latest].flat();

/**
 * Return whether a comment is new.
 * @param {Reading} reading
 * @param {string} time
 */
export const isNew = (reading, time) => time > reading[0] && !reading.includes(time);

/**
 * Return a reading after comments were shown.
 * @param {Reading} reading
 * @param {string[]} times of these comments
 * @param {boolean} isWhole whether these were all comments of the post
 * @returns {Reading}
 */
export function withShown(reading, times, isWhole) {
  const later = new Set([...reading, ...times.filter((time) => time > reading[0])]);
  return [...later].sort().slice(isWhole ? -1 : -MAX_TIMES);
}
