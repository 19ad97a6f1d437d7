// The page of owners: the first steps, what the site is, backups, what needs care, and webhooks.

import { me, setMe } from "./account.js";
import { onAction } from "./actions.js";
import { request, result, tagOf } from "./api.js";
import { sendRequest } from "./buttons.js";
import { all, first, onEvent } from "./dom.js";
import { noticeOf } from "./fields.js";
import { onForm } from "./forms.js";
import { gettext, joined, ngettext, sizeOf } from "./language.js";
import "./main.js";
import { nameOfSetting } from "./moderating.js";
import { openForm } from "./opening.js";
import { goTo, ready, root } from "./page.js";
import { Problem, problemOf } from "./problem.js";
import { listInPages, listOf, showRows } from "./rows.js";
import { showSecret } from "./secrets.js";
import { say, sayNext } from "./status.js";
import { showTab } from "./tabs.js";
import { dateOf, locale, showTimes } from "./times.js";
import { explainProblem } from "./words.js";

/** What needs care, by the check that has found it. */
const FINDINGS = {
  backups: gettext("The nightly backup is missing or old, or an earlier restore has left files."),
  clock: gettext("A clock is wrong."),
  connections: gettext("The database may have too few connections for all processes."),
  encoding: gettext("The database cannot store all characters."),
  entry: gettext("No active account is that of a moderator."),
  file: gettext("The file of the database needs care: its disk, its permissions or its size."),
  outbox: gettext("Mails or other messages could not be sent."),
  own_files: gettext("A file of the operator cannot be read."),
  pragmas: gettext("The database lacks a setting that keeps it safe."),
  query: gettext("The database did not answer a check."),
  reports: gettext("A report has been open for more than a week."),
  run: gettext("A check could not run."),
  settings: gettext("A setting does not protect accounts as it should."),
  timeouts: gettext("The database does not end what takes too long."),
  uploads: gettext("The way of images and files to the service needs care: the disk or nginx."),
  usernames: gettext("The database may accept a username twice."),
  version: gettext("The program of the database is too old."),
  writes: gettext("The database accepts no writes."),
};

/** The pictures of the site, each with the size in which it is shown here. */
const PICTURES = {
  logo: {
    size: 64,
    width: 64,
    height: 64,
    alt: gettext("The present logo"),
    saved: gettext("The logo is saved."),
    deleted: gettext("The logo is deleted."),
  },
  cover: {
    size: 768,
    width: 768,
    height: 256,
    alt: gettext("The present cover picture"),
    saved: gettext("The cover picture is saved."),
    deleted: gettext("The cover picture is deleted."),
  },
};

const TRIES = 10; // to see whether a download has begun
const PAUSE = 500; // milliseconds between two of them
const EVENTS = {
  "post.created": gettext("new posts"),
  "post.edited": gettext("edited posts"),
  "post.deleted": gettext("deleted posts"),
  "comment.created": gettext("new comments"),
  "comment.edited": gettext("edited comments"),
  "comment.deleted": gettext("deleted comments"),
  "report.created": gettext("reports"),
  "application.created": gettext("people who ask for an account"),
  "webhook.created": gettext("a test"),
};

/** @type {Record<string, string | null>} what the site was when the form was filled */
let former = {};

const form = () => first(document, "form[data-form=site]");

/** Show the forms to owners. The service knows who is one. */
async function showForms() {
  if (me === null) return;
  const { data } = await request("GET", `${root}/users/me`).catch(() => ({ data: me }));
  if (data.role !== me?.role) setMe(data);
  first(document, "#no-owner").hidden = me?.role === "owner";
  if (me?.role !== "owner") return;
  await Promise.all([
    showIn(first(form(), ":scope > .problem"), showSite),
    showIn(first(document, "[data-state-problem]"), showState),
    showIn(first(document, "[data-topics-problem]"), showTopics),
    listOf("webhooks") && showIn(first(document, "[data-webhooks-problem]"), showWebhooks),
  ]);
  first(document, "#keeping").hidden = false; // at once, so that nothing moves
  showTab();
}

/** Show which of the first steps are done, unless all are. */
function showSteps(steps) {
  first(document, "#first-steps").hidden = Object.values(steps).every(Boolean);
  for (const [name, isDone] of Object.entries(steps)) {
    const step = first(document, `[data-step=${name}]`);
    if (step) first(step, "b").hidden = !isDone;
  }
}

function showBackups({ nightly_backup_at, downloaded_at, database_bytes, free_bytes }) {
  const section = first(document, "#backup");
  const times = { nightly: nightly_backup_at, downloaded: downloaded_at };
  for (const [name, time] of Object.entries(times)) {
    const item = first(section, `[data-${name}]`);
    item.hidden = time === null;
    if (time) first(item, "time").dateTime = time;
  }
  first(section, "[data-none]").hidden = Boolean(nightly_backup_at ?? downloaded_at);
  const size = sizeOf(database_bytes);
  const sentences = [gettext("The database takes %(size)s. A backup is often smaller.", { size })];
  if (free_bytes !== null)
    sentences.push(gettext("The disk has %(size)s free.", { size: sizeOf(free_bytes) }));
  first(section, "[data-space]").textContent = sentences.join(" ");
  showTimes(section);
}

