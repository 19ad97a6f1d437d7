// Settings: the profile, sessions and tokens of a member.

import { leave, me, setMe } from "./account.js";
import { onAction, sendRequest } from "./actions.js";
import { request } from "./api.js";
import { copyOf, first } from "./dom.js";
import { restoreDraft } from "./drafts.js";
import { noticeOf } from "./fields.js";
import { onForm, showDone } from "./forms.js";
import "./main.js";
import { ready, root } from "./page.js";
import { programOf } from "./programs.js";
import { showTimes } from "./times.js";

onForm("profile", {
  isFilled: true,
  sent(_form, data) {
    setMe(data);
    return false;
  },
});

onForm("password", {
  async sent(form) {
    showDone(form);
    form.reset();
    await showLists();
  },
});

onForm("token", {
  async sent(form, data) {
    form.reset();
    showSecret(form, data.token);
    await showTokens();
  },
});

onForm("delete-account", { sent: leave });

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

/** @param {"sessions" | "tokens"} name */
const listOf = (name) => first(document, `[data-${name}]`);

async function showProfile(form) {
  const { data } = await request("GET", `${root}/users/me`);
  setMe(data);
  for (const name of ["username", "display_name", "bio"])
    form.elements[name].value = data[name] ?? "";
  form.inert = false;
  restoreDraft(form);
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
    first(row, "[data-scope]").textContent =
      token.scope === "write" ? "may read and write" : "may read";
    first(row, "time").dateTime = token.expires_at;
    const button = first(row, "button");
    button.dataset.url = `${root}/tokens/${token.id}`;
    button.setAttribute("aria-describedby", name.id);
  });
}

/** Show a list, with a row for each item that is a copy of a template. */
function showRows(name, template, items, fillRow) {
  const list = listOf(name);
  const rows = items.map((item) => {
    const row = copyOf(template);
    fillRow(row, item);
    return row;
  });
  list.replaceChildren(...rows);
  showTimes(list);
}

/** Show the secret of a new token, once. */
function showSecret(form, secret) {
  const field = first(form, "[data-secret]");
  const control = first(field, "input");
  field.hidden = false;
  control.value = secret;
  control.select();
}

ready(() => {
  const form = first(document, "form[data-form=profile]");
  if (!me) return;
  showProfile(form)
    .then(showLists)
    .catch((problem) => {
      noticeOf(form).textContent ||= problem.message;
    });
});
