// The page of a member: reporting them, and what moderators see of them and do.

import { me } from "./account.js";
import { onAction } from "./actions.js";
import { request } from "./api.js";
import { sendRequest } from "./buttons.js";
import { copyOf, first } from "./dom.js";
import { bodyOf } from "./fields.js";
import { onForm } from "./forms.js";
import { gettext } from "./language.js";
import "./main.js";
import { contentOf, factsOf, nameOf, suspensionOf } from "./moderating.js";
import { openForm, openQuestion } from "./opening.js";
import { goTo, root } from "./page.js";
import "./passwords.js";
import "./reporting.js";
import { showSecret } from "./secrets.js";
import { say, sayNext } from "./status.js";
import { showFormer } from "./suspending.js";

const ROLES = {
  member: gettext("This member is a member now."),
  moderator: gettext("This member is a moderator now."),
  owner: gettext("This member is an owner now."),
};
const MAX_EMPTY = 20; // with 500 reactions each

const opener = () => first(document, "[data-action=moderate]");
const place = () => first(document, "#known");

/** Show what moderators see of the member, with the focus on it. */
async function showPanel() {
  const { data } = await request("GET", opener().dataset.url);
  const panel = copyOf("member-panel");
  for (const fact of factsOf(data)) {
    const item = document.createElement("li");
    item.textContent = fact;
    first(panel, "[data-facts]").append(item);
  }
  const button = (action) => first(panel, `[data-action=${action}]`);
  const isOwner = me?.role === "owner";
  const mayAct = data.role === "member" || (isOwner && data.role === "moderator");
  const isSuspended = data.suspension !== null;
  button("suspend").hidden = !mayAct || isSuspended;
  button("lift").hidden = !mayAct || !isSuspended;
  button("make-reset-link").hidden = data.state === "pending" || !(mayAct || isOwner);
  button("change-role").hidden = !isOwner || data.state === "pending";
  const isEmpty = data.posts + data.comments === 0;
  button("remove-everything").hidden = !mayAct || isEmpty;
  button("remove-everything").dataset.confirm = gettext(
    "Delete all that %(name)s has written? There are %(content)s. This cannot be undone.",
    { name: nameOf(data), content: contentOf(data) },
  );
  button("delete-account").hidden = !mayAct || !isEmpty;
  button("delete-account").dataset.confirm = gettext(
    "Delete the account of %(name)s? The name can be taken again. This cannot be undone.",
    { name: nameOf(data) },
  );
  place().replaceChildren(panel);
  opener().setAttribute("aria-expanded", "true");
  panel.focus();
}

onAction("moderate", (button) => {
  if (button.getAttribute("aria-expanded") === "false") return showPanel();
  place().replaceChildren();
  button.setAttribute("aria-expanded", "false");
});

onAction("suspend", (button) => openQuestion("suspension-form", button));

onAction("change-role", (button) => {
  const form = openForm("role-form", button, (form) => {
    form.action = button.dataset.url;
    form.elements.role.value = button.dataset.role;
  });
  first(form, ":checked").focus();
});

onAction("make-reset-link", (button) => {
  const form = openForm("reset-link-form", button, (form) => {
    form.action = button.dataset.url;
  });
  first(form, "input").focus();
});

onForm("reset-link", {
  sent(form, { url }) {
    form.reset();
    showSecret(form, gettext("The link. Copy it now: it is not shown again."), url);
  },
});

onForm("role", {
  sent(_form, { role }) {
    sayNext(ROLES[role]);
    goTo(location.pathname);
  },
});

onAction("delete-picture", async (button) => {
  if (!(await sendRequest(button))) return;
  sayNext(gettext("The picture is deleted."));
  goTo(location.pathname);
});

onForm("suspension", {
  failed: showFormer,
  toBody: (values) => suspensionOf(values),
  async sent(form) {
    form.remove();
    await showPanel();
    say(gettext("The member is suspended, and signed out everywhere."));
  },
});

onAction("lift", async (button) => {
  if (!(await sendRequest(button))) return;
  await showPanel();
  say(gettext("The suspension is lifted."));
});

onAction("remove-everything", (button) => openQuestion("removal-form", button));

onForm("removal", {
  /** Go on after the first step, until nothing is left. */
  async sent(form, step) {
    const bar = first(form, "progress");
    let { removed } = step;
    const max = removed + step.left; // a member who continues to write does not make it longer
    let empty = 0; // steps in a row that deleted only reactions
    while (step.left > 0 && removed < max && empty < MAX_EMPTY) {
      Object.assign(bar, { hidden: false, max, value: removed });
      ({ data: step } = await request("POST", form.action, { body: bodyOf(form) }));
      removed += step.removed;
      empty = step.removed > 0 ? 0 : empty + 1;
    }
    if (step.left > 0)
      sayNext(gettext("The member has written something new. Delete everything again."));
    else sayNext(gettext("Everything by this member is deleted."));
    goTo(location.pathname);
  },
});

onAction("delete-account", (button) => openQuestion("account-deletion-form", button));

onForm("account-deletion", {
  sent() {
    sayNext(gettext("The account is deleted."));
    goTo(`${root}/moderation`);
  },
});
