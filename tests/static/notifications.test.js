import assert from "node:assert/strict";
import test from "node:test";

import { keyOf, partsOf, pathOf, reasonOf } from "../../posting/static/notifications.js";

const GRACE = { username: "grace", display_name: "Grace Hopper" };
const POST = { id: "p1", title: "On engines" };
const COMMENT = { id: "c1", excerpt: "And cloth?" };

/** @returns {import("../../posting/static/notifications.js").Notification} */
const notification = (values) => ({
  id: "n1",
  kind: "comment",
  created_at: "2026-11-21T09:30:00.125Z",
  read: false,
  actor: GRACE,
  post: POST,
  comment: COMMENT,
  reason: null,
  excerpt: null,
  ...values,
});

/** Return the parts of the sentence about a notification that is alone in its group. */
const partsAlone = (first) =>
  partsOf({ post: POST, unread: 1, actors: [], actor_count: 1, first, latest: first });

const sentenceOf = (first) =>
  partsAlone(first)
    .map(({ name, words }) => name ?? words)
    .join("");

for (const [values, expected] of [
  [{ kind: "comment" }, "Grace Hopper commented"],
  [{ kind: "reply" }, "Grace Hopper replied to you"],
  [{ kind: "mention" }, "Grace Hopper mentioned you"],
  [{ kind: "mention", comment: null }, "Grace Hopper mentioned you in the post"],
  [{ kind: "reaction" }, "Grace Hopper reacted to your comment"],
  [{ kind: "reaction", comment: null }, "Grace Hopper reacted to your post"],
  [{ kind: "application", post: null, comment: null }, "Grace Hopper asks for an account"],
  [{ kind: "report" }, "Grace Hopper reported a comment"],
  [{ kind: "report", comment: null }, "Grace Hopper reported a post"],
  [{ kind: "report", post: null, comment: null }, "Grace Hopper reported a member"],
  [
    { kind: "backup", post: null, comment: null },
    "Grace Hopper began to download a backup of the whole site",
  ],
  [{ kind: "reply", actor: null }, "A former member replied to you"],
  [{ actor: { username: "grace", display_name: null } }, "grace commented"],
]) {
  test(`it says: ${expected}`, () => {
    assert.equal(sentenceOf(notification(values)), expected);
  });
}

for (const [kind, expected] of [
  ["removal", "A moderator has deleted something of yours"],
  ["report_closed", "A moderator has looked at what you reported"],
]) {
  test(`it says, without a name: ${expected}`, () => {
    const values = { kind, actor: null, post: null, comment: null };
    assert.deepEqual(partsAlone(notification(values)), [{ words: expected }]);
  });
}

for (const [values, expected] of [
  [{ reason: "owner" }, "Grace Hopper made bob an owner"],
  [{ reason: "member", actor: null }, "The operator made bob a member"],
]) {
  test(`a change of a role says: ${expected}`, () => {
    const role = notification({
      kind: "role",
      post: null,
      comment: null,
      excerpt: "bob",
      ...values,
    });
    assert.equal(sentenceOf(role), expected);
    assert.equal(pathOf(role), "/@bob");
    assert.equal(reasonOf(role), null);
  });
}

test("the reason of a removal says that it is one, and a note is as it was written", () => {
  const reason = "It was an advertisement.";
  const of = (kind) => reasonOf(notification({ kind, reason }));
  assert.equal(of("removal"), "Reason: It was an advertisement.");
  assert.equal(of("report_closed"), reason);
  assert.equal(reasonOf(notification({ kind: "removal" })), null);
});

for (const kind of ["unknown", "toString", "__proto__", ""]) {
  test(`an unknown kind has a general sentence: "${kind}"`, () => {
    assert.equal(sentenceOf(notification({ kind })), "There is news about this post");
    const other = notification({ kind, actor: null, post: null, comment: null });
    assert.equal(sentenceOf(other), "There is news for you");
  });
}

test("it leads to the comment, or to the post, or nowhere", () => {
  assert.equal(pathOf(notification({})), "/p/p1?comment=c1#c-c1");
  assert.equal(pathOf(notification({ comment: null })), "/p/p1");
  assert.equal(pathOf(notification({ post: null, comment: null })), null);
});

test("what moderators deal with leads to their page", () => {
  assert.equal(pathOf(notification({ kind: "report" })), "/moderation");
  assert.equal(pathOf(notification({ kind: "application", post: null })), "/moderation");
});

const people = (...names) => names.map((name) => ({ ...GRACE, display_name: name }));

for (const [unread, actors, actor_count, expected] of [
  [12, people("Ada", "Bo", "Cy"), 5, "12 new from Ada, Bo and 3 others"],
  [4, people("Ada", "Bo", "Cy"), 4, "4 new from Ada, Bo and 2 others"],
  [3, people("Ada", "Bo", "Cy"), 3, "3 new from Ada, Bo, and Cy"],
  [2, people("Ada", "Bo"), 2, "2 new from Ada and Bo"],
  [1200, people("Ada"), 1, "1,200 new from Ada"],
  [2, people("Ada"), 2, "2 new from Ada and 1 other"],
  [2, [], 0, "2 new"],
  [2, [], 1, "2 new"],
  [1, people("Ada"), 1, "Grace Hopper commented"],
  [0, [], 0, "Grace Hopper commented"],
]) {
  test(`a group says: ${expected}, if ${unread} are not read`, () => {
    const latest = notification({});
    const group = { post: POST, unread, actors, actor_count, first: latest, latest };
    const said = partsOf(group).map(({ name, words }) => name ?? words);
    assert.equal(said.join(""), expected);
  });
}

for (const [actors, count, expected] of [
  [people("Ada", "Bo"), 2, "Ada and Bo reacted to your comment"],
  [people("Ada", "Bo", "Cy"), 5, "Ada, Bo and 3 others reacted to your comment"],
  [[], 1, "Former members reacted to your comment"],
]) {
  test(`reactions to one text are gathered: ${expected}`, () => {
    const first = notification({ kind: "reaction" });
    const group = { post: POST, unread: 5, actors, actor_count: count, first, latest: first };
    const said = partsOf(group).map(({ name, words }) => name ?? words);
    assert.equal(said.join(""), expected);
  });
}

test("what has no name is one part", () => {
  const first = notification({ kind: "removal", actor: null });
  const group = { post: POST, unread: 1, actors: [], actor_count: 0, first, latest: first };
  assert.deepEqual(partsOf(group), [{ words: "A moderator has deleted something of yours" }]);
});

test("a group is that of its post, of a text with reactions, or of its only notification", () => {
  const groupOf = (values) => ({ post: POST, latest: notification({ id: "n2", ...values }) });
  assert.equal(keyOf(groupOf({})), "p1");
  assert.equal(keyOf(groupOf({ kind: "reaction" })), "reaction c1");
  assert.equal(keyOf(groupOf({ kind: "reaction", comment: null })), "reaction p1");
  assert.equal(keyOf(groupOf({ kind: "report" })), "n2");
  assert.equal(keyOf({ ...groupOf({}), post: null }), "n2");
});
