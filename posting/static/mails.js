// The pages to which links in mails lead: to confirm an address, and to end mails.

import { me } from "./account.js";
import { first } from "./dom.js";
import { onForm, replaceForm } from "./forms.js";
import "./links.js";
import "./main.js";
import { saveZone } from "./zone.js";

onForm("confirm-email", {
  sent(form, { email }) {
    if (me) saveZone();
    // The code has been used, so it leaves the address bar.
    history.replaceState(null, "", location.pathname);
    first(document, "[data-address]").textContent = email;
    replaceForm(form, "#confirmed");
  },
});

onForm("unsubscribe", { sent: (form) => replaceForm(form, "#ended") });
