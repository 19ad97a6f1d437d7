// A post and its comments: replies, edits and deletions in place, and links to other pages.

import { me, moderates, showReader } from "./account.js";
import { onAction, press } from "./actions.js";
import { request, versionOf } from "./api.js";
import {
  finishAttachments,
  hasUnsentFiles,
  showAttachments,
  withAttachments,
} from "./attaching.js";
import { sendRequest } from "./buttons.js";
import { all, copyOf, first } from "./dom.js";
import { listDrafts } from "./drafts.js";
import { showFolds } from "./folds.js";
import { onForm } from "./forms.js";
import "./gallery.js";
import { gettext, ngettext } from "./language.js";
import "./main.js";
import { linkTo } from "./offers.js";
import { focusOn, focusText, openedForm, openerOf, openForm, openQuestion } from "./opening.js";
import { goTo, ready, root } from "./page.js";
import "./reporting.js";
import { say, sayNext } from "./status.js";
import { showSubscription } from "./subscription.js";
import "./text.js";
import { showTimes } from "./times.js";

const idOf = (comment) => comment.id.slice("c-".length);
const commentOf = (element) => element.closest("li[id^=c-]");
const comments = () => all(document, ".thread > li");
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
  const url = `${root}/comments/${idOf(comment)}`;
  const actions = copyOf("comment-actions");
  for (const button of all(actions, "li > button")) {
    const { action } = button.dataset;
    if (!mayDo(action, comment)) button.parentElement.remove();
    button.dataset.url = action === "report" ? `${url}/reports` : url;
  }
  if (me) place.append(...actions.children, ...all(place, "[data-action=fold]"));
  const by = first(comment, ".meta");
  by.id = `${comment.id}-by`;
  for (const action of all(place, "a, button, summary"))
    action.setAttribute("aria-describedby", by.id);
}

/** Return whether a member may do something with a comment. Who may delete it need not report it. */
function mayDo(action, comment) {
  const isAuthor = comment.dataset.by === me?.id;
  const mayDelete = isAuthor || moderates();
  return { edit: isAuthor, "delete-comment": mayDelete, report: !mayDelete }[action];
}

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
    showAttachments(form, data);
  });
}

onAction("reply", (link) => (me ? focusText(openReply(link)) : goTo(link.href)));
onAction("edit", async (button) => focusText(await openEdit(button)));

const withFiles = { prepare: finishAttachments, toBody: withAttachments, hasFiles: hasUnsentFiles };

onForm("comment", {
  ...withFiles,
  async sent(form, data) {
    const id = `c-${data.id}`;
    if (form === openedForm()) form.remove();
    form.reset();
    first(form, ".back")?.remove();
    await showChange(gettext("Your comment is published."), [id], urlOf(data.id));
  },
});

onForm("edit-comment", {
  ...withFiles,
  async sent(form, data) {
    form.remove();
    await showChange(gettext("Your edit is saved."), [`c-${data.id}`], urlOf(data.id));
  },
});

/** Functions that show a deletion, by the action of a button that is there or was. */
const AFTER_DELETION = {
  "delete-comment": (ids) =>
    showChange(gettext("The comment is deleted."), [...ids, "comment-count"]),
  "delete-image": () => showChange(gettext("The image is deleted."), ["images", "title"]),
  "delete-file": () => showChange(gettext("The file is deleted."), ["files", "title"]),
  "delete-post"() {
    sayNext(gettext("The post is deleted."));
    goTo(`${root}/`);
  },
};

/** Return the ids of the comment that an element is in, if it is in one, and of the one before. */
function placesOf(element) {
  const comment = commentOf(element);
  return comment ? [comment.id, comment.previousElementSibling?.id] : [];
}

/** Return whether the reader has written what a button is about. */
function isOwn(button) {
  const { by, author } = button.closest("[data-by], [data-author]").dataset;
  return (by ?? author) === me?.id;
}

for (const [action, follow] of Object.entries(AFTER_DELETION))
  onAction(action, async (button) => {
    if (!isOwn(button)) return openQuestion("deletion-form", button);
    const ids = placesOf(button);
    if (await sendRequest(button)) await follow(ids);
  });

onForm("deletion", {
  async sent(form) {
    const ids = placesOf(form);
    form.remove();
    await AFTER_DELETION[openerOf(form).dataset.action](ids);
  },
});

onAction("change-post", async (button) => {
  if (await sendRequest(button)) await showChange(button.dataset.done, [button.id]);
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
    if (shown.tabIndex < 0) shown.tabIndex = -1; // so that it can have the focus
    focusOn(shown);
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
  const home = form?.parentElement.closest("[id]").id;
  for (const id of ["post", "threads", "images", "files"]) {
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
  showForMembers();
  const place = form && document.getElementById(home);
  if (place) (first(place, "article") ?? place).append(form);
}

/** Show what the script adds to the comments. */
function showComments() {
  shownFor = undefined;
  showFolds();
  showAllActions();
}

/** Mark what is new to a member. Visitors do not load what does this. */
async function markNew() {
  if (!me) return;
  const seen = await import("./seen.js");
  await seen.markNew();
}

/** Mark the reader's own reactions, and let the reader react. */
async function showReactions() {
  if (!me) return;
  const reactions = await import("./reactions.js");
  await reactions.showReactions();
}

/** Show what the service knows of the reader. Without a connection, it is left out. */
function showForMembers() {
  markNew().catch(() => {});
  showReactions().catch(() => {});
}

onAction("next-new", async () => (await import("./seen.js")).nextNew());

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
  const text = ngettext(
    "You have %(num)s unsent text for this page.",
    "You have %(num)s unsent texts for this page.",
    buttons.length,
  );
  say(text, linkTo(gettext("Unsent texts"), `${root}/unsent`));
}

/** Go to the page with the comment that the fragment names. */
function findComment() {
  const [, id] = /^#c-([\w-]{21})$/.exec(location.hash) ?? [];
  const isAsked = new URLSearchParams(location.search).get("comment") === id;
  if (id && !isAsked && !document.getElementById(`c-${id}`)) location.replace(urlOf(id));
}

document.addEventListener("account", () => {
  showAllActions();
  showForMembers();
});
addEventListener("hashchange", findComment);
ready(() => {
  showComments();
  findComment();
  offerDrafts();
});
