import assert from "node:assert/strict";
import test from "node:test";

import { dateOf, inUnits, secondsTo } from "../../posting/static/times.js";

const MINUTE = 60;
const DAY = 86_400;

for (const [seconds, expected] of [
  [0, [0, "second"]],
  [-59, [-59, "second"]],
  [-MINUTE, [-1, "minute"]],
  [-(2 * MINUTE - 1), [-1, "minute"]],
  [-DAY, [-1, "day"]],
  [-6 * DAY, [-6, "day"]],
  [-7 * DAY, [-1, "week"]],
  [-30 * DAY, [-1, "month"]],
  [-365 * DAY, [-1, "year"]],
  [364 * DAY, [12, "month"]],
]) {
  test(`${seconds} seconds are ${expected.join(" ")}`, () => {
    assert.deepEqual(inUnits(seconds), expected);
  });
}

test("what has happened is not in the future for a slow clock", () => {
  assert.equal(secondsTo(540_000, 0, false), 0);
  assert.equal(secondsTo(0, 540_000, false), -540);
  assert.equal(secondsTo(540_000, 0, true), 540);
});

test("a date has its day, and no time", () => {
  const date = dateOf("2026-06-15T12:00:00.000Z");
  assert.match(date, /15/);
  assert.match(date, /2026/);
  assert.doesNotMatch(date, /:/);
});
