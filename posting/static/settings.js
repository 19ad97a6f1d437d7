// The settings of a member: profile, password, sessions and tokens. Notifications on this device,
// mails, invitations and recovery codes have modules of their own.

import { me, setMe } from "./account.js";
import { onAction } from "./actions.js";
import { request } from "./api.js";
import { showAvatar } from "./avatar.js";
import { sendRequest } from "./buttons.js";
import { first } from "./dom.js";
import { restoreDraft } from "./drafts.js";
import { bodyOf } from "./fields.js";
import { onForm } from "./forms.js";
import { showInvitations } from "./invitations.js";
import { gettext, ngettext } from "./language.js";
import { forget, mayDeleteTexts } from "./leaving.js";
import { showMailbox } from "./mailbox.js";
import "./main.js";
import { goTo, ready, root } from "./page.js";
import "./passwords.js";
import { Problem } from "./problem.js";
import { programOf } from "./programs.js";
import { showPush } from "./pushing.js";
import { showCodesLeft } from "./recovery.js";
import { listOf, showRows } from "./rows.js";
import { showSecret } from "./secrets.js";
import "./tabs.js";

const SCOPES = {
  read: gettext("May read"),
  write: gettext("May read and write"),
  feed: gettext("For a feed reader"),
};
const SECRET = gettext("Your new token. Copy it now: it is not shown again.");
const ADDRESS = gettext(
  "The address of your feed. Give it to your feed reader now: it is not shown again.",
);

onForm("profile", {
  isFilled: true,
  sent(form, data) {
    setMe(data);
    fillProfile(form, data);
  },
});

onForm("password", {
  async sent(form) {
    form.reset();
    await showLists();
  },
});

onForm("token", {
  async sent(form, data) {
    form.reset();
    const address = `${location.origin}${root}/feeds/${data.token}/feed.atom`;
    if (data.scope === "feed") showSecret(form, ADDRESS, address);
    else showSecret(form, SECRET, data.token);
    await showTokens();
  },
});

onForm("delete-account", {
  prepare(form) {
    const control = first(form, "#delete-username");
    const isOwn = control.value.trim().toLowerCase() === me?.username.toLowerCase();
    if (!isOwn) throw new Problem(0, "", [{ control, code: "not_own_name" }]);
    return mayDeleteTexts((number) =>
      ngettext(
        "Delete your account and your %(num)s unsent text?",
        "Delete your account and your %(num)s unsent texts?",
        number,
      ),
    );
  },
  sent(form) {
    const { content } = bodyOf(form);
    forget();
    goTo(`${root}/account-deleted?content=${content}`);
  },
});

onAction("end-session", async (button) => {
  if (!(await sendRequest(button))) return;
  await showSessions();
  listOf("sessions").focus();
});

onAction("delete-token", async (button) => {
  if (!(await sendRequest(button))) return;
  await showTokens();
  listOf("tokens").focus();
});

async function showProfile(form) {
  const { data } = await request("GET", `${root}/users/me`);
  setMe(data);
  showAvatar(data);
  fillProfile(form, data);
  form.inert = false;
  restoreDraft(form);
}

/** Fill the form with the profile, which it has again when a text in it is discarded. */
function fillProfile(form, profile) {
  for (const name of ["username", "display_name", "bio"])
    form.elements[name].defaultValue = profile[name] ?? "";
  form.reset();
}

async function showLists() {
  await showSessions();
  await showTokens();
}

async function showSessions() {
  const { data } = await request("GET", `${root}/sessions`);
  showRows("sessions", "session-row", data, (row, session) => {
    const agent = first(row, "[data-agent]");
    agent.textContent = programOf(session.user_agent);
    agent.title = session.user_agent;
    agent.id = `session-${session.id}`;
    const button = first(row, "button");
    button.setAttribute("aria-describedby", agent.id);
    button.dataset.url = `${root}/sessions/${session.id}`;
    button.hidden = session.current;
    first(row, "strong").hidden = !session.current;
    first(row, "time").dateTime = session.last_seen_at;
  });
}

async function showTokens() {
  const { data } = await request("GET", `${root}/tokens`);
  showRows("tokens", "token-row", data, (row, token) => {
    const name = first(row, "[data-name]");
    name.textContent = token.name;
    name.id = `token-${token.id}`;
    first(row, "[data-scope]").textContent = SCOPES[token.scope];
    first(row, "time").dateTime = token.expires_at;
    const button = first(row, "button");
    button.dataset.url = `${root}/tokens/${token.id}`;
    button.setAttribute("aria-describedby", name.id);
  });
}

ready(() => {
  const form = first(document, "form[data-form=profile]");
  if (!me) return;
  showProfile(form)
    .then(showMailbox)
    .then(showCodesLeft)
    .then(showInvitations)
    .then(showLists)
    .then(showPush)
    .catch((problem) => {
      first(document, "#settings-problem").textContent = problem.message;
    });
});