/** Show how the service is kept, and return when a backup was last downloaded. */
async function showState() {
  const { data } = await request("GET", `${root}/site/state`);
  showSteps(data.first_steps);
  showBackups(data);
  first(document, "[data-healthy]").hidden = data.findings.length > 0;
  const count = first(document, "[data-found]");
  count.hidden = data.findings.length === 0;
  count.textContent = String(data.findings.length);
  listOf("findings").hidden = data.findings.length === 0;
  showRows("findings", "finding-row", data.findings, (row, { check, message, fix }) => {
    first(row, "[data-words]").textContent = FINDINGS[check] ?? gettext("Something is wrong.");
    first(row, "[data-message]").textContent = message;
    first(row, "[data-reason]").textContent = fix;
  });
  return data.downloaded_at;
}

async function showTopics() {
  const { data } = await request("GET", `${root}/topics`);
  showRows("topics", "topic-row", data, (row, { id, name, color }) => {
    const link = first(row, "[data-name]");
    link.textContent = name;
    link.href = `${root}/t/${id}`;
    link.id = `topic-${id}`;
    link.dataset.hue = first(document, `[data-hue]:has([value=${color}])`)?.dataset.hue;
    for (const button of all(row, "button")) {
      button.dataset.url = `${root}/topics/${id}`;
      button.setAttribute("aria-describedby", link.id);
    }
  });
}

onAction("edit-topic", async (button) => {
  const { url } = button.dataset;
  const { data, etag } = await request("GET", url);
  const form = openForm("topic-form", button, (form) => {
    form.action = url;
    form.dataset.version = tagOf(etag);
    form.elements.name.value = form.elements.name.defaultValue = data.name;
    form.elements.color.value = data.color;
  });
  form.elements.name.focus();
});

onAction("delete-topic", async (button) => {
  if (!(await sendRequest(button))) return;
  await showTopics();
  listOf("topics").focus();
});

onForm("topic", {
  async sent(form) {
    form.reset();
    await showTopics();
    if (form.dataset.api === "PATCH") listOf("topics").focus();
    say(gettext("The topic is saved."));
  },
});

const showWebhooks = listInPages("webhooks", "webhook-row", `${root}/webhooks`, fillWebhook);

function fillWebhook(row, { id, url, events, creator, failing_since, ended_at }) {
  const name = first(row, "[data-name]");
  name.textContent = url;
  name.id = `webhook-${id}`;
  for (const button of all(row, "button")) button.setAttribute("aria-describedby", name.id);
  const sentences = [];
  if (ended_at) sentences.push(gettext("This webhook has ended, because nothing arrived there."));
  else if (failing_since)
    sentences.push(
      gettext("Nothing arrives there since %(date)s.", { date: dateOf(failing_since) }),
    );
  const sent = joined(events.map((event) => EVENTS[event] ?? event));
  const by = gettext("by %(name)s", { name: creator.display_name || creator.username });
  first(row, "[data-state]").textContent = [...sentences, `${sent} · ${by}`].join(" ");
  first(row, "[data-action=show-deliveries]").dataset.url = `${root}/webhooks/${id}/deliveries`;
  first(row, "[data-action=delete-webhook]").dataset.url = `${root}/webhooks/${id}`;
}

const waitingAfter = (attempts) =>
  attempts > 0
    ? ngettext("waits, %(num)s attempt", "waits, %(num)s attempts", attempts)
    : gettext("waits");

const givenUpAfter = (attempts) =>
  attempts > 0
    ? ngettext("given up, %(num)s attempt", "given up, %(num)s attempts", attempts)
    : gettext("given up");

const rowWith = (textContent) => Object.assign(document.createElement("li"), { textContent });

/** Return a row about a delivery. An error of the network is in English. */
function rowOf(delivery) {
  const row = rowWith(describeDelivery(delivery));
  if (delivery.error) {
    const error = document.createElement("span");
    Object.assign(error, { lang: "en", dir: "ltr", textContent: `(${delivery.error})` });
    row.append(" ", error);
  }
  return row;
}

function describeDelivery({ event, state, created_at, attempts, status }) {
  const name = EVENTS[event] ?? event;
  const time = new Date(created_at).toLocaleString(locale);
  if (state === "delivered") return gettext("%(time)s: %(name)s – arrived", { time, name });
  const words = state === "waiting" ? waitingAfter(attempts) : givenUpAfter(attempts);
  const reason = status && gettext("answer %(status)s", { status });
  return reason
    ? gettext("%(time)s: %(name)s – %(words)s (%(reason)s)", { time, name, words, reason })
    : gettext("%(time)s: %(name)s – %(words)s", { time, name, words });
}

