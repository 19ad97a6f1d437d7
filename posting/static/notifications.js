// Notifications in words, and in groups.

/**
 * @typedef {object} Notification
 * @property {string} id
 * @property {string} kind
 * @property {string} created_at
 * @property {boolean} read
 * @property {{id: string, username: string, display_name: string | null, avatar_url: string | null} | null}
 *   actor
 * @property {{id: string, title: string} | null} post
 * @property {{id: string, excerpt: string} | null} comment
 * @property {string | null} reason
 * @property {string | null} excerpt
 */

/**
 * What an actor has done, by the kind of the notification.
 * @type {Record<string, (notification: Notification) => string>}
 */
const ACTS = {
  comment: () => "commented",
  reply: () => "replied to you",
  mention: ({ comment }) => (comment ? "mentioned you" : "mentioned you in the post"),
  application: () => "asks for an account",
  report: ({ post, comment }) => {
    if (comment) return "reported a comment";
    return post ? "reported a post" : "reported a member";
  },
};

/** Acts of moderators, without their names. */
const NEWS = {
  removal: "A moderator has deleted something of yours",
  report_closed: "A moderator has looked at what you reported",
};

/** Return whether a kind says all that there is to read, so that the inbox reads it. */
export const isOnlyHere = (kind) => Object.hasOwn(NEWS, kind);

/** Kinds that moderators deal with on the page of moderation. */
const FOR_MODERATORS = ["application", "report"];

/**
 * Return a sentence about a notification: the name of the actor, and the rest. The service may know
 * kinds that this script does not know. Their sentence is a general one, without a name.
 * @param {Notification} notification
 * @returns {[string, string]}
 */
export function sentenceOf(notification) {
  const { kind, actor, post } = notification;
  if (Object.hasOwn(NEWS, kind)) return ["", NEWS[kind]];
  const act = Object.hasOwn(ACTS, kind) && ACTS[kind];
  if (!act) return ["", post ? "There is news about this post" : "There is news for you"];
  return [actor ? actor.display_name || actor.username : "A former member", act(notification)];
}

/**
 * Return the path, within the service, of what a notification is about, or null.
 * @param {Notification} notification
 */
export function pathOf({ kind, post, comment }) {
  if (FOR_MODERATORS.includes(kind)) return "/moderation";
  if (!post) return null;
  return comment ? `/p/${post.id}?comment=${comment.id}#c-${comment.id}` : `/p/${post.id}`;
}

/**
 * Return the reason of a notification, or the note of a moderator, or nothing.
 * @param {Notification} notification
 */
export function reasonOf({ kind, reason }) {
  return kind === "removal" && reason ? `Reason: ${reason}` : reason;
}

/**
 * Return notifications in groups: those about one post are together, in the place of the first.
 * @param {Notification[]} notifications
 * @returns {Notification[][]}
 */
export function groupByPost(notifications) {
  /** @type {Map<string, Notification[]>} */
  const groups = new Map();
  for (const notification of notifications) {
    const key = notification.post?.id ?? notification.id;
    groups.set(key, [...(groups.get(key) ?? []), notification]);
  }
  return [...groups.values()];
}
