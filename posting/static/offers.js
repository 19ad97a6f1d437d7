// What a message offers: a link, or a button that undoes something.

import { gettext } from "./language.js";

/**
 * @param {string} text
 * @param {string} href
 */
export const linkTo = (text, href, target = "") =>
  Object.assign(document.createElement("a"), { textContent: text, href, target });

/** @param {() => unknown} undo */
export function undoButton(undo) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "link", textContent: gettext("Undo") });
  button.addEventListener("click", () => {
    button.parentElement.replaceChildren();
    undo();
  });
  return button;
}
