// What buttons do: `data-action` names a function that a module has registered.

import { showBusy } from "./busy.js";
import { onEvent } from "./dom.js";
import { problemOf } from "./problem.js";
import { say } from "./status.js";

/** @type {Record<string, (button: any) => unknown>} */
const actions = {};

/**
 * Register what buttons with a name do. A `Problem` that this throws is shown.
 * @param {string} name
 * @param {(button: any) => unknown} action
 */
export function onAction(name, action) {
  actions[name] = action;
}

/** @param {HTMLElement} button */
export async function press(button) {
  const place = button.closest("form")?.querySelector(":scope > .problem");
  place?.replaceChildren();
  const finish = showBusy(button, button);
  try {
    await actions[button.dataset.action](button);
  } catch (error) {
    const { message } = problemOf(error);
    if (place) place.textContent = message;
    else say(message);
  } finally {
    finish();
  }
}

onEvent("click", (target, event) => {
  const button = target.closest("[data-action]");
  if (!button || !(button.dataset.action in actions)) return;
  event.preventDefault();
  if (!button.closest(".busy")) press(button);
});
