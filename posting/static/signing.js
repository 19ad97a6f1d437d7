// Signing up and signing in.

import { me } from "./account.js";
import { request } from "./api.js";
import { goOn, signIn } from "./entering.js";
import { bodyOf } from "./fields.js";
import { onForm, replaceForm } from "./forms.js";
import { gettext } from "./language.js";
import "./links.js";
import "./main.js";
import { ready, root } from "./page.js";
import "./passwords.js";
import { sayNext } from "./status.js";

onForm("sign-up", {
  sent(form, { state, username }) {
    if (state === "pending") return replaceForm(form, "#pending");
    const { email } = bodyOf(form);
    if (email)
      sayNext(
        gettext("Welcome! To confirm %(email)s, open the link in the mail that is sent there.", {
          email,
        }),
      );
    return signIn(username, bodyOf(form).password);
  },
});

onForm("sign-in", { sent: (_form, data) => goOn(data) });

ready(() => {
  // A session may have ended since; the response says so, and the form is shown.
  if (me) request("GET", `${root}/users/me`).catch(() => {});
});
