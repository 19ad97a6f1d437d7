// What buttons do: `data-action` names a function that a module has registered.

import { Problem, request } from "./api.js";
import { onEvent } from "./dom.js";
import { goTo } from "./page.js";

/** @type {Record<string, (button: HTMLButtonElement) => unknown>} */
const actions = {};

/**
 * Register what buttons with a name do. A `Problem` that this throws is shown beside the button.
 * @param {string} name
 * @param {(button: HTMLButtonElement) => unknown} action
 */
export function onAction(name, action) {
  actions[name] = action;
}

/**
 * Send the request of a button, if the reader confirms it. Return whether it was sent.
 * @param {HTMLButtonElement} button
 */
export async function sendRequest({ dataset }) {
  if (dataset.confirm && !confirm(dataset.confirm)) return false;
  await request(dataset.api, dataset.url);
  return true;
}

onAction("delete", async (button) => {
  const { pathname, search } = location;
  if (await sendRequest(button)) goTo(button.dataset.next ?? `${pathname}${search}#comments`);
});

/** @param {HTMLButtonElement} button */
export async function press(button) {
  const place = button.closest("form")?.querySelector(":scope > .problem");
  place?.replaceChildren();
  place?.classList.remove("done");
  button.classList.add("busy");
  try {
    await actions[button.dataset.action](button);
  } catch (error) {
    const problem = error instanceof Problem ? error : new Problem(0);
    if (place) place.textContent = problem.errors[0]?.detail ?? problem.message;
    else alert(problem.message);
  } finally {
    button.classList.remove("busy");
  }
}

onEvent("click", (target) => {
  const button = target.closest("button[data-action]");
  if (button && !button.closest(".busy")) press(button);
});
