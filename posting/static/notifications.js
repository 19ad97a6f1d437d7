// Notifications in words.

import { count } from "./words.js";

/** @typedef {{id: string, username: string, display_name: string | null, avatar_url: string | null}} Actor */

/**
 * @typedef {object} Notification
 * @property {string} id
 * @property {string} kind
 * @property {string} created_at
 * @property {boolean} read
 * @property {Actor | null} actor
 * @property {{id: string, title: string} | null} post
 * @property {{id: string, excerpt: string} | null} comment
 * @property {string | null} reason
 * @property {string | null} excerpt
 */

/**
 * The notifications about the comments on a post, or one that is about something else.
 * @typedef {object} Group
 * @property {{id: string, title: string} | null} post
 * @property {number} unread
 * @property {Actor[]} actors
 * @property {number} actor_count
 * @property {Notification} first
 * @property {Notification} latest
 */

/**
 * What an actor has done, by the kind of the notification.
 * @type {Record<string, (notification: Notification) => string>}
 */
const ACTS = {
  comment: () => "commented",
  reply: () => "replied to you",
  mention: ({ comment }) => (comment ? "mentioned you" : "mentioned you in the post"),
  reaction: ({ comment }) => `reacted to your ${comment ? "comment" : "post"}`,
  application: () => "asks for an account",
  report: ({ post, comment }) => {
    if (comment) return "reported a comment";
    return post ? "reported a post" : "reported a member";
  },
  backup: () => "began to download a backup of the whole site",
};

/** Acts of moderators, without their names. */
const NEWS = {
  removal: "A moderator has deleted something of yours",
  report_closed: "A moderator has looked at what you reported",
};

/** @param {Actor} actor */
const nameOf = ({ display_name, username }) => display_name || username;

/** Return whether a kind says all that there is to read, so that the inbox reads it. */
export const isOnlyHere = (kind) => Object.hasOwn(NEWS, kind);

/** Kinds that are in one group if they are about one post. */
const CONVERSATION = ["comment", "reply", "mention"];

/** Kinds that moderators deal with on the page of moderation. */
const FOR_MODERATORS = ["application", "report"];

/**
 * Return a sentence about a notification: the name of the actor, and the rest. The service may know
 * kinds that this script does not know. Their sentence is a general one, without a name.
 * @param {Notification} notification
 * @returns {[string, string]}
 */
export function sentenceOf(notification) {
  const { kind, actor, post, excerpt, reason } = notification;
  if (kind === "role") {
    const role = reason === "owner" ? "an owner" : `a ${reason}`;
    return [actor ? nameOf(actor) : "The operator", `made ${excerpt} ${role}`];
  }
  if (kind === "reset_link")
    return [nameOf(actor), `made a link to choose a password for ${excerpt}`];
  if (Object.hasOwn(NEWS, kind)) return ["", NEWS[kind]];
  const act = Object.hasOwn(ACTS, kind) && ACTS[kind];
  if (!act) return ["", post ? "There is news about this post" : "There is news for you"];
  return [actor ? nameOf(actor) : "A former member", act(notification)];
}

/**
 * Return the path, within the service, of what a notification is about, or null.
 * @param {Notification} notification
 */
export function pathOf({ kind, post, comment, excerpt }) {
  if (FOR_MODERATORS.includes(kind)) return "/moderation";
  if (kind === "backup") return "/keeping";
  if (kind === "role" || kind === "reset_link") return `/@${excerpt}`;
  if (!post) return null;
  return comment ? `/p/${post.id}?comment=${comment.id}#c-${comment.id}` : `/p/${post.id}`;
}

/**
 * Return the reason of a notification, or the note of a moderator, or nothing.
 * @param {Notification} notification
 */
export function reasonOf({ kind, reason }) {
  if (kind === "role" || kind === "reset_link") return null;
  return kind === "removal" && reason ? `Reason: ${reason}` : reason;
}

/**
 * Return what identifies a group: its post, or the text with the reactions, although its
 * notifications change.
 * @param {Group} group
 */
export function keyOf({ post, latest }) {
  if (latest.kind === "reaction") return `reaction ${latest.comment?.id ?? post?.id}`;
  return post && CONVERSATION.includes(latest.kind) ? post.id : latest.id;
}

/**
 * Return a sentence about what is new in a group, or about its latest notification. Names are apart
 * from the words, since each has a direction of its own.
 * @param {Group} group
 * @returns {{name?: string, words?: string}[]}
 */
export function partsOf({ unread, actors, actor_count, first }) {
  if (unread < 2) {
    const [name, words] = sentenceOf(first);
    return name ? [{ name }, { words: ` ${words}` }] : [{ words }];
  }
  const shown = actors.slice(0, actor_count > actors.length ? 2 : actors.length);
  /** @type {{name?: string, words?: string}[]} */
  const people = shown.map((actor) => ({ name: nameOf(actor) }));
  const others = actor_count - shown.length;
  if (others > 0 && shown.length > 0) people.push({ words: count(others, "other") });
  const last = people.pop();
  const names = people.flatMap((each, index) => (index === 0 ? [each] : [{ words: ", " }, each]));
  if (last) names.push(...(names.length === 0 ? [last] : [{ words: " and " }, last]));
  if (first.kind === "reaction") {
    if (names.length === 0) names.push({ words: "Former members" });
    return [...names, { words: ` ${ACTS.reaction(first)}` }];
  }
  const from = names.length === 0 ? [] : [{ words: " from " }];
  return [{ words: `${unread.toLocaleString("en")} new` }, ...from, ...names];
}
