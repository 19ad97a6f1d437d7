// Texts in Markdown: the bar over them, their keys, and their preview.

import { onAction } from "./actions.js";
import { request } from "./api.js";
import { all, first, onEvent } from "./dom.js";
import { onKey } from "./keys.js";
import { addMark } from "./marks.js";
import "./mentions.js";
import { root } from "./page.js";
import { typeText } from "./typing.js";

const KEYS = { b: "bold", i: "italic", k: "link" };
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/** @type {((html: DocumentFragment) => void)[]} */
const previewers = [];

/**
 * Register a function that changes each preview before it is shown.
 * @param {(html: DocumentFragment) => void} previewer
 */
export const onPreview = (previewer) => previewers.push(previewer);

/** @param {HTMLFormElement} form */
const textOf = (form) => first(form, "textarea[name=content]");

/**
 * Change the text of a form and its selection.
 * @param {HTMLFormElement} form
 * @param {(selection: import("./marks.js").Selection) => import("./marks.js").Selection} change
 */
export function changeText(form, change) {
  const field = textOf(form);
  const { value, selectionStart, selectionEnd } = field;
  const { text, start, end } = change({ text: value, start: selectionStart, end: selectionEnd });
  typeText(field, text);
  field.focus();
  field.setSelectionRange(start, end);
}

onAction("mark", ({ form, dataset }) => {
  changeText(form, (selection) => addMark(dataset.mark, selection));
});

onKey(({ form, name }, event) => {
  const mark = (event.ctrlKey || event.metaKey) && !event.shiftKey && KEYS[event.key.toLowerCase()];
  if (!mark || name !== "content") return;
  event.preventDefault();
  changeText(form, (selection) => addMark(mark, selection));
});

/** The bar is one stop of the Tab key, and arrows lead from button to button. */
onKey((target, event) => {
  const bar = target.closest("[role=toolbar]");
  const step = STEPS[event.key];
  if (!bar || !step) return;
  const buttons = all(bar, "button");
  const next = buttons.at((buttons.indexOf(target) + step) % buttons.length);
  for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
  next.focus();
  event.preventDefault();
});

onAction("preview", async ({ form }) => {
  const body = { content: textOf(form).value };
  const { data } = await request("POST", `${root}/preview`, { body });
  const template = document.createElement("template");
  // The HTML is the service's own, sanitized as on the page.
  template.innerHTML = data.html;
  for (const change of previewers) change(template.content);
  const place = first(form, "[data-preview]");
  place.replaceChildren(template.content);
  place.focus();
});

/** A preview of a former text would mislead. */
const clearPreview = (form) => form && first(form, "[data-preview]")?.replaceChildren();

onEvent("input", ({ form, name }) => name === "content" && clearPreview(form));
onEvent("reset", clearPreview);
