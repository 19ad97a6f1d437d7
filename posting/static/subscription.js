// Following and muting a post: two buttons, of which one at most is pressed.

import { me } from "./account.js";
import { onAction } from "./actions.js";
import { request } from "./api.js";
import { all } from "./dom.js";
import { gettext } from "./language.js";
import { say } from "./status.js";

const SAID = {
  all: gettext("You follow this post: every comment on it comes to your inbox."),
  muted: gettext("This post is muted: nothing about it comes to your inbox."),
  default: gettext("This post is neither followed nor muted."),
};

/** @type {string | null} what the reader has chosen, or null while it is not known */
let level = null;

const buttons = () => all(document, "[data-action=subscribe]");

/** Show what the reader has chosen about the post. Its author is notified of all comments anyway. */
export function showSubscription() {
  for (const button of buttons()) {
    const { author } = button.closest("[data-author]").dataset;
    button.hidden = level === null || (author === me?.id && button.dataset.level === "all");
    button.setAttribute("aria-pressed", String(button.dataset.level === level));
  }
}

/** Ask what the reader has chosen. Without an answer, there are no buttons. */
async function find() {
  const [button] = buttons();
  if (me === null || level !== null || !button) return;
  const { data } = await request("GET", button.dataset.url);
  level = data.level;
  showSubscription();
}

onAction("subscribe", async ({ dataset }) => {
  if (dataset.level === level) {
    await request("DELETE", dataset.url);
    level = "default";
  } else {
    const { data } = await request("PUT", dataset.url, { body: { level: dataset.level } });
    level = data.level;
  }
  showSubscription();
  say(SAID[level]);
});

document.addEventListener("account", () => find().catch(() => {}));
