// How many comments are new to a member on each post of a list, with a link to the first of them.

import { me } from "./account.js";
import { numberOf } from "./counts.js";
import { all } from "./dom.js";
import { ngettext } from "./language.js";
import { root } from "./page.js";

const COMMENTS = "#comments"; // the end of a link to the comments on a post
const TIMEOUT = 30_000; // milliseconds

/** Return the links of the lists on this page to the comments on posts, by the ids of the posts. */
const links = () =>
  new Map(
    all(document, `.posts a[href$="${COMMENTS}"]`).map((link) => [
      new URL(link.href).pathname.split("/").at(-1),
      link,
    ]),
  );

function hide() {
  for (const news of all(document, ".posts .news")) news.remove();
}

/** Show what is new. Without a connection, nothing is shown. */
async function showNews() {
  if (!me) return hide();
  const shown = links();
  if (shown.size === 0) return;
  const reader = me.id;
  const options = { signal: AbortSignal.timeout(TIMEOUT) };
  const response = await fetch(`${root}/seen?ids=${[...shown.keys()].join()}`, options);
  if (!response.ok) return;
  const posts = await response.json();
  if (me?.id !== reader) return; // they have signed out meanwhile
  hide();
  for (const post of posts) {
    if (post.new === 0) continue;
    const link = document.createElement("a");
    link.href = `${root}/p/${post.id}?comment=${post.first}#c-${post.first}`;
    const title = shown.get(post.id).closest("article").querySelector("h2, h3").textContent;
    const values = { num: numberOf(post.new), title };
    link.textContent = ngettext("%(num)s new", "%(num)s new", post.new, values);
    const label = ngettext(
      "%(num)s new in %(title)s",
      "%(num)s new in %(title)s",
      post.new,
      values,
    );
    link.setAttribute("aria-label", label);
    link.className = "news";
    shown.get(post.id).before(link, " ");
  }
}

const update = () => showNews().catch(() => {});
document.addEventListener("account", update);
update();
