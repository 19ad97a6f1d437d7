// Notifications in words.

import { gettext, ngettext, partsOfList } from "./language.js";

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

/** @typedef {{name?: string, words?: string}} Part of a sentence: a name, or words around names */

/** The place of names in a text, until the text is divided into parts. */
const PLACE = "\0";
const BY = { actor: PLACE };
const NAMES = { names: PLACE };

/**
 * What an actor has done, by the kind of the notification.
 * @type {Record<string, (notification: Notification) => string>}
 */
const ACTS = {
  comment: () => gettext("%(actor)s commented", BY),
  reply: () => gettext("%(actor)s replied to you", BY),
  mention: ({ comment }) =>
    comment
      ? gettext("%(actor)s mentioned you", BY)
      : gettext("%(actor)s mentioned you in the post", BY),
  reaction: ({ comment }) =>
    comment
      ? gettext("%(actor)s reacted to your comment", BY)
      : gettext("%(actor)s reacted to your post", BY),
  application: () => gettext("%(actor)s asks for an account", BY),
  report: ({ post, comment }) => {
    if (comment) return gettext("%(actor)s reported a comment", BY);
    return post
      ? gettext("%(actor)s reported a post", BY)
      : gettext("%(actor)s reported a member", BY);
  },
  backup: () => gettext("%(actor)s began to download a backup of the whole site", BY),
  role: ({ excerpt: member, reason }) => {
    const values = { ...BY, member };
    if (reason === "owner") return gettext("%(actor)s made %(member)s an owner", values);
    return reason === "moderator"
      ? gettext("%(actor)s made %(member)s a moderator", values)
      : gettext("%(actor)s made %(member)s a member", values);
  },
  reset_link: ({ excerpt: member }) =>
    gettext("%(actor)s made a link to choose a password for %(member)s", { ...BY, member }),
};

/** Acts of moderators, without their names. */
const NEWS = {
  removal: gettext("A moderator has deleted something of yours"),
  report_closed: gettext("A moderator has looked at what you reported"),
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
 * Return a sentence about a notification, with the place of its actor. The service may know kinds
 * that this script does not know. Their sentence is a general one, without an actor.
 * @param {Notification} notification
 */
function textOf(notification) {
  const { kind, post } = notification;
  if (Object.hasOwn(NEWS, kind)) return NEWS[kind];
  if (Object.hasOwn(ACTS, kind)) return ACTS[kind](notification);
  return post ? gettext("There is news about this post") : gettext("There is news for you");
}

/** @param {Notification} notification */
function actorOf({ kind, actor }) {
  if (actor) return nameOf(actor);
  return kind === "role" ? gettext("The operator") : gettext("A former member");
}

/**
 * Return the path, within the service, of what a notification is about, or null.
 * @param {Notification} notification
 */
export function pathOf({ kind, post, comment, excerpt }) {
  if (FOR_MODERATORS.includes(kind)) return "/moderation";
  if (kind === "backup") return "/keeping#care";
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
  return kind === "removal" && reason ? gettext("Reason: %(reason)s", { reason }) : reason;
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
 * Return the parts of a text with names in their places.
 * @param {string} text
 * @param {...Part[]} names of each place
 * @returns {Part[]}
 */
const divide = (text, ...names) =>
  text
    .split(PLACE)
    .flatMap((words, index) => [...(names[index - 1] ?? []), ...(words ? [{ words }] : [])]);

/**
 * Return the names of actors, and how many there are besides.
 * @param {Actor[]} actors
 * @param {number} others
 */
function peopleOf(actors, others) {
  const names = actors.map(nameOf);
  if (others === 0) return partsOfList(names, "conjunction");
  return divide(
    ngettext("%(names)s and %(num)s other", "%(names)s and %(num)s others", others, NAMES),
    partsOfList(names, "unit"),
  );
}

/** @type {(notification: Notification, number: number) => string} */
const reactionsOf = ({ comment }, number) =>
  comment
    ? ngettext(
        "%(names)s reacted to your comment",
        "%(names)s reacted to your comment",
        number,
        NAMES,
      )
    : ngettext("%(names)s reacted to your post", "%(names)s reacted to your post", number, NAMES);

/** @param {Notification} notification */
const formerReactionsOf = ({ comment }) =>
  comment
    ? gettext("Former members reacted to your comment")
    : gettext("Former members reacted to your post");

/**
 * Return a sentence about what is new in a group, or about its latest notification. Names are apart
 * from the words, since each has a direction of its own.
 * @param {Group} group
 * @returns {Part[]}
 */
export function partsOf({ unread, actors, actor_count, first }) {
  if (unread < 2) return divide(textOf(first), [{ name: actorOf(first) }]);
  const isReaction = first.kind === "reaction";
  if (actors.length === 0) {
    const words = isReaction
      ? formerReactionsOf(first)
      : ngettext("%(num)s new", "%(num)s new", unread);
    return [{ words }];
  }
  const shown = actors.slice(0, actor_count > actors.length ? 2 : actors.length);
  const people = peopleOf(shown, actor_count - shown.length);
  const text = isReaction
    ? reactionsOf(first, actor_count)
    : ngettext("%(num)s new from %(names)s", "%(num)s new from %(names)s", unread, NAMES);
  return divide(text, people);
}
