// The page of moderation: open and closed reports, applications, the latest comments, and the log.

import { me, moderates, setMe } from "./account.js";
import { onAction } from "./actions.js";
import { request } from "./api.js";
import { sendRequest } from "./buttons.js";
import { first } from "./dom.js";
import { gettext } from "./language.js";
import "./main.js";
import { nameOf, reasonOf, sentenceOf } from "./moderating.js";
import { root } from "./page.js";
import { problemOf } from "./problem.js";
import { showClosedReports, showReports } from "./reports.js";
import { listInPages, listOf } from "./rows.js";
import { say } from "./status.js";

const URLS = {
  applications: `${root}/applications`,
  comments: `${root}/comments?limit=20`,
  log: `${root}/moderation/log`,
};
const LISTS = {
  reports: showReports,
  applications: listInPages("applications", "application-row", URLS.applications, fillApplication),
  comments: listInPages("comments", "comment-row", URLS.comments, fillComment),
  "closed-reports": showClosedReports,
  log: listInPages("log", "act-row", URLS.log, fillAct),
};

let isShown = false;

/** Show all lists at once, so that nothing moves, to moderators. The service knows who is one. */
async function showDesk() {
  if (me === null || isShown) return;
  isShown = true;
  const { data } = await request("GET", `${root}/users/me`).catch(() => ({ data: me }));
  if (data.role !== me?.role) setMe(data);
  first(document, "#no-moderator").hidden = moderates();
  if (!moderates()) return;
  await Promise.all(Object.keys(LISTS).map(show));
  first(document, "#desk").hidden = false;
}

async function show(name) {
  const place = first(sectionOf(name), ".problem");
  try {
    await LISTS[name]();
    showWhetherEmpty(name);
  } catch (error) {
    place.textContent = problemOf(error).message;
  }
}

const sectionOf = (name) => listOf(name).closest("section");

function showWhetherEmpty(name) {
  first(sectionOf(name), "[data-none]").hidden = listOf(name).children.length > 0;
}

function fillApplication(row, { id, username, display_name, bio, application, created_at }) {
  const name = first(row, "[data-name]");
  name.textContent = display_name ? `${display_name} (@${username})` : username;
  name.id = `application-${id}`;
  first(row, "time").dateTime = created_at;
  first(row, "[data-bio]").textContent = bio ?? "";
  first(row, "[data-reason]").textContent = application;
  const url = `${root}/applications/${id}`;
  for (const [action, target] of [
    ["approve", `${url}/approval`],
    ["refuse", url],
  ]) {
    const button = first(row, `[data-action=${action}]`);
    button.dataset.url = target;
    button.setAttribute("aria-describedby", name.id);
  }
}

function fillComment(row, { id, post_id, post_title, author, content, created_at }) {
  const title = first(row, "[data-title]");
  title.textContent = post_title;
  title.href = `${root}/p/${post_id}?comment=${id}#c-${id}`;
  first(row, "[data-by-whom]").textContent = nameOf(author);
  first(row, "time").dateTime = created_at;
  first(row, "[data-excerpt]").textContent = content;
}

function fillAct(row, act) {
  first(row, "[data-words]").textContent = sentenceOf(act);
  first(row, "time").dateTime = act.created_at;
  first(row, "[data-reason]").textContent = reasonOf(act);
}

/** Decide on an application, and show the next one. */
async function decide(button) {
  let text = button.dataset.done;
  try {
    if (!(await sendRequest(button))) return;
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    text = gettext("Another moderator has decided on this application already.");
  }
  const row = button.closest("li");
  const next = row.nextElementSibling ?? row.previousElementSibling ?? listOf("applications");
  row.remove();
  showWhetherEmpty("applications");
  next.focus();
  say(text);
  document.dispatchEvent(new Event("acted"));
}

onAction("approve", decide);
onAction("refuse", decide);

document.addEventListener("account", showDesk);
document.addEventListener("acted", () => Promise.all(["closed-reports", "log"].map(show)));
