// Invitations, in the settings: those that there are, who has come by them, and new ones.

import { me, moderates } from "./account.js";
import { onAction } from "./actions.js";
import { sendRequest } from "./buttons.js";
import { first } from "./dom.js";
import { onForm } from "./forms.js";
import { gettext, ngettext } from "./language.js";
import { linkTo } from "./offers.js";
import { root } from "./page.js";
import { listInPages, listOf } from "./rows.js";
import { showSecret } from "./secrets.js";
import { showTab } from "./tabs.js";
import { dateOf } from "./times.js";

const DAY = 86_400_000; // milliseconds
const TOLERANCE = 600_000; // milliseconds that the clock of the browser may be fast
const LINK = gettext("The link of your invitation. Send it now: it is not shown again.");

/** Show the section of invitations to those who may invite, with the latest ones. */
export async function showInvitations() {
  const section = first(document, "[data-inviters]");
  if (!section) return; // sign-up is closed
  section.hidden = section.dataset.inviters === "moderators" && !moderates();
  first(document, "[data-tabs] > [href='#invitations']").hidden = section.hidden;
  showTab();
  if (!section.hidden) await showList();
}

const showList = listInPages("invitations", "invitation-row", `${root}/invitations`, fillRow);

function fillRow(row, invitation) {
  const { id, note, created_by, used_by } = invitation;
  const name = first(row, "[data-name]");
  name.textContent = note ?? gettext("Invitation");
  name.id = `invitation-${id}`;
  const parts = [stateOf(invitation)];
  if (created_by?.id !== me?.id) parts.push(gettext("by %(name)s", { name: nameOf(created_by) }));
  first(row, "[data-state]").textContent = parts.join(" · ");
  const users = first(row, "[data-used-by]");
  users.hidden = used_by.length === 0;
  for (const user of used_by) {
    const link = linkTo(nameOf(user), `${root}/@${user.username}`);
    users.append(user === used_by[0] ? " " : ", ", link);
  }
  const button = first(row, "button");
  button.dataset.url = `${root}/invitations/${id}`;
  button.setAttribute("aria-describedby", name.id);
  button.hidden = !isOpen(invitation);
}

const isOpen = ({ uses_left, expires_at }) => uses_left > 0 && new Date(expires_at) > new Date();

function stateOf(invitation) {
  const { uses_left, expires_at } = invitation;
  if (isOpen(invitation))
    return ngettext(
      "For %(num)s more person, until %(date)s",
      "For %(num)s more people, until %(date)s",
      uses_left,
      { date: dateOf(expires_at) },
    );
  return uses_left === 0 ? gettext("Used up") : gettext("Expired");
}

/** Return the name of the creator of an invitation or of an account. An operator has none. */
const nameOf = (author) => author?.display_name || author?.username || gettext("the operator");

onForm("invitation", {
  toBody({ uses, days, ...body }) {
    const lifetime = Number(days) * DAY - TOLERANCE;
    return {
      ...body,
      uses: uses ? Number(uses) : undefined,
      expires_at: days ? new Date(Date.now() + lifetime).toISOString() : undefined,
    };
  },
  async sent(form, { url }) {
    form.reset();
    showSecret(form, LINK, url);
    await showInvitations();
  },
});

onAction("end-invitation", async (button) => {
  if (!(await sendRequest(button))) return;
  await showInvitations();
  listOf("invitations").focus();
});
