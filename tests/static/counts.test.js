import assert from "node:assert/strict";
import test from "node:test";

import { isDue, numberOf, titleWith } from "../../posting/static/counts.js";

for (const [count, expected] of [
  [0, ""],
  [1, "1"],
  [99, "99"],
  [100, "99+"],
]) {
  test(`a count of ${count} is shown as "${expected}"`, () => {
    assert.equal(numberOf(count), expected);
  });
}

test("a title has the number in front", () => {
  assert.equal(titleWith("Elm Street", "99+"), "(99+) Elm Street");
  assert.equal(titleWith("Elm Street", ""), "Elm Street");
});

for (const [what, seconds, expected] of [
  ["not asked for within a minute", 59, false],
  ["asked for after a minute", 60, true],
  ["asked for after a time when the clock was slightly ahead", -1, false],
  ["asked for after a time when the clock was wrong", -3600, true],
]) {
  test(`the count is ${what}`, () => {
    const now = Date.UTC(2026, 0, 1);
    assert.equal(isDue(now - seconds * 1000, now), expected);
  });
}
