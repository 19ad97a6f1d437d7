import assert from "node:assert/strict";
import test from "node:test";

import { progressOf } from "../../posting/static/readings.js";

const SEEN = { up_to: "a", until: "2026-06-01T12:00:00.000Z", latest: "e", new: ["b", "c", "d"] };

test("at the first visit, what is there counts as seen", () => {
  const seen = { up_to: null, until: null, latest: "e", new: [] };
  assert.deepEqual(progressOf(seen, []), { upTo: "e", later: [] });
});

test("a post without comments counts as seen itself", () => {
  const seen = { up_to: null, until: null, latest: null, new: [] };
  assert.deepEqual(progressOf(seen, []), { upTo: null, later: [] });
});

test("after all new comments were shown, the latest one counts, also one's own", () => {
  assert.deepEqual(progressOf(SEEN, ["b", "c", "d"]), { upTo: "e", later: [] });
});

test("a comment that was not shown stays new, and those after it", () => {
  assert.deepEqual(progressOf(SEEN, ["b", "d"]), { upTo: "b", later: ["d"] });
  assert.deepEqual(progressOf(SEEN, ["c", "d"]), { upTo: "a", later: ["c", "d"] });
  assert.deepEqual(progressOf(SEEN, []), { upTo: "a", later: [] });
});

test("what was deleted does not move the place back", () => {
  assert.deepEqual(progressOf({ ...SEEN, latest: null, new: [] }, []), { upTo: "a", later: [] });
});
