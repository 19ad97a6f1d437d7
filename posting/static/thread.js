// A post and its comments: replies, edits and deletions in place, and links to other pages.

import { me, showReader } from "./account.js";
import { onAction, press } from "./actions.js";
import { request, versionOf } from "./api.js";
import { sendRequest } from "./buttons.js";
import { all, copyOf, first, onEvent } from "./dom.js";
import { listDrafts, restoreDraft } from "./drafts.js";
import { isChanged } from "./fields.js";
import { showFolds } from "./folds.js";
import { onForm } from "./forms.js";
import "./main.js";
import { linkTo } from "./offers.js";
import { goTo, ready, root } from "./page.js";
import { markNew, nextNew } from "./seen.js";
import { say, sayNext } from "./status.js";
import { showSubscription } from "./subscription.js";
import "./text.js";
import { showTimes } from "./times.js";
import { count } from "./words.js";

/** @type {WeakMap<HTMLFormElement, HTMLElement>} the button that opened a form */
const openers = new WeakMap();

const idOf = (comment) => comment.id.slice("c-".length);
const commentOf = (element) => element.closest("li[id^=c-]");
const comments = () => all(document, ".thread > li");
const openedForm = () => first(document, ".opened");
const post = location.pathname.slice(`${root}/p/`.length);
const urlOf = (id) => `${root}/p/${post}?comment=${id}#c-${id}`;

let shownFor; // the member whose actions the comments have

/** Show what the reader may do with each comment. What has the focus keeps it if that is the same. */
function showAllActions() {
  const reader = me && `${me.id} ${me.role}`;
  if (reader === shownFor) return;
  shownFor = reader;
  for (const comment of comments()) showActions(comment);
}

function showActions(comment) {
  for (const button of all(comment, ".own")) button.remove();
  const place = first(comment, ".actions");
  if (!place) return;
  const isAuthor = me !== null && comment.dataset.by === me.id;
  for (const button of [...copyOf("comment-actions").children]) {
    if (!isAuthor && (button.dataset.action === "edit" || me?.role !== "moderator")) continue;
    if (button.dataset.api) button.dataset.url = `${root}/comments/${idOf(comment)}`;
    place.insertBefore(button, first(place, "[data-action=fold]"));
  }
  const by = first(comment, ".meta");
  by.id = `${comment.id}-by`;
  for (const action of place.children) action.setAttribute("aria-describedby", by.id);
}

/** Open a form below the comment of a button, after `fill` has filled it. */
function openForm(template, button, fill) {
  openedForm()?.remove();
  const form = copyOf(template);
  form.classList.add("opened");
  openers.set(form, button);
  fill(form);
  first(commentOf(button), "article").append(form);
  restoreDraft(form);
  return form;
}

const focusText = (form) => first(form, "textarea").focus();

function openReply(link) {
  return openForm("reply-form", link, (form) => {
    form.elements.parent_id.value = idOf(commentOf(link));
  });
}

async function openEdit(button) {
  const id = idOf(commentOf(button));
  const url = `${root}/comments/${id}`;
  const { data, etag } = await request("GET", url);
  return openForm("edit-form", button, (form) => {
    form.action = url;
    form.dataset.version = versionOf(etag);
    form.dataset.current = urlOf(id);
    form.elements.content.defaultValue = data.content;
  });
}

onAction("reply", (link) => (me ? focusText(openReply(link)) : goTo(link.href)));
onAction("edit", async (button) => focusText(await openEdit(button)));
onAction("cancel", ({ form }) => close(form));

/** Close a form. Its text is kept as a draft. */
function close(form) {
  const comment = commentOf(form);
  const opener = openers.get(form);
  form.remove();
  // The buttons are new if the session or the page has changed.
  (opener.isConnected ? opener : first(comment, ".actions a, .meta a")).focus();
  if (isChanged(form)) say("Your text is kept.", linkTo("Unsent texts", `${root}/unsent`));
}

