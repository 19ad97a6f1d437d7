// Forms that a button opens in its place, below what the button is about. One is open at a time.

import { onAction } from "./actions.js";
import { copyOf, first } from "./dom.js";
import { restoreDraft } from "./drafts.js";
import { isChanged } from "./fields.js";
import { onKey } from "./keys.js";
import { gettext } from "./language.js";
import { linkTo } from "./offers.js";
import { root } from "./page.js";
import { say } from "./status.js";

/** @type {WeakMap<HTMLFormElement, HTMLElement>} the button that opened a form */
const openers = new WeakMap();

export const openedForm = () => first(document, ".opened");

/** @param {HTMLFormElement} form */
export const openerOf = (form) => openers.get(form);

/** @param {HTMLFormElement} form */
export const focusText = (form) => first(form, "textarea").focus();

/**
 * Focus an element, or the button of the closed menu that it is in.
 * @param {HTMLElement} element
 */
export function focusOn(element) {
  const menu = element.closest("details:not([open])");
  (menu ? first(menu, "summary") : element).focus();
}

/**
 * Open a form below what a button is about, after `fill` has filled it.
 * @param {string} template
 * @param {HTMLElement} button
 * @param {(form: any) => void} fill
 */
export function openForm(template, button, fill) {
  openedForm()?.remove();
  const form = copyOf(template);
  form.classList.add("opened");
  openers.set(form, button);
  fill(form);
  button.closest("article, li:not(.rare li), section").append(form);
  restoreDraft(form);
  return form;
}

/**
 * Open a form that is sent to the URL of a button, with the question of the button if it has one.
 * @param {string} template
 * @param {HTMLElement} button
 */
export function openQuestion(template, button) {
  const form = openForm(template, button, (form) => {
    form.action = button.dataset.url;
    first(form, "[data-words]").textContent = button.dataset.confirm ?? "";
  });
  focusText(form);
}

/**
 * Close a form. If its text is that of a draft, it is kept.
 * @param {HTMLFormElement} form
 */
export function closeForm(form) {
  const place = form.parentElement;
  const opener = openerOf(form);
  form.remove();
  // The buttons are new if the session or the page has changed.
  focusOn(opener.isConnected ? opener : first(place, ".actions a, .meta a"));
  if (form.dataset.draft && isChanged(form))
    say(gettext("Your text is kept."), linkTo(gettext("Unsent texts"), `${root}/unsent`));
}

onAction("cancel", ({ form }) => closeForm(form));

onKey((target, event) => {
  const form = event.key === "Escape" && target.closest(".opened");
  if (form) closeForm(form);
});
