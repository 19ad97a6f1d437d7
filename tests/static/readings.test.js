import assert from "node:assert/strict";
import test from "node:test";

import { isNew, readingOf, withShown } from "../../posting/static/readings.js";

const [ONE, TWO, THREE, FOUR] = [1, 2, 3, 4].map((day) => `2026-06-0${day}T12:00:00.000Z`);

test("at the first visit, what is there counts as read", () => {
  const reading = readingOf(undefined, TWO);
  assert.deepEqual(
    [ONE, TWO, THREE].map((time) => isNew(reading, time)),
    [false, false, true],
  );
});

test("after a visit without comments, the first one is new", () => {
  const reading = withShown(readingOf(undefined, ONE), [], true);
  assert.deepEqual(reading, [ONE]);
  assert.ok(isNew(reading, TWO));
});

test("what an earlier version has stored is kept", () => {
  assert.ok(isNew(readingOf(ONE, THREE), TWO));
  assert.ok(isNew(readingOf("", THREE), ONE)); // after a visit without comments
});

test("a comment on a page that was not shown stays new", () => {
  const reading = withShown([ONE], [THREE], false);
  assert.deepEqual(
    [TWO, THREE, FOUR].map((time) => isNew(reading, time)),
    [true, false, true],
  );
});

test("after a page with all comments, they all count as read", () => {
  assert.deepEqual(withShown([ONE, THREE], [ONE, TWO, THREE, FOUR], true), [FOUR]);
  assert.deepEqual(withShown([FOUR], [ONE], true), [FOUR]);
});

test("a comment without a time is not new", () => {
  assert.ok(!isNew([""], ""));
  assert.ok(!isNew([ONE], ""));
});

test("what is stored has a limit", () => {
  const times = Array.from({ length: 600 }, (_, index) => `2026-06-02T12:00:00.${index + 100}Z`);
  const reading = withShown([ONE], times, false);
  assert.equal(reading.length, 500);
  assert.ok(times.every((time) => !isNew(reading, time)));
});
