// Drafts: what is typed into a form with `data-draft` is kept until it is sent. Each draft has an
// id of its own. A tab that opens a draft takes it over; what is typed into it in another tab
// becomes a draft of its own, so that no tab overwrites the text of another. The two send the same
// text with the same Idempotency-Key, so that it is published once.

import { me, writer } from "./account.js";
import { onAction } from "./actions.js";
import { newKey } from "./api.js";
import { all, copyOf, first, onEvent } from "./dom.js";
import { bodyOf, isChanged } from "./fields.js";
import { gettext, ngettext } from "./language.js";
import { undoButton } from "./offers.js";
import { root } from "./page.js";
import { say } from "./status.js";
import { read, store } from "./storage.js";
import { namesOf } from "./stored.js";

/**
 * @typedef {object} Draft
 * @property {string} kind what it is, in words, such as "New post"
 * @property {string} path the path to which it is sent
 * @property {string | undefined} parent the id of the comment to which it replies
 * @property {string} page where it was typed
 * @property {Record<string, string | null>} texts by the names of the fields
 * @property {string} [version] with which an edit begins
 * @property {string} key of which the Idempotency-Keys are made
 * @property {string} at when it was typed
 * @property {string} tab which has it open
 */

const TAB = newKey();

/** @type {WeakMap<HTMLFormElement, {id: string, key: string}>} the drafts of forms */
const opened = new WeakMap();
let isFull = false;

const nameOf = (id) => `draft:${writer}:${id}`;
const pathOf = (form) => new URL(form.action).pathname;
const parentOf = (form) => form.elements.parent_id?.value;
const isNewPost = (form) => pathOf(form) === `${root}/posts`;

/** Return the draft of a form, which is a new one if it has none. */
function draftOf(form) {
  if (!opened.has(form)) opened.set(form, { id: newKey(), key: newKey() });
  return opened.get(form);
}

/**
 * Return what is stored of the draft of a form.
 * @returns {Draft}
 */
function contentOf(form) {
  const { parent_id, ...texts } = bodyOf(form);
  const { draft, version } = form.dataset;
  return {
    kind: draft,
    path: pathOf(form),
    parent: parent_id,
    page:
      location.pathname + (parent_id ? `?comment=${parent_id}#c-${parent_id}` : location.search),
    texts,
    version,
    key: draftOf(form).key,
    at: new Date().toISOString(),
    tab: TAB,
  };
}

/**
 * Return the drafts of the writer with their ids, newest first.
 * @returns {(Draft & {id: string})[]}
 */
export function listDrafts() {
  const start = nameOf("");
  const drafts = namesOf(start).map((name) => ({ id: name.slice(start.length), ...read(name) }));
  return drafts.sort((one, other) => (one.at < other.at ? 1 : -1));
}

/**
 * Return the Idempotency-Key of a form, which stays the same until the body changes.
 * @param {HTMLFormElement} form
 * @param {object} body
 */
export const keyOf = (form, body) => `${draftOf(form).key}-${digestOf(JSON.stringify(body))}`;

/** Return a digest (FNV-1a) of a text. */
function digestOf(text) {
  let digest = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    digest = Math.imul(digest ^ text.charCodeAt(index), 0x01000193);
  return (digest >>> 0).toString(16);
}

/** @param {HTMLFormElement} form */
export function keepDraft(form) {
  if (!form.dataset.draft) return;
  const draft = draftOf(form);
  const stored = read(nameOf(draft.id));
  if (stored && stored.tab !== TAB) draft.id = newKey();
  const isStored = store(nameOf(draft.id), isChanged(form) ? contentOf(form) : null);
  if (!isStored && !isFull)
    say(gettext("Your browser has no room to keep this text. Send it soon."));
  isFull = !isStored;
  const url = `${root}/write?draft=${draft.id}`;
  if (isNewPost(form) && !location.href.endsWith(url)) history.replaceState(null, "", url);
}

/**
 * Return the form of the page that has the same draft as a form that was closed, if there is one.
 * @param {HTMLFormElement} closed
 */
export const formOfDraft = (closed) =>
  [...document.forms].find((form) => opened.get(form)?.id === opened.get(closed)?.id);

/**
 * Forget the draft of a form, unless another tab has taken it over.
 * @param {HTMLFormElement} form
 */
export function forgetDraft(form) {
  const { id } = draftOf(form);
  if (read(nameOf(id))?.tab === TAB) store(nameOf(id), null);
  opened.delete(form);
}

/**
 * Return the newest draft that a form would send.
 * @param {HTMLFormElement} form
 */
const findDraft = (form) =>
  listDrafts().find(({ path, parent }) => path === pathOf(form) && parent === parentOf(form));

/**
 * Put the draft of a form into it. The form of a new post begins empty, unless its URL names one.
 * @param {HTMLFormElement} form
 */
export function restoreDraft(form) {
  if (!me || !form.dataset.draft) return;
  const drafts = listDrafts();
  const id = new URLSearchParams(location.search).get("draft");
  const draft = isNewPost(form) ? drafts.find((each) => each.id === id) : findDraft(form);
  if (draft) {
    fill(form, draft);
    first(form, ".buttons").append(copyOf("draft-notice"));
  }
  for (const link of all(document, "[data-drafts]"))
    if (drafts.length > 0)
      link.textContent = ngettext(
        "You have %(num)s unsent text",
        "You have %(num)s unsent texts",
        drafts.length,
      );
}

/**
 * Discard a draft. Return the function that brings it back.
 * @param {string} id
 */
export function discardDraft(id) {
  const draft = read(nameOf(id));
  store(nameOf(id), null);
  return () => store(nameOf(id), draft);
}

/**
 * Put a draft into a form, and take it over from the tab that had it.
 * @param {HTMLFormElement} form
 * @param {Draft & {id: string}} draft
 */
function fill(form, { id, texts, key, version }) {
  for (const [name, value] of Object.entries(texts)) {
    if (form.elements[name]) form.elements[name].value = value ?? "";
  }
  // An edit continues from the version that it began with, so that it overwrites no later one.
  if (version) form.dataset.version = version;
  opened.set(form, { id, key });
  store(nameOf(id), contentOf(form));
  form.dispatchEvent(new Event("restored", { bubbles: true }));
}

onAction("discard", (button) => {
  const { form } = button;
  const { id } = draftOf(form);
  const draft = contentOf(form);
  forgetDraft(form);
  form.reset();
  button.closest(".back").remove();
  first(form, "input:not([type=hidden]), textarea").focus();
  say(
    gettext("Your text is discarded."),
    undoButton(() => fill(form, { id, ...draft })),
  );
});

onEvent("input", ({ form }) => form && keepDraft(form));

document.addEventListener("account", () => {
  if (me || !writer) return;
  for (const form of document.forms) {
    // A text that is being written stays in sight when the session ends.
    if (form.dataset.draft && isChanged(form))
      form.closest(".for-members")?.classList.remove("for-members");
  }
});