onAction("show-deliveries", async (button) => {
  const list = first(button.closest("li"), "[data-deliveries]");
  if (list.hidden) {
    const { data } = await request("GET", button.dataset.url);
    const rows = data.length > 0 ? data.map(rowOf) : [rowWith(gettext("Nothing yet."))];
    list.replaceChildren(...rows);
  }
  list.hidden = !list.hidden;
  button.setAttribute("aria-expanded", String(!list.hidden));
});

onAction("delete-webhook", async (button) => {
  if (!(await sendRequest(button))) return;
  await showWebhooks();
  listOf("webhooks").focus();
});

const chosenEvents = (form) => all(form, "[name='events[]']:checked").map(({ value }) => value);

onForm("webhook", {
  prepare(form) {
    if (chosenEvents(form).length > 0) return true;
    noticeOf(form).textContent = gettext("Choose at least one thing that is sent.");
    return false;
  },
  toBody: ({ url, current_password }, form) => ({
    ...{ url, current_password },
    events: chosenEvents(form),
  }),
  async sent(form, { secret }) {
    form.reset();
    showSecret(
      form,
      gettext("The secret for the program. Copy it now: it is not shown again."),
      secret,
    );
    await showWebhooks();
  },
});

onForm("backup", {
  async sent(form) {
    const before = await showState();
    // The browser shows the progress, and keeps this page if the service refuses.
    Object.assign(document.createElement("a"), { href: `${root}/backup`, download: "" }).click();
    for (let tries = 0; tries < TRIES; tries++) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      if ((await showState()) === before) continue;
      form.reset();
      return say(gettext("The download has begun. Keep the file where nobody else can read it."));
    }
    throw new Problem(503, explainProblem({ code: "backup_busy" }, "other"));
  },
});

/** Show a part of the page, or say why it cannot be shown. */
async function showIn(place, show) {
  await show().catch((error) => {
    place.textContent = problemOf(error).message;
  });
}

async function showSite() {
  const { data, etag } = await request("GET", `${root}/site`);
  former = data;
  form().dataset.version = tagOf(etag);
  for (const control of all(form(), "[name]")) {
    if (control.type === "radio") control.checked = control.value === data[control.name];
    else control.value = control.defaultValue = data[control.name] ?? "";
    control.disabled = data.fixed.includes(control.name);
  }
  const notice = first(document, "#fixed");
  notice.hidden = data.fixed.length === 0;
  first(notice, "[data-words]").textContent = joined(data.fixed.map(nameOfSetting));
  form().inert = false;
  for (const name of Object.keys(PICTURES)) showPicture(name, data[`${name}_url`]);
}

/** Show the present logo or cover, if there is one. */
function showPicture(name, url) {
  const { alt, size, width, height } = PICTURES[name];
  const image = Object.assign(document.createElement("img"), { alt, width, height });
  if (url) image.src = `${root}/site/${name}/${url.split("/").pop()}/${size}`;
  first(document, `#${name}-now`).replaceChildren(...(url ? [image] : []));
  first(document, `[data-action=delete-${name}]`).hidden = url === null;
}

/**
 * Show a change of a picture. What is being written about the site stays, and can be saved unless
 * somebody else has changed it meanwhile.
 */
async function showChange(text) {
  const { data, etag } = await request("GET", `${root}/site`);
  for (const name of Object.keys(PICTURES)) showPicture(name, data[`${name}_url`]);
  const isSame = all(form(), "[name]").every(({ name }) => data[name] === former[name]);
  if (isSame) form().dataset.version = tagOf(etag);
  say(text);
}

onForm("site", {
  isFilled: true,
  toBody: (values) =>
    Object.fromEntries(
      Object.entries(values).filter(
        ([name, value]) => value !== (former[name] ?? null) && !former.fixed.includes(name),
      ),
    ),
  sent(_form, { language }) {
    // The next page may be in another language.
    if (language === document.documentElement.lang)
      sayNext(gettext("It is saved, and holds from now on."));
    goTo(`${root}/keeping`);
  },
});

onEvent("change", async (target) => {
  const picture = PICTURES[target.id];
  if (!picture || !target.files[0]) return;
  const error = first(document, `#${target.id}-error`);
  error.textContent = "";
  const body = new FormData();
  body.append("file", target.files[0]);
  target.value = "";
  const url = `${root}/site/${target.id}`;
  const response = await fetch(url, { method: "PUT", body }).catch(() => null);
  const text = (await response?.text()) ?? "";
  try {
    result(response?.status ?? 0, text, null, "image");
    await showChange(picture.saved);
  } catch (problem) {
    error.textContent = problemOf(problem).message;
  }
});

for (const [name, { deleted }] of Object.entries(PICTURES))
  onAction(`delete-${name}`, async (button) => {
    if (await sendRequest(button)) await showChange(deleted);
  });

ready(showForms);
