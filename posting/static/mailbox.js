// Mails, in the settings: the address of a member, and what is sent to it.

import { onAction } from "./actions.js";
import { request } from "./api.js";
import { sendRequest } from "./buttons.js";
import { first } from "./dom.js";
import { onForm } from "./forms.js";
import { gettext } from "./language.js";
import { root } from "./page.js";
import { say } from "./status.js";
import { dateOf } from "./times.js";
import { saveZone, zoneOfDevice } from "./zone.js";

/**
 * @typedef {object} Email
 * @property {string | null} email
 * @property {string | null} pending
 * @property {string | null} failing_since
 */

/** @typedef {{mail: string, text: string, letter: boolean, time_zone: string,
 *   language: string | null}} Choices */

/** Show the address of the member and what they get, if this service sends mails. */
export async function showMailbox() {
  const form = first(document, "form[data-form=mails]");
  if (!form) return;
  const { data: email } = await request("GET", `${root}/users/me/email`);
  showEmail(email);
  const { data: choices } = await request("GET", `${root}/users/me/notifications`);
  fill(form, choices);
  form.inert = false;
}

/** @param {Email} data */
function showEmail({ email, pending, failing_since }) {
  const sentences = [
    email ? gettext("Mails go to %(email)s.", { email }) : gettext("You get no mails yet."),
  ];
  if (failing_since)
    sentences.push(
      gettext(
        "Mails have not arrived since %(date)s, so you get no notifications by mail. If the address is right, save it again.",
        { date: dateOf(failing_since) },
      ),
    );
  if (pending)
    sentences.push(
      gettext(
        "To confirm %(email)s, open the link in the mail that was sent there, and press the button.",
        { email: pending },
      ),
    );
  first(document, "[data-email]").textContent = sentences.join(" ");
  first(document, "[data-action=forget-email]").hidden = !(email || pending);
}

/** @type {(form: HTMLFormElement, choices: Choices) => void} */
function fill(form, { mail, text, letter, time_zone, language }) {
  first(form, `[name=mail][value=${mail}]`).checked = true;
  first(form, `[name=text][value=${text}]`).checked = true;
  first(form, "[name=letter]").checked = letter;
  const chosen = first(form, `[name=language][value="${language ?? ""}"]`);
  // A newer version may have known the language that was chosen.
  (chosen ?? first(form, '[name=language][value=""]')).checked = true;
  first(form, "[data-zone]").textContent = time_zone;
}

onForm("email", {
  async sent(form, data) {
    form.reset();
    say(gettext("A mail is on its way to %(email)s.", { email: data.pending }));
    await saveZone();
    await showMailbox();
  },
});

onForm("mails", {
  isFilled: true,
  toBody: (values, form) => ({
    ...values,
    letter: first(form, "[name=letter]").checked,
    language: values.language || null,
    ...zoneOfDevice(),
  }),
  sent: fill,
});

onAction("forget-email", async (button) => {
  if (await sendRequest(button)) await showMailbox();
});
