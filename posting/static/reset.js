// Choosing a password, with a link or with a recovery code, and asking for a link by mail.

import { signIn } from "./entering.js";
import { bodyOf } from "./fields.js";
import { onForm, replaceForm } from "./forms.js";
import { gettext } from "./language.js";
import "./links.js";
import "./main.js";
import "./passwords.js";
import { sayNext } from "./status.js";

/** Sign in with the new password. The code has been used, so it leaves the address bar. */
function sent(form, { username }) {
  history.replaceState(null, "", location.pathname + location.search);
  sayNext(gettext("Your new password is set."));
  return signIn(username, bodyOf(form).password);
}

onForm("ask-for-link", { sent: (form) => replaceForm(form, "#asked") });
onForm("reset-by-link", { sent });
onForm("reset-by-code", { sent });