onEvent("keydown", (target, event) => {
  const form = event.key === "Escape" && !event.isComposing && target.closest(".opened");
  if (form) close(form);
});

onForm("comment", {
  async sent(form, data) {
    const id = `c-${data.id}`;
    if (form === openedForm()) form.remove();
    form.reset();
    first(form, ".back")?.remove();
    await showChange("Your comment is published.", [id], urlOf(data.id));
  },
});

onForm("edit-comment", {
  async sent(form, data) {
    form.remove();
    await showChange("Your edit is saved.", [`c-${data.id}`], urlOf(data.id));
  },
});

onAction("delete-comment", async (button) => {
  const comment = commentOf(button);
  const ids = [comment.id, comment.previousElementSibling?.id, "comment-count"];
  if (await sendRequest(button)) await showChange("The comment is deleted.", ids);
});

onAction("delete-image", async (button) => {
  if (await sendRequest(button)) await showChange("The image is deleted.", ["images", "title"]);
});

onAction("delete-post", async (button) => {
  if (!(await sendRequest(button))) return;
  sayNext("The post is deleted.");
  goTo(`${root}/`);
});

/**
 * Show the page as it is now, with the focus on what has changed.
 * @param {string} text what is said about it
 * @param {string[]} ids of elements, of which the first that is there gets the focus
 * @param {string} [url] where it is if it is not on this page
 */
async function showChange(text, ids, url = location.href) {
  try {
    await refresh();
    const shown = ids.map((id) => document.getElementById(id)).find(Boolean);
    shown.tabIndex = -1;
    shown.focus();
    say(text);
  } catch {
    sayNext(text);
    goTo(url);
  }
}

/** Replace the parts of the page that may have changed. A form that is open stays so. */
async function refresh() {
  const response = await fetch(location.pathname + location.search);
  if (!response.ok) throw new Error(response.statusText);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const form = openedForm();
  const home = form && commentOf(form).id;
  for (const id of ["post", "threads", "images"]) {
    const part = page.getElementById(id);
    const former = document.getElementById(id);
    if (!part || !former) {
      former?.remove();
      continue;
    }
    former.replaceWith(part);
    part.toggleAttribute("open", former.hasAttribute("open"));
    showTimes(part);
  }
  showReader(document);
  showSubscription();
  showComments();
  if (form) document.getElementById(home)?.querySelector("article")?.append(form);
}

/** Show what the script adds to the comments. */
function showComments() {
  shownFor = undefined;
  showFolds();
  showAllActions();
  markNew(comments(), me?.id);
}

onAction("next-new", () => nextNew()?.focus());

/** Offer a reply or an edit that was not sent again, with the focus if the URL names its comment. */
async function offerDrafts() {
  if (!me) return;
  const buttons = listDrafts().flatMap(({ path, parent }) => {
    const id = parent ?? path.slice(`${root}/comments/`.length);
    const comment = document.getElementById(`c-${id}`);
    return comment ? all(comment, `[data-action=${parent ? "reply" : "edit"}]`) : [];
  });
  if (buttons.length === 0) return;
  const target = decodeURIComponent(location.hash.slice(1));
  const button = buttons.find((each) => commentOf(each).id === target);
  if (button) return press(button);
  if (buttons[0].dataset.action === "reply") openReply(buttons[0]);
  else await openEdit(buttons[0]).catch(() => null);
  const text = `You have ${count(buttons.length, "unsent text")} for this page.`;
  say(text, linkTo("Unsent texts", `${root}/unsent`));
}

/** Go to the page with the comment that the fragment names. */
function findComment() {
  const [, id] = /^#c-([\w-]{21})$/.exec(location.hash) ?? [];
  const isAsked = new URLSearchParams(location.search).get("comment") === id;
  if (id && !isAsked && !document.getElementById(`c-${id}`)) location.replace(urlOf(id));
}

document.addEventListener("account", showAllActions);
addEventListener("hashchange", findComment);
ready(() => {
  showComments();
  findComment();
  offerDrafts();
});
