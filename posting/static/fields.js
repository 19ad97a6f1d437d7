// The fields of a form: what they hold, what is wrong with it, and what is said beside them.

import { all, first, onEvent } from "./dom.js";
import { ngettext } from "./language.js";
import { linkTo } from "./offers.js";
import { explainError } from "./words.js";

const NEAR = 0.9; // of the longest text, from which on a counter is shown
// Phones add a space after a name.
const TRIMMED = ["name", "username", "email"];

/**
 * @typedef {object} FieldError
 * @property {string} code
 * @property {string} [pointer] to the member of the body
 * @property {HTMLInputElement} [control] if the page has found the error itself
 * @property {string} [detail] the words of the service
 * @property {number} [excess] the number of characters that are too many
 * @property {number} [least] the smallest number of characters
 * @property {string[]} [range] the smallest and the largest number
 */

const isOfImage = (control) => control.closest("[data-images]") !== null;

/**
 * Return the controls of a form that have a value, also those of its images.
 * @param {HTMLFormElement} form
 */
const controlsOf = (form) =>
  all(form, "input[name], textarea[name]").filter(
    (control) => control.type !== "radio" || control.checked,
  );

/**
 * Return the body of the request that a form sends.
 * @param {HTMLFormElement} form
 */
export function bodyOf(form) {
  /** @type {Record<string, string | null>} */
  const body = {};
  for (const control of controlsOf(form)) {
    if (isOfImage(control)) continue;
    if (control.value !== "" || control.required) body[control.name] = control.value;
    else if (form.dataset.api === "PATCH") body[control.name] = null;
  }
  return body;
}

/**
 * Return whether a form holds something else than it began with.
 * @param {HTMLFormElement} form
 */
export const isChanged = (form) =>
  controlsOf(form).some(
    (control) =>
      control.type !== "hidden" && !isOfImage(control) && control.value !== control.defaultValue,
  );

/** The number of characters as the API counts them. */
const lengthOf = (text) => [...text].length;

/** The number of characters that are too many in a control; it is negative if some are left. */
const excessOf = ({ value, dataset }) => lengthOf(value) - dataset.max;

/**
 * Return what is wrong with the fields of a form, as the API would.
 * @param {HTMLFormElement} form
 * @returns {FieldError[]}
 */
export function errorsOf(form) {
  const errors = [];
  for (const control of controlsOf(form)) {
    if (TRIMMED.includes(control.autocomplete)) control.value = control.value.trim();
    const { value, minLength, min, max, validity } = control;
    const excess = excessOf(control);
    if (control.required && value.trim() === "") errors.push({ control, code: "required" });
    else if (excess > 0) errors.push({ control, code: "too_long", excess });
    else if (value && lengthOf(value) < minLength)
      errors.push({ control, code: "too_short", least: minLength });
    else if (validity.patternMismatch) errors.push({ control, code: "malformed" });
    else if (control.type === "number" && !validity.valid)
      errors.push({ control, code: "out_of_range", range: [min, max] });
  }
  return errors;
}

/**
 * Return the place above the button of a form, for what is not about a field.
 * @param {HTMLFormElement} form
 */
export const noticeOf = (form) => first(form, ":scope > .problem");

const placeOf = (control) =>
  document.getElementById(`${control.id}-error`) ??
  control.closest("[data-images] > li")?.querySelector(".problem");

/** Return the control of a field or, such as for `topics/0`, that of the field it is in. */
const controlOf = ({ elements }, path) =>
  elements.namedItem(path) ?? elements.namedItem(path.split("/")[0]);

/**
 * Show each error beside the control that its pointer names, and the others above the button.
 * @param {HTMLFormElement} form
 * @param {{message?: string, errors: FieldError[]}} problem
 */
export function showErrors(form, { message = "", errors }) {
  const others = [];
  for (const error of errors) {
    /** @type {any} */
    const control = error.control ?? controlOf(form, error.pointer?.slice(1) ?? "");
    const place = control && placeOf(control);
    const text = explainError(error, control?.name);
    if (place) {
      place.textContent = text;
      place.classList.remove("counter");
      control.setAttribute("aria-invalid", "true");
    } else others.push(text);
  }
  if (errors.length === 0 || others.length > 0) {
    noticeOf(form).textContent = others.join(" ") || message;
  }
  first(form, "[aria-invalid]")?.focus();
}

/** @param {HTMLFormElement} form */
export function clearErrors(form) {
  for (const place of all(form, ".problem, .error")) place.replaceChildren();
  for (const control of all(form, "[aria-invalid]")) control.removeAttribute("aria-invalid");
}

/**
 * Show a link beside the problem of a form. Return the link.
 * @param {HTMLFormElement} form
 * @param {string} text
 * @param {string} url
 */
export function addLink(form, text, url, target = "") {
  const link = linkTo(text, url, target);
  noticeOf(form).append(" ", link);
  return link;
}

/** Say how many characters are left, near the limit of a control. */
onEvent("input", (control) => {
  const { max } = control.dataset;
  const place = max && placeOf(control);
  if (!place) return;
  const excess = excessOf(control);
  const left = Math.abs(excess);
  const isNear = -excess < max * (1 - NEAR);
  if (excess > 0) place.textContent = explainError({ code: "too_long", excess });
  else if (isNear)
    place.textContent = ngettext("%(num)s character left.", "%(num)s characters left.", left);
  else place.textContent = "";
  place.classList.toggle("counter", excess <= 0);
  if (excess <= 0) control.removeAttribute("aria-invalid");
});

onEvent("reset", clearErrors);
