import assert from "node:assert/strict";
import test from "node:test";

import { newKey, nextOf, request, result, versionOf } from "../../posting/static/api.js";
import { Problem } from "../../posting/static/problem.js";

/** Return the problem that a function throws. */
async function problemOf(call) {
  try {
    await call();
  } catch (problem) {
    assert.ok(problem instanceof Problem);
    return problem;
  }
  assert.fail("It throws nothing.");
}

const problem = (status, body) => problemOf(() => result(status, JSON.stringify(body), null));

test("a response has its data and its ETag", () => {
  const { data, etag } = result(201, '{"id": "x"}', '"3"');
  assert.deepEqual(data, { id: "x" });
  assert.equal(versionOf(etag), "3");
});

test("an empty response has no data", () => {
  assert.equal(result(204, "", null).data, null);
});

test("a problem has the details of the service", async () => {
  const errors = [{ pointer: "/title", code: "blank", detail: "Must not be blank." }];
  const found = await problem(422, { detail: "Invalid input.", code: "invalid_input", errors });
  assert.equal(found.message, "Invalid input.");
  assert.equal(found.status, 422);
  assert.deepEqual(found.errors, errors);
});

test("some codes are said in other words", async () => {
  const found = await problem(412, { detail: "If-Match", code: "stale_version" });
  assert.equal(found.message, "It has been changed since you opened it.");
});

test("a page of a proxy is a problem too", async () => {
  const found = await problemOf(() => result(502, "<h1>Bad Gateway</h1>", null));
  assert.equal(found.message, "Something went wrong. Try again.");
});

for (const [method, options, message] of [
  ["GET", {}, "There is no connection. Try again."],
  ["POST", { body: {} }, "There is no connection. Try again."],
  ["POST", { task: "write" }, "There is no connection. Your text is kept; try again."],
  ["DELETE", {}, "There is no connection, so nothing was deleted. Try again."],
  ["POST", { task: "image" }, "There is no connection, so the image was not sent. Try again."],
]) {
  test(`a ${method} without a response says: ${message}`, async () => {
    const found = await problemOf(() => request(method, "http://127.0.0.1:1/", options));
    assert.equal(found.status, 0);
    assert.equal(found.message, message);
  });
}

test("an ETag may be weak", () => {
  assert.equal(versionOf('W/"12"'), "12");
});

test("a list names its next page", () => {
  const link = '<https://example.org/community/posts?cursor=x%3D&limit=2>; rel="next"';
  assert.equal(nextOf(link), "/community/posts?cursor=x%3D&limit=2");
  for (const none of [null, undefined, "", '<https://example.org/>; rel="prev"'])
    assert.equal(nextOf(none), null);
});

test("keys differ", () => {
  const keys = new Set(Array.from({ length: 100 }, newKey));
  assert.equal(keys.size, 100);
  for (const key of keys) assert.match(key, /^[0-9a-f]{32}$/);
});
