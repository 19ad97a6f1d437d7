// A program that checks what it sends and receives with schemas of zod, which orval generates from the OpenAPI document.

import * as api from "./api.js";

const { POSTING_URL: baseUrl, POSTING_PASSWORD: password } = process.env;
let cookie = "";

function check(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

async function send(method: string, path: string, body?: object): Promise<any> {
  const isForm = body instanceof FormData;
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { cookie, ...(body && !isForm ? { "Content-Type": "application/json" } : {}) },
    ...(body ? { body: isForm ? body : JSON.stringify(body) } : {}),
  });
  check(response.ok, `${method} ${path} is ${response.status}: ${response.ok || (await response.text())}`);
  cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? cookie;
  return response.json();
}

function search(query: object): URLSearchParams {
  return new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
}

const account = api.signUpBody.parse({ username: "zoe", password, bio: "I weave." });
api.signUp201Response.parse(await send("POST", "/signup", account));
const credentials = api.signInBody.parse({ username: "zoe", password });
const { id: user } = api.signIn200Response.parse(await send("POST", "/signin", credentials));
const me = api.getMe200Response.parse(await send("GET", "/users/me"));
check(me.id === user && me.role === "member", "an account is read");
const change = api.editUserBody.parse({ display_name: "Zoë" });
check(api.editUser200Response.parse(await send("PATCH", `/users/${user}`, change)).display_name === "Zoë", "it is edited");
const name = api.listUsersQueryParams.parse({ username: "ZOE" });
check(api.listUsers200Response.parse(await send("GET", `/users?${search(name)}`)).length === 1, "it is found");

const text = api.createPostBody.parse({ title: "On engines", content: "They *weave* algebra." });
const post = api.createPost201Response.parse(await send("POST", "/posts", text));
check(!api.createPostBody.safeParse({ title: "On engines", content: " \u200b" }).success, "blank text is refused");
const edit = api.editPostBody.parse({ title: "On looms" });
check(api.editPost200Response.parse(await send("PATCH", `/posts/${post.id}`, edit)).title === "On looms", "it is edited");

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const upload = api.createImageBody.parse({ file: new File([Buffer.from(pixel, "base64")], "a.png"), alt: "A loom" });
const form = new FormData();
form.set("file", upload.file);
form.set("alt", upload.alt ?? "");
const image = api.createImage201Response.parse(await send("POST", `/posts/${post.id}/images`, form));
check(image.media_type === "image/png", "an image is added");
api.editImage200Response.parse(await send("PATCH", `/images/${image.id}`, api.editImageBody.parse({ alt: null })));

const reply = api.createCommentBody.parse({ content: "And *cloth*?", parent_id: null });
const comment = api.createComment201Response.parse(await send("POST", `/posts/${post.id}/comments`, reply));
api.getComment200Response.parse(await send("GET", `/comments/${comment.id}`));
check(api.listComments200Response.parse(await send("GET", `/posts/${post.id}/comments`)).length === 1, "comments are listed");

const query = api.listPostsQueryParams.parse({ limit: 5, author: user, expand: ["content", "images"] });
check(!api.listPostsQueryParams.safeParse({ expand: ["comments"] }).success, "an unknown name is refused");
const [first] = api.listPosts200Response.parse(await send("GET", `/posts?${search(query)}`));
check(first?.content === text.content && first.images?.length === 1, "posts are listed with content and images");
check(api.getPost200Response.parse(await send("GET", `/posts/${post.id}`)).comment_count === 1, "a post is read");

const request = api.createTokenBody.parse({ name: "zod", scope: "read", expires_at: undefined });
check(api.createToken201Response.parse(await send("POST", "/tokens", request)).scope === "read", "a token is created");
check(!api.createTokenBody.safeParse({ name: "zod", scope: "all" }).success, "an unknown scope is refused");
api.listTokens200Response.parse(await send("GET", "/tokens"));
check(api.listSessions200Response.parse(await send("GET", "/sessions"))[0]?.current === true, "sessions are listed");
api.preview200Response.parse(await send("POST", "/preview", api.previewBody.parse({ content: "*cloth*" })));
api.checkReadiness200Response.parse(await send("GET", "/readyz"));

// A later version may know more values, and have more fields.
api.getMe200Response.parse({ ...me, role: "owner", pronouns: "she" });
api.createImage201Response.parse({ ...image, media_type: "image/avif" });

console.log("done");
