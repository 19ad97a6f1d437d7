import assert from "node:assert/strict";
import test from "node:test";

import { MAX_NEW, progressOf } from "../../posting/static/readings.js";

const SEEN = { up_to: "a", until: "2026-06-01T12:00:00.000Z", latest: "e", new: ["b", "c", "d"] };

test("at the first visit, what is there counts as seen", () => {
  assert.equal(progressOf({ up_to: null, until: null, latest: "e", new: [] }, []), "e");
});

test("a post without comments counts as seen itself", () => {
  assert.equal(progressOf({ up_to: null, until: null, latest: null, new: [] }, []), null);
});

test("after all new comments were shown, the latest one counts, also one's own", () => {
  assert.equal(progressOf(SEEN, ["b", "c", "d"]), "e");
});

test("a comment that was not shown stays new, and those after it", () => {
  assert.equal(progressOf(SEEN, ["b", "d"]), "b");
  assert.equal(progressOf(SEEN, ["c", "d"]), "a");
  assert.equal(progressOf(SEEN, []), "a");
});

test("what was deleted does not move the place back", () => {
  assert.equal(progressOf({ ...SEEN, latest: null, new: [] }, []), "a");
});

test("after a list that may not be whole, its last comment counts", () => {
  const ids = Array.from({ length: MAX_NEW }, (_, index) => `${index}`);
  assert.equal(progressOf({ ...SEEN, new: ids }, ids), "99");
});
