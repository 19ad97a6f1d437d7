import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import test from "node:test";

import { newKey, nextOf, request, result, tagOf, versionOf } from "../../posting/static/api.js";
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
  assert.equal(tagOf(etag), "3");
  assert.equal(tagOf('W/"5f2c9d7a41e0b388"'), "5f2c9d7a41e0b388");
});

test("an empty response has no data", () => {
  assert.equal(result(204, "", null).data, null);
});

test("a problem has its status and its errors", async () => {
  const errors = [{ pointer: "/title", code: "blank", detail: "Must not be blank." }];
  const found = await problem(422, { detail: "Invalid input.", code: "invalid_input", errors });
  assert.equal(found.status, 422);
  assert.deepEqual(found.errors, errors);
});

test("a code is said in words for people", async () => {
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

/** Return the number of requests that a server gets which is busy for the first of them. */
async function countRequests(busyFor, code) {
  let count = 0;
  const server = createServer((_, response) => {
    count++;
    const status = count <= busyFor ? 503 : 200;
    response.writeHead(status, { "Retry-After": "0.01", Connection: "close" });
    response.end(JSON.stringify({ code, detail: "x" }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}/`;
  const problem = await request("POST", url, { body: {} }).then(
    () => null,
    (problem) => problem.status,
  );
  server.close();
  return [count, problem];
}

test("a request is repeated while too many others hash passwords", async () => {
  assert.deepEqual(await countRequests(2, "busy"), [3, null]);
  assert.deepEqual(await countRequests(9, "busy"), [5, 503]);
  assert.deepEqual(await countRequests(2, "database_busy"), [1, 503]);
});
