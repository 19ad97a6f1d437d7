// A program that uses the API by types that are generated from its OpenAPI document.

import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const { POSTING_URL: baseUrl, POSTING_TOKEN: token } = process.env;
const client = createClient<paths>({ baseUrl: baseUrl!, headers: { Authorization: `Bearer ${token}` } });

function check(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

const me = await client.GET("/users/me");
check(me.data?.username === "ada", "the token is of ada");

for (let number = 0; number < 5; number++) {
  const { data, response } = await client.POST("/posts", {
    body: { title: `Post ${number}`, content: number % 2 ? "They weave algebra." : "They weave cloth." },
    params: { header: { "Idempotency-Key": `post-${number}` } },
  });
  check(response.status === 201 && data!.author?.id === me.data.id, "a post is created");
}

// All pages of the list, by the cursor in the Link header.
const titles: string[] = [];
let cursor: string | undefined;
do {
  const { data, response } = await client.GET("/posts", { params: { query: { limit: 2, cursor } } });
  check(data !== undefined, "a page is read");
  titles.push(...data.map((post) => post.title));
  const link = /<([^>]+)>; rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
  cursor = link ? (new URL(link).searchParams.get("cursor") ?? undefined) : undefined;
} while (cursor);
check(titles.length === 5 && new Set(titles).size === 5, `each post is listed once: ${titles}`);

const found = await client.GET("/posts", { params: { query: { q: '"weave alg*" algebra', expand: ["content"] } } });
check(found.data?.length === 0, "a phrase has whole words");
const algebra = await client.GET("/posts", { params: { query: { q: "WEAVE alg*", expand: ["content", "images"] } } });
check(algebra.data?.length === 2 && algebra.data[0]!.content === "They weave algebra.", "posts are found");
check(algebra.data[0]!.images?.length === 0, "posts have what the request asks for");
// @ts-expect-error There is no such field to add.
check((await client.GET("/posts", { params: { query: { expand: ["comments"] } } })).response.status === 422, "422");

// A later version may have further codes.
function advice(code: string): string {
  switch (code) {
    case "invalid_input":
      return "correct";
    case "token_not_allowed":
      return "sign in";
    default:
      return "give up";
  }
}

const invalid = await client.POST("/posts", { body: { title: "", content: " " } });
check(invalid.error !== undefined && advice(invalid.error.code) === "correct", "a code is typed");
const codes = invalid.error.errors?.map((error) => `${error.pointer} ${error.code}`).sort();
check(codes?.join() === "/content blank,/title too_short", `errors have codes: ${codes}`);
const refused = await client.GET("/tokens");
check(refused.error !== undefined && advice(refused.error.code) === "sign in", "a token is refused");
// @ts-expect-error A post has a title.
check((await client.POST("/posts", { body: { content: "x" } })).response.status === 422, "422");

console.log("done");
