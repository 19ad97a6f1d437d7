// How far a member has read a post.

/**
 * @typedef {object} Seen
 * @property {string | null} up_to the last comment that was seen
 * @property {string | null} until its time, or null if the post was not seen
 * @property {string | null} latest the latest comment
 * @property {string[]} new the comments by others that are newer, oldest first
 * @property {boolean} unread whether notifications about the post or its comments are unread
 */

export const MAX_NEW = 100; // that the service lists

/**
 * Return up to which comment a post counts as seen after some comments were shown: to the last one
 * before a new comment that was not shown, such as one on another page. At the first visit,
 * everything that is there counts as seen.
 * @param {Seen} seen
 * @param {string[]} shown
 * @returns {string | null}
 */
export function progressOf(seen, shown) {
  const place = seen.new.findIndex((id) => !shown.includes(id));
  if (place > 0) return seen.new[place - 1];
  if (place === 0) return seen.up_to;
  return seen.new.length === MAX_NEW ? seen.new[MAX_NEW - 1] : (seen.latest ?? seen.up_to);
}
