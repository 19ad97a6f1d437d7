import assert from "node:assert/strict";
import test from "node:test";

import { differenceOf } from "../../posting/static/typing.js";

for (const [before, after, start, end, text] of [
  ["a word here", "a **word** here", 2, 6, "**word**"],
  ["one", "one two", 3, 3, " two"],
  ["one two", "one", 3, 7, ""],
  ["aa", "aaa", 2, 2, "a"],
  ["aaa", "aa", 2, 3, ""],
  ["", "one", 0, 0, "one"],
  // Emoji whose first or second code units are the same are not split.
  ["![😀](x)![😁](y)", "![😁](y)", 2, 10, ""],
  ["a😀b", "a😁b", 1, 3, "😁"],
  ["a\u{1f600}b", "a\u{1fa00}b", 1, 3, "\u{1fa00}"],
]) {
  test(`from ${JSON.stringify(before)} to ${JSON.stringify(after)}`, () => {
    const difference = differenceOf(before, after);
    assert.equal(
      before.slice(0, difference.start) + difference.text + before.slice(difference.end),
      after,
    );
    assert.deepEqual(difference, { start, end, text });
  });
}
