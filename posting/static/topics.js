// The topics of a post: a few of a list. A hidden field has their ids, which drafts keep.

import { all, first, onEvent } from "./dom.js";
import { ready } from "./page.js";

const LIST = "[data-topics]";
const boxes = (form) => all(form, `${LIST} input`);
const idsIn = (text) => text?.split(" ").filter(Boolean) ?? [];

/**
 * Return the body of a request with the topics, if there are some or if an edit changes them.
 * @param {Record<string, any>} body
 * @param {string | null | undefined} topics
 * @param {any} form
 */
export function withTopics(body, topics, form) {
  const field = form.elements.topics;
  if (!field || field.value === field.defaultValue) return body;
  return { ...body, topics: idsIn(topics) };
}

/** Show which topics are chosen. No more than the most can be. A draft may have deleted ones. */
function show(form) {
  const list = first(form, LIST);
  if (!list) return;
  const ids = boxes(form).map(({ value }) => value);
  const chosen = idsIn(form.elements.topics.value).filter((id) => ids.includes(id));
  form.elements.topics.value = chosen.join(" ");
  const isFull = chosen.length >= Number(list.dataset.most);
  for (const box of boxes(form)) {
    box.checked = chosen.includes(box.value);
    box.disabled = isFull && !box.checked;
  }
}

onEvent("change", (box) => {
  const { form } = box;
  if (!box.closest(LIST) || !form) return;
  const field = form.elements.topics;
  field.value = boxes(form)
    .filter(({ checked }) => checked)
    .map(({ value }) => value)
    .join(" ");
  show(form);
  field.dispatchEvent(new Event("input", { bubbles: true })); // drafts keep it
});

onEvent("reset", (form) => setTimeout(() => show(form)));
onEvent("restored", show);
ready(() => {
  for (const form of document.forms) show(form);
});
