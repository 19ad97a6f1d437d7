// Moderation in words: reports, acts, and what is known of a member.

import { dateOf } from "./times.js";
import { count } from "./words.js";

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
const KINDS = { post: "Post by", comment: "Comment by", user: "Profile of" };
const OUTCOMES = {
  dismissed: "dismissed the report",
  removed: "deleted it",
  suspended: "suspended the author",
};
/** Acts of the log that are not verbs. */
const VERBS = {
  "reset link": "made a link to choose a password for",
  "password reset": "chose a new password for",
  "made owner": "made an owner of",
};

/**
 * Return the name of a member, whose account may be gone.
 * @param {Author | null} [author]
 */
export const nameOf = (author) => author?.display_name || author?.username || "a former member";

/**
 * Return in words what was reported.
 * @param {Target} target
 */
export const titleOf = ({ kind, author }) => `${KINDS[kind] ?? "Reported:"} ${nameOf(author)}`;

/**
 * Return what has happened to it since.
 * @param {Target} target
 */
export function changeOf({ exists, edited }) {
  if (!exists) return " · deleted";
  return edited ? " · edited since" : "";
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
  const act = OUTCOMES[outcome] ?? "closed the report";
  return `${closed_by ? nameOf(closed_by) : "A moderator"} ${act}.${note ? ` “${note}”` : ""}`;
}

/**
 * Return an entry of the log as a sentence.
 * @param {Act} act
 */
export function sentenceOf({ action, by, moderator, target: { kind }, user }) {
  const actor = by === "operator" ? "The operator" : moderator ? nameOf(moderator) : by;
  const act = `${actor} ${VERBS[action] ?? action}`;
  if (kind === "site") return `${act} the site`;
  if (["webhook", "backup", "topic"].includes(kind)) return `${act} a ${kind}`;
  const member = user ? nameOf(user) : "a member";
  if (kind === "user") return `${act} ${member}`;
  if (kind === "content") return `${act} everything by ${member}`;
  return `${act} ${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind} of ${member}`;
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
  const end = until ? `until ${dateOf(until)}` : "until a moderator lifts it";
  return `Suspended since ${dateOf(since)}, ${end}.${reason ? ` Reason: ${reason}` : ""}`;
}

/**
 * Return in words what moderators see of a member.
 * @param {any} member
 */
export function factsOf(member) {
  const { suspension, last_seen_at, application, invited_by, invited } = member;
  const facts = [];
  if (suspension) facts.push(sentenceOfSuspension(suspension));
  facts.push(last_seen_at ? `Last seen on ${dateOf(last_seen_at)}.` : "Never signed in.");
  if (invited_by) facts.push(`Invited by ${invited_by}.`);
  if (invited.length > 0) facts.push(`Has invited ${invited.join(", ")}.`);
  if (application) facts.push(`Asked for the account with these words: “${application}”`);
  facts.push(`Has ${contentOf(member)}.`);
  const { open_reports, closed_reports } = member;
  facts.push(`${count(open_reports, "open report")}, ${count(closed_reports, "closed one")}.`);
  return facts;
}

/** Return in words how much a member has written. */
export const contentOf = ({ posts, comments, images, files }) =>
  `${count(posts, "post")}, ${count(comments, "comment")}, ${count(images, "image")} and ${count(files, "file")}`;
