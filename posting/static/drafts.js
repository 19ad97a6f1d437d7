// Drafts: what is typed into a form with a text is kept until it is sent.

import { me, writer } from "./account.js";
import { onAction } from "./actions.js";
import { newKey } from "./api.js";
import { copyOf, first, onEvent } from "./dom.js";
import { bodyOf } from "./fields.js";
import { read, store } from "./storage.js";

/** @type {WeakMap<HTMLFormElement, [string, string]>} the body that was sent, and its key */
const keys = new WeakMap();

/**
 * Return the Idempotency-Key of a form, which stays the same until the body changes.
 * @param {HTMLFormElement} form
 * @param {object} body
 */
export function keyOf(form, body) {
  const text = JSON.stringify(body);
  const [sent, key] = keys.get(form) ?? [];
  keys.set(form, [text, sent === text ? key : newKey()]);
  keepDraft(form);
  return keys.get(form)[1];
}

/** Return the name of the draft of a form that sends a text to a path, perhaps as a reply. */
export const draftName = (path, parent = "") => `draft:${writer}:${path}:${parent}`;

const nameOf = (form) => draftName(new URL(form.action).pathname, form.elements.parent_id?.value);
const hasDraft = (form) => form.dataset.api && first(form, "textarea");

function textsOf(form) {
  const { parent_id, ...texts } = bodyOf(form);
  return texts;
}

const hasText = (form) => Object.values(textsOf(form)).some(Boolean);

/** @param {HTMLFormElement} form */
export function keepDraft(form) {
  if (!hasDraft(form)) return;
  const { version } = form.dataset;
  const draft = { texts: textsOf(form), version, sent: keys.get(form) };
  store(nameOf(form), hasText(form) ? draft : null);
}

/**
 * Forget the draft of a form, unless another tab has stored another text.
 * @param {HTMLFormElement} form
 */
export function forgetDraft(form) {
  const draft = hasDraft(form) && read(nameOf(form));
  if (draft && JSON.stringify(draft.texts) === JSON.stringify(textsOf(form)))
    store(nameOf(form), null);
}

/** @param {HTMLFormElement} form */
export function restoreDraft(form) {
  const draft = me && hasDraft(form) && read(nameOf(form));
  if (!draft) return;
  for (const [name, value] of Object.entries(draft.texts)) {
    if (form.elements[name]) form.elements[name].value = value ?? "";
  }
  if (draft.sent) keys.set(form, draft.sent);
  // An edit goes on from the version that it began with, so that it overwrites no later one.
  if (draft.version) form.dataset.version = draft.version;
  form.prepend(copyOf("draft-notice"));
}

onAction("discard", ({ form }) => {
  forgetDraft(form);
  form.reset();
  location.reload();
});

onEvent("input", ({ form }) => form && keepDraft(form));

document.addEventListener("account", () => {
  if (me || !writer) return;
  for (const form of document.forms) {
    // A text that is being written stays in sight when the session ends.
    if (hasDraft(form) && hasText(form))
      form.closest(".for-members")?.classList.remove("for-members");
  }
});
