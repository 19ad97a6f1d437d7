// Signing up and signing in.

import { me } from "./account.js";
import { request } from "./api.js";
import { first } from "./dom.js";
import { goOn, signIn } from "./entering.js";
import { bodyOf } from "./fields.js";
import { onForm } from "./forms.js";
import "./links.js";
import "./main.js";
import { ready, root } from "./page.js";
import "./passwords.js";

onForm("sign-up", {
  sent(form, { state, username }) {
    if (state === "pending") return sayPending(form);
    return signIn(username, bodyOf(form).password);
  },
});

onForm("sign-in", { sent: (_form, data) => goOn(data) });

/** Say that the account waits for approval, in place of the form. */
function sayPending(form) {
  const notice = first(document, "#pending");
  form.remove();
  notice.hidden = false;
  notice.focus();
}

ready(() => {
  // A session may have ended since; the response says so, and the form is shown.
  if (me) request("GET", `${root}/users/me`).catch(() => {});
});
