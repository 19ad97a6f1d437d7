// Moderation in words: reports, acts, and what is known of a member.

import { gettext, joined, ngettext } from "./language.js";
import { dateOf } from "./times.js";

/** @typedef {{id: string, username: string, display_name: string | null}} Author */

/**
 * @typedef {object} Target
 * @property {string} kind
 * @property {string} id
 * @property {string | null} post_id
 * @property {Author | null} author of a member, the member
 * @property {string} excerpt
 * @property {boolean} exists
 * @property {boolean} edited
 * @property {{url: string, thumbnail_url: string | null, alt: string | null}[]} images
 * @property {{name: string, url: string}[]} files
 */

/**
 * @typedef {object} Report
 * @property {string} id
 * @property {Author | null} reporter
 * @property {Target} target
 * @property {string} reason
 * @property {string} state
 * @property {string | null} outcome
 * @property {string | null} note
 * @property {string} created_at
 * @property {Author | null} closed_by
 */

/**
 * @typedef {object} Act
 * @property {string} action
 * @property {string} by
 * @property {Author | null} moderator
 * @property {{kind: string, id: string | null}} target
 * @property {Author | null} [user]
 */

const DAY = 86_400_000; // milliseconds

/** Titles of reports, by the kind of what was reported. */
const TITLES = {
  post: (author) => gettext("Post by %(author)s", { author }),
  comment: (author) => gettext("Comment by %(author)s", { author }),
  user: (author) => gettext("Profile of %(author)s", { author }),
  other: (author) => gettext("Reported: %(author)s", { author }),
};

const OUTCOMES = {
  dismissed: (moderator) => gettext("%(moderator)s dismissed the report.", { moderator }),
  removed: (moderator) => gettext("%(moderator)s deleted it.", { moderator }),
  suspended: (moderator) => gettext("%(moderator)s suspended the author.", { moderator }),
  other: (moderator) => gettext("%(moderator)s closed the report.", { moderator }),
};

/** Entries of the log, by the act and the kind of its target. */
const ACTS = {
  "approved user": (names) => gettext("%(actor)s approved %(member)s", names),
  "created user": (names) => gettext("%(actor)s created %(member)s", names),
  "deleted user": (names) => gettext("%(actor)s deleted %(member)s", names),
  "demoted user": (names) => gettext("%(actor)s demoted %(member)s", names),
  "made owner user": (names) => gettext("%(actor)s made an owner of %(member)s", names),
  "password reset user": (names) => gettext("%(actor)s chose a new password for %(member)s", names),
  "promoted user": (names) => gettext("%(actor)s promoted %(member)s", names),
  "refused user": (names) => gettext("%(actor)s refused %(member)s", names),
  "reset link user": (names) =>
    gettext("%(actor)s made a link to choose a password for %(member)s", names),
  "restored user": (names) => gettext("%(actor)s restored %(member)s", names),
  "suspended user": (names) => gettext("%(actor)s suspended %(member)s", names),
  "deleted post": (names) => gettext("%(actor)s deleted a post of %(member)s", names),
  "locked post": (names) => gettext("%(actor)s locked a post of %(member)s", names),
  "pinned post": (names) => gettext("%(actor)s pinned a post of %(member)s", names),
  "unlocked post": (names) => gettext("%(actor)s unlocked a post of %(member)s", names),
  "unpinned post": (names) => gettext("%(actor)s unpinned a post of %(member)s", names),
  "deleted comment": (names) => gettext("%(actor)s deleted a comment of %(member)s", names),
  "deleted image": (names) => gettext("%(actor)s deleted an image of %(member)s", names),
  "deleted file": (names) => gettext("%(actor)s deleted a file of %(member)s", names),
  "deleted avatar": (names) => gettext("%(actor)s deleted an avatar of %(member)s", names),
  "deleted content": (names) => gettext("%(actor)s deleted everything by %(member)s", names),
  "closed report": (names) => gettext("%(actor)s closed a report about %(member)s", names),
  "ended invitation": (names) => gettext("%(actor)s ended an invitation of %(member)s", names),
  "created topic": (names) => gettext("%(actor)s created a topic", names),
  "edited topic": (names) => gettext("%(actor)s edited a topic", names),
  "deleted topic": (names) => gettext("%(actor)s deleted a topic", names),
  "created webhook": (names) => gettext("%(actor)s created a webhook", names),
  "deleted webhook": (names) => gettext("%(actor)s deleted a webhook", names),
  "downloaded backup": (names) => gettext("%(actor)s downloaded a backup", names),
  "edited site": (names) => gettext("%(actor)s edited the site", names),
};

/** What owners choose, by the name of the setting. */
const SETTINGS = {
  name: gettext("the name"),
  description: gettext("the description"),
  about: gettext("the text about the site"),
  rules: gettext("the rules"),
  signup: gettext("who may create an account"),
  invitations: gettext("who may invite"),
  reading: gettext("who may read"),
  moderation_log: gettext("who may read the log"),
  language: gettext("the language"),
  accent: gettext("the color"),
  logo: gettext("the logo"),
  cover: gettext("the cover picture"),
};

/**
 * Return the name of something that owners choose.
 * @param {string} name
 */
