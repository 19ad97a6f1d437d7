import assert from "node:assert/strict";
import test from "node:test";

import { explainError, explainProblem } from "../../posting/static/words.js";

test("an error has words for its field, or for its code alone", () => {
  assert.equal(explainError({ code: "required" }, "title"), "Give your post a title.");
  assert.equal(explainError({ code: "required" }, "bio"), "Write something here.");
});

test("of an unknown code, no English detail is shown", () => {
  const problem = { code: "new", detail: "This is new." };
  assert.equal(explainError(problem, "title"), "Something went wrong. Try again.");
  assert.equal(explainProblem(problem, "write"), "Something went wrong. Try again.");
  assert.equal(explainProblem({}, "write"), "Something went wrong. Try again.");
});

test("a problem has words for its task, or for its code alone", () => {
  const problem = { code: "content_too_large" };
  assert.match(explainProblem(problem, "image"), /^This image is too large\./);
  assert.match(explainProblem(problem, "write"), /^This is too long to be sent\./);
});

test("a suspension has its end and its reason, if there is one", () => {
  const explain = (reason, until) =>
    explainProblem({ code: "suspended", detail: "It is suspended.", reason, until }, "other");
  const forever = "Your account is suspended. Ask the people who run this community.";
  const reason = "Advertising.\nAgain.";
  const week = "2026-12-05T09:30:00.125Z";
  assert.equal(explain(null, null), forever);
  assert.equal(explain(reason, null), `${forever} Reason: ${reason}`);
  assert.match(explain(null, week), /^Your account is suspended until [^T]*2026[^T]*\.$/);
  assert.match(explain(reason, week), /2026[^T]*\. Reason: Advertising\.\nAgain\.$/);
});

test("what exceeds a limit is counted", () => {
  assert.equal(
    explainError({ code: "too_long", excess: 1 }, "bio"),
    "This is 1 character too long.",
  );
  assert.equal(explainError({ code: "too_short", least: 8 }), "Use at least 8 characters.");
});

test("a number has its limits named", () => {
  const error = { code: "out_of_range", range: ["1", "100"] };
  assert.equal(explainError(error, "uses"), "Type a number from 1 to 100.");
});
