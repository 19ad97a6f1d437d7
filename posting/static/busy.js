// What is shown and said while something is under way.

import { first } from "./dom.js";
import { say } from "./status.js";

const PATIENCE = 1000; // milliseconds

/**
 * Show that a part of the page is busy. Its button says with what, and after a second the line of
 * the status does too. Return the function that ends this.
 * @param {HTMLElement} part
 * @param {HTMLElement} button
 */
export function showBusy(part, button) {
  const { busy } = button.dataset;
  const label = button.textContent;
  part.classList.add("busy");
  part.setAttribute("aria-busy", "true");
  if (busy) button.textContent = busy;
  const timer = setTimeout(() => busy && say(busy), PATIENCE);
  return () => {
    clearTimeout(timer);
    part.classList.remove("busy");
    part.removeAttribute("aria-busy");
    if (busy) button.textContent = label;
    const status = first(document, "#status");
    if (status.textContent === busy) status.replaceChildren();
  };
}