export const nameOfSetting = (name) => SETTINGS[name] ?? name;

/**
 * Return why a moderator acted, or what of the site was edited.
 * @param {{action: string, target: {kind: string}, reason: string | null}} act
 */
export const reasonOf = ({ action, target, reason }) =>
  action === "edited" && target.kind === "site" && reason
    ? joined(reason.split(", ").map(nameOfSetting))
    : (reason ?? "");

/**
 * Return the name of a member, whose account may be gone.
 * @param {Author | null} [author]
 */
export const nameOf = (author) =>
  author?.display_name || author?.username || gettext("a former member");

/**
 * Return in words what was reported.
 * @param {Target} target
 */
export const titleOf = ({ kind, author }) => (TITLES[kind] ?? TITLES.other)(nameOf(author));

/**
 * Return what has happened to it since.
 * @param {Target} target
 */
export function changeOf({ exists, edited }) {
  if (!exists) return ` · ${gettext("deleted")}`;
  return edited ? ` · ${gettext("edited since")}` : "";
}

/**
 * Return the path, within the service, of what was reported, or null if it is gone.
 * @param {Target} target
 */
export function placeOf({ kind, id, post_id, author, exists }) {
  if (!exists) return null;
  if (kind === "user") return author && `/@${author.username}`;
  return kind === "comment" ? `/p/${post_id}?comment=${id}#c-${id}` : `/p/${id}`;
}

/**
 * Return the path of the API to what was reported. A member has none, because no moderator deletes
 * one because of a report.
 * @param {Target} target
 */
export const resourceOf = ({ kind, id }) => (kind === "user" ? null : `/${kind}s/${id}`);

/**
 * Return what came of a report, or nothing while it is open.
 * @param {Report} report
 */
export function outcomeOf({ state, outcome, note, closed_by }) {
  if (state === "open") return "";
  const moderator = closed_by ? nameOf(closed_by) : gettext("A moderator");
  const sentence = (OUTCOMES[outcome] ?? OUTCOMES.other)(moderator);
  return note ? gettext("%(sentence)s “%(note)s”", { sentence, note }) : sentence;
}

/**
 * Return an entry of the log as a sentence.
 * @param {Act} act
 */
export function sentenceOf({ action, by, moderator, target: { kind }, user }) {
  const name = moderator ? nameOf(moderator) : by;
  const actor = by === "operator" ? gettext("The operator") : name;
  const member = user ? nameOf(user) : gettext("a member");
  const sentence = ACTS[`${action} ${kind}`];
  // The service may know acts that this script does not know.
  return sentence
    ? sentence({ actor, member })
    : gettext("%(actor)s did something that is about %(member)s", { actor, member });
}

/**
 * Return the body of a suspension for a number of days, or without an end if there is none.
 * @param {Record<string, string | null>} values of the form
 */
export function suspensionOf({ reason, days }, now = Date.now()) {
  return { reason, until: days ? new Date(now + Number(days) * DAY).toISOString() : null };
}

/**
 * Return a suspension in words.
 * @param {{reason: string | null, since: string, until: string | null}} suspension
 */
export function sentenceOfSuspension({ reason, since, until }) {
  const start = dateOf(since);
  const sentence = until
    ? gettext("Suspended since %(start)s, until %(end)s.", { start, end: dateOf(until) })
    : gettext("Suspended since %(start)s, until a moderator lifts it.", { start });
  return reason ? `${sentence} ${gettext("Reason: %(reason)s", { reason })}` : sentence;
}

/**
 * Return in words what moderators see of a member.
 * @param {any} member
 */
export function factsOf(member) {
  const { suspension, last_seen_at, application, invited_by, invited } = member;
  const facts = [];
  if (suspension) facts.push(sentenceOfSuspension(suspension));
  facts.push(
    last_seen_at
      ? gettext("Last seen on %(date)s.", { date: dateOf(last_seen_at) })
      : gettext("Never signed in."),
  );
  if (invited_by) facts.push(gettext("Invited by %(name)s.", { name: invited_by }));
  if (invited.length > 0) facts.push(gettext("Has invited %(names)s.", { names: joined(invited) }));
  if (application)
    facts.push(
      gettext("Asked for the account with these words: “%(words)s”", { words: application }),
    );
  facts.push(gettext("Has %(content)s.", { content: contentOf(member) }));
  const { open_reports, closed_reports } = member;
  const open = ngettext("%(num)s open report", "%(num)s open reports", open_reports);
  const closed = ngettext("%(num)s closed one", "%(num)s closed ones", closed_reports);
  facts.push(gettext("%(open)s, %(closed)s.", { open, closed }));
  return facts;
}

/** Return in words how much a member has written. */
export function contentOf(member) {
  const posts = ngettext("%(num)s post", "%(num)s posts", member.posts);
  const comments = ngettext("%(num)s comment", "%(num)s comments", member.comments);
  const images = ngettext("%(num)s image", "%(num)s images", member.images);
  const files = ngettext("%(num)s file", "%(num)s files", member.files);
  const values = { posts, comments, images, files };
  return gettext("%(posts)s, %(comments)s, %(images)s and %(files)s", values);
}
