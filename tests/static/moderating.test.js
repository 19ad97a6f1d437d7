import assert from "node:assert/strict";
import test from "node:test";

import {
  changeOf,
  factsOf,
  outcomeOf,
  placeOf,
  resourceOf,
  sentenceOf,
  suspensionOf,
  titleOf,
} from "../../posting/static/moderating.js";

const GRACE = { id: "u1", username: "grace", display_name: "Grace Hopper" };
const MORGAN = { id: "u2", username: "morgan", display_name: null };
const COMMENT = {
  kind: "comment",
  id: "c1",
  post_id: "p1",
  author: GRACE,
  excerpt: "Cheap looms",
  exists: true,
  edited: false,
};
const POST = { ...COMMENT, kind: "post", id: "p1" };
const USER = { ...COMMENT, kind: "user", id: "u1", post_id: null };

test("a report says what was reported, and leads there", () => {
  assert.equal(titleOf(COMMENT), "Comment by Grace Hopper");
  assert.equal(placeOf(COMMENT), "/p/p1?comment=c1#c-c1");
  assert.equal(titleOf(POST), "Post by Grace Hopper");
  assert.equal(placeOf(POST), "/p/p1");
  assert.equal(titleOf(USER), "Profile of Grace Hopper");
  assert.equal(placeOf(USER), "/@grace");
});

test("an author may be gone, and so may what was reported", () => {
  assert.equal(titleOf({ ...POST, author: null }), "Post by a former member");
  assert.equal(placeOf({ ...USER, author: null }), null);
  for (const target of [COMMENT, POST, USER])
    assert.equal(placeOf({ ...target, exists: false }), null);
});

test("moderators delete posts and comments, and no members", () => {
  assert.equal(resourceOf(COMMENT), "/comments/c1");
  assert.equal(resourceOf(POST), "/posts/p1");
  assert.equal(resourceOf(USER), null);
});

test("a report says what has changed since", () => {
  assert.equal(changeOf(POST), "");
  assert.equal(changeOf({ ...POST, edited: true }), " · edited since");
  assert.equal(changeOf({ ...POST, exists: false, edited: true }), " · deleted");
});

for (const [values, expected] of [
  [{ state: "open" }, ""],
  [{ outcome: "removed" }, "morgan deleted it."],
  [{ outcome: "suspended" }, "morgan suspended the author."],
  [{ outcome: "dismissed", note: "It is a joke." }, "morgan dismissed the report. “It is a joke.”"],
  [{ outcome: "new", closed_by: null }, "A moderator closed the report."],
]) {
  test(`what came of a report: ${expected}`, () => {
    const report = { state: "closed", outcome: null, note: null, closed_by: MORGAN };
    assert.equal(outcomeOf({ ...report, ...values }), expected);
  });
}

for (const [action, kind, values, expected] of [
  ["deleted", "comment", {}, "morgan deleted a comment of Grace Hopper"],
  ["deleted", "image", {}, "morgan deleted an image of Grace Hopper"],
  ["deleted", "content", {}, "morgan deleted everything by Grace Hopper"],
  ["suspended", "user", {}, "morgan suspended Grace Hopper"],
  ["suspended", "user", { user: null }, "morgan suspended a member"],
  ["deleted", "topic", { user: null }, "morgan deleted a topic"],
  ["locked", "post", { moderator: null }, "m locked a post of Grace Hopper"],
  [
    "reset link",
    "user",
    { moderator: null, by: "operator" },
    "The operator made a link to choose a password for Grace Hopper",
  ],
]) {
  test(`the log says: ${expected}`, () => {
    const act = { action, by: "m", moderator: MORGAN, target: { kind, id: "x" }, user: GRACE };
    assert.equal(sentenceOf({ ...act, ...values }), expected);
  });
}

test("a suspension ends after some days, or has no end", () => {
  const now = Date.parse("2026-11-21T09:30:00.125Z");
  assert.deepEqual(suspensionOf({ reason: "Advertising", days: "7" }, now), {
    reason: "Advertising",
    until: "2026-11-28T09:30:00.125Z",
  });
  assert.equal(suspensionOf({ reason: "Advertising" }, now).until, null);
});

const MEMBER = {
  ...GRACE,
  suspension: null,
  last_seen_at: null,
  application: null,
  invited_by: null,
  invited: [],
  posts: 1,
  comments: 1200,
  images: 0,
  files: 0,
  open_reports: 1,
  closed_reports: 2,
};

test("what is known of a member is in sentences", () => {
  assert.deepEqual(factsOf(MEMBER), [
    "Never signed in.",
    "Has 1 post, 1,200 comments, 0 images and 0 files.",
    "1 open report, 2 closed ones.",
  ]);
});

test("who invited a member is told, and whom the member invited", () => {
  const facts = factsOf({ ...MEMBER, invited_by: "morgan", invited: ["ada", "grace"] });
  assert.ok(facts.includes("Invited by morgan."));
  assert.ok(facts.includes("Has invited ada, grace."));
});

test("a suspension has its time and its reason", () => {
  const since = "2026-11-21T09:30:00.125Z";
  const [forever] = factsOf({ ...MEMBER, suspension: { reason: null, since, until: null } });
  assert.match(forever, /^Suspended since .*2026, until a moderator lifts it\.$/);
  const until = "2026-11-28T09:30:00.125Z";
  const [week] = factsOf({ ...MEMBER, suspension: { reason: "Advertising.", since, until } });
  assert.match(week, /^Suspended since .*2026, until .*2026\. Reason: Advertising\.$/);
});
