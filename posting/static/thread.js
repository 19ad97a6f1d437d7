// Comments: replies and edits in place, and links to comments on other pages.

import { me, showActions } from "./account.js";
import { onAction, press } from "./actions.js";
import { request, versionOf } from "./api.js";
import { all, copyOf, first } from "./dom.js";
import { draftName, forgetDraft, restoreDraft } from "./drafts.js";
import "./forms.js";
import "./main.js";
import { ready, root } from "./page.js";
import { read } from "./storage.js";

/** @type {WeakMap<HTMLFormElement, HTMLElement>} the button that opened a form */
const openers = new WeakMap();

const idOf = (comment) => comment.id.slice("c-".length);
const commentOf = (element) => element.closest("li[id^=c-]");

let shownFor; // the member whose actions the comments have

/** Show what the reader may do with each comment. What has the focus keeps it if that is the same. */
function showAllActions() {
  const reader = me && `${me.id} ${me.role}`;
  if (reader === shownFor) return;
  shownFor = reader;
  for (const comment of all(document, ".thread > li")) showCommentActions(comment);
}

function showCommentActions(comment) {
  first(comment, ".actions")?.remove();
  if (!me || first(comment, ".deleted")) return;
  const actions = copyOf("comment-actions");
  first(actions, "[data-api]").dataset.url = `${root}/comments/${idOf(comment)}`;
  showActions(actions, comment.dataset.author);
  const meta = first(comment, ".meta");
  meta.id = `${comment.id}-meta`;
  for (const button of all(actions, "button")) button.setAttribute("aria-describedby", meta.id);
  first(comment, "article").append(actions);
}

/** Open a form below the comment of a button, after `fill` has filled it. */
function openForm(template, button, fill) {
  first(document, ".opened")?.remove();
  const form = copyOf(template);
  form.classList.add("opened");
  openers.set(form, button);
  fill(form);
  first(commentOf(button), "article").append(form);
  restoreDraft(form);
  // To discard the text of this form is to close it.
  first(form, "[data-action=discard]")?.setAttribute("data-action", "cancel");
  first(form, "textarea").focus();
}

onAction("reply", (button) => {
  openForm("reply-form", button, (form) => {
    form.elements.parent_id.value = idOf(commentOf(button));
  });
});

onAction("edit", async (button) => {
  const comment = commentOf(button);
  const url = `${root}/comments/${idOf(comment)}`;
  const { data, etag } = await request("GET", url);
  openForm("edit-form", button, (form) => {
    form.action = url;
    form.dataset.version = versionOf(etag);
    form.dataset.next =
      form.dataset.current = `${location.pathname}${location.search}#${comment.id}`;
    form.elements.content.value = data.content;
  });
});

onAction("cancel", ({ form }) => {
  const comment = commentOf(form);
  const opener = openers.get(form);
  forgetDraft(form);
  form.remove();
  // The buttons are new if the session has changed.
  (opener.isConnected ? opener : first(comment, ".actions button, .meta a")).focus();
});

/** Open a reply or an edit that was not sent. */
function reopenForm() {
  if (location.hash) return; // the reader wants to see another comment
  const post = location.pathname.slice(`${root}/p/`.length);
  for (const button of all(document, ".thread [data-action=reply], .thread [data-action=edit]")) {
    const id = idOf(commentOf(button));
    const name =
      button.dataset.action === "reply"
        ? draftName(`${root}/posts/${post}/comments`, id)
        : draftName(`${root}/comments/${id}`);
    if (!button.hidden && read(name)) return press(button);
  }
}

/** Show the comment that the fragment names, which may be on another page of the thread. */
async function findComment() {
  const [, id] = /^#c-([\w-]{21})$/.exec(location.hash) ?? [];
  if (!id || document.getElementById(`c-${id}`)) return;
  const { data } = await request("GET", `${root}/comments/${id}`);
  const cursor = `${data.post_id}.${Date.parse(data.created_at) - 1}.${"-".repeat(21)}`;
  location.replace(`${root}/p/${data.post_id}?cursor=${cursor}${location.hash}`);
}

document.addEventListener("account", showAllActions);
const find = () => findComment().catch(() => {}); // there may be no such comment
addEventListener("hashchange", find);
ready(() => {
  showAllActions();
  find();
  reopenForm();
});
