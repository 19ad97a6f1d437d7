// The fields of a form: what they hold, and the errors beside them.

import { all, first } from "./dom.js";

/**
 * Return the body of the request that a form sends.
 * @param {HTMLFormElement} form
 */
export function bodyOf(form) {
  /** @type {Record<string, string | null>} */
  const body = {};
  for (const control of all(form, "input, textarea")) {
    if (!control.name || control.closest("[data-images]")) continue;
    if (control.type === "radio" && !control.checked) continue;
    if (control.value !== "" || control.required) body[control.name] = control.value;
    else if (form.dataset.api === "PATCH") body[control.name] = null;
  }
  return body;
}

/**
 * Return the place above the button of a form, for what is not about a field.
 * @param {HTMLFormElement} form
 */
export const noticeOf = (form) => first(form, ":scope > .problem");

/**
 * Show each error beside the control that its pointer names, and the others above the button.
 * @param {HTMLFormElement} form
 * @param {import("./api.js").Problem} problem
 */
export function showErrors(form, problem) {
  const others = [];
  for (const { pointer = "", detail } of problem.errors) {
    /** @type {any} */
    const control = form.elements.namedItem(pointer.slice(1));
    const place = control && document.getElementById(`${control.id}-error`);
    if (!place) {
      others.push(detail);
      continue;
    }
    place.textContent = detail;
    control.setAttribute("aria-invalid", "true");
  }
  if (problem.errors.length === 0 || others.length > 0) {
    noticeOf(form).textContent = others.join(" ") || problem.message;
  }
  first(form, "[aria-invalid]")?.focus();
}

/** @param {HTMLFormElement} form */
export function clearErrors(form) {
  for (const place of all(form, ".problem, .error")) {
    place.replaceChildren();
    place.classList.remove("done");
  }
  for (const control of all(form, "[aria-invalid]")) control.removeAttribute("aria-invalid");
}

/**
 * Show a link beside the problem of a form.
 * @param {HTMLFormElement} form
 * @param {string} text
 * @param {string} url
 */
export function addLink(form, text, url, target = "") {
  const link = Object.assign(document.createElement("a"), { href: url, textContent: text, target });
  noticeOf(form).append(" ", link);
}
