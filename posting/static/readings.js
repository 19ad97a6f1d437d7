// How far a member has read a post.

/**
 * @typedef {object} Seen
 * @property {string | null} up_to the last comment that was seen
 * @property {string | null} until its time, or null if the post was not seen
 * @property {string | null} latest the latest comment
 * @property {string[]} new the comments by others that are newer, oldest first
 */

/**
 * Return up to which comment a post counts as seen after some new comments were shown, and which of
 * these come later: others between them were not shown, such as those on other pages. At the first
 * visit, everything that is there counts as seen.
 * @param {Seen} seen
 * @param {string[]} shown
 * @returns {{upTo: string | null, later: string[]}}
 */
export function progressOf(seen, shown) {
  const place = seen.new.findIndex((id) => !shown.includes(id));
  if (place < 0) return { upTo: seen.latest ?? seen.up_to, later: [] };
  const upTo = place > 0 ? seen.new[place - 1] : seen.up_to;
  return { upTo, later: seen.new.slice(place).filter((id) => shown.includes(id)) };
}
