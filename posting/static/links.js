// Links with a code, such as invitations. The code is in the fragment of the link, which browsers
// send to no server.

import { all } from "./dom.js";
import { ready } from "./page.js";

/** Return the code in the URL. The fragment of a link within the page, such as #main, is none. */
function codeOfUrl() {
  const fragment = location.hash.slice(1);
  return document.getElementById(fragment) ? "" : fragment;
}

/** Put the code into the form for it, and show what is for those who have a code or have none. */
function show(code) {
  for (const control of all(document, "[data-code]")) control.value = code;
  for (const part of all(document, ".with-code")) part.hidden = code === "";
  for (const part of all(document, ".without-code")) part.hidden = code !== "";
}

ready(() => show(codeOfUrl()));

// A link that is opened in the tab of its page loads nothing.
addEventListener("hashchange", () => {
  const code = codeOfUrl();
  if (code) show(code);
});
