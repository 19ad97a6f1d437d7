// Secrets that are shown once, such as a new token, and how they are kept: by copying or on paper.

import { onAction } from "./actions.js";
import { all, first } from "./dom.js";
import { gettext } from "./language.js";
import { say } from "./status.js";

/**
 * Show a secret in the field for it in a form.
 * @param {HTMLFormElement} form
 * @param {string} label
 * @param {string} secret
 */
export function showSecret(form, label, secret) {
  const field = first(form, "[data-secret]");
  const control = first(field, "input");
  field.hidden = false;
  first(field, "label").textContent = label;
  control.value = secret;
  control.focus();
  control.select();
}

/** Return the text of a control, or the lines of another element. */
function textOf(source) {
  if (source instanceof HTMLInputElement) return source.value;
  const lines = all(source, "p, li").map(({ textContent }) => textContent);
  return lines.join("\n");
}

onAction("copy", async (button) => {
  const source = document.getElementById(button.getAttribute("aria-controls"));
  try {
    await navigator.clipboard.writeText(textOf(source));
    say(gettext("It is copied."));
  } catch {
    // Without https, browsers let no page do this.
    if (source instanceof HTMLInputElement) source.select();
    else getSelection().selectAllChildren(source);
    say(
      gettext("Your browser does not let this page copy it. It is selected, so you can copy it."),
    );
  }
});

onAction("print", () => print());
