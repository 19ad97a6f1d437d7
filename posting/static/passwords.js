// Passwords can be shown while they are typed.

import { onAction } from "./actions.js";

onAction("show-password", (button) => {
  const control = document.getElementById(button.getAttribute("aria-controls"));
  const isShown = button.getAttribute("aria-pressed") === "true";
  button.setAttribute("aria-pressed", String(!isShown));
  /** @type {HTMLInputElement} */ (control).type = isShown ? "password" : "text";
});
