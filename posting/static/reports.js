// The reports on the page of moderation, and what moderators do about them. When another moderator
// has done it meanwhile, the row says so.

import { me } from "./account.js";
import { onAction } from "./actions.js";
import { request } from "./api.js";
import { all, copyOf, first } from "./dom.js";
import { onForm } from "./forms.js";
import { gettext } from "./language.js";
import {
  changeOf,
  nameOf,
  outcomeOf,
  placeOf,
  resourceOf,
  suspensionOf,
  titleOf,
} from "./moderating.js";
import { openQuestion } from "./opening.js";
import { root } from "./page.js";
import { listInPages, listOf } from "./rows.js";
import { say } from "./status.js";
import { showFormer } from "./suspending.js";
import { showTimes } from "./times.js";

/** @typedef {import("./moderating.js").Report} Report */

/** @type {WeakMap<Element, Report>} the reports that rows show */
const shown = new WeakMap();

const rows = () => all(listOf("reports"), ":scope > li");
const rowOf = (element) => element.closest("[data-reports] > li");

export const showReports = listInPages("reports", "report-row", `${root}/reports`, fillRow);

export const showClosedReports = listInPages(
  "closed-reports",
  "report-row",
  `${root}/reports?state=closed`,
  (row, report) => {
    describe(row, report);
    first(row, ".actions").remove();
  },
);

/**
 * @param {HTMLElement} row
 * @param {Report} report
 */
function describe(row, report) {
  const { reporter, target, reason, state, created_at } = report;
  const title = first(row, "[data-title]");
  title.textContent = titleOf(target);
  const path = placeOf(target);
  if (path) title.href = root + path;
  first(row, "[data-change]").textContent = changeOf(target);
  first(row, "[data-excerpt]").textContent = target.excerpt;
  const pictures = first(row, "[data-pictures]");
  pictures.hidden = target.images.length === 0;
  pictures.replaceChildren(...target.images.map(pictureOf));
  const downloads = first(row, "[data-downloads]");
  downloads.hidden = target.files.length === 0;
  downloads.replaceChildren(...target.files.map(downloadOf));
  const isOnReader = target.author?.id === me?.id;
  first(row, "[data-by-whom]").textContent = isOnReader ? gettext("a member") : nameOf(reporter);
  first(row, "time").dateTime = created_at;
  first(row, "[data-reason]").textContent = reason;
  const outcome = first(row, "[data-outcome]");
  outcome.textContent = outcomeOf(report);
  outcome.hidden = state === "open";
}

/** Return an image as a link to its file. */
function pictureOf({ alt, thumbnail_url, url }, index) {
  const link = document.createElement("a");
  const image = document.createElement("img");
  link.href = new URL(url).pathname;
  image.src = new URL(thumbnail_url ?? url).pathname;
  image.alt = alt || gettext("Image %(number)s, without a description", { number: index + 1 });
  link.append(image);
  return link;
}

/** Return a file as a list item with a link to it. */
function downloadOf({ name, url }) {
  const link = document.createElement("a");
  link.href = new URL(url).pathname;
  link.textContent = name;
  link.dir = "auto";
  link.download = "";
  const item = document.createElement("li");
  item.append(link);
  return item;
}

/**
 * @param {HTMLElement} row
 * @param {Report} report
 */
function fillRow(row, report) {
  const { id, target, state } = report;
  shown.set(row, report);
  describe(row, report);
  const title = first(row, "[data-title]");
  title.id = `report-${id}`;
  const resource = resourceOf(target);
  const urls = {
    delete: target.exists && resource,
    suspend:
      target.author && target.author.id !== me?.id && `/users/${target.author.id}/suspension`,
    dismiss: state === "open" && `/reports/${id}`,
  };
  for (const [action, url] of Object.entries(urls)) {
    const button = first(row, `[data-action=${action}]`);
    button.hidden = !url;
    button.dataset.url = url ? root + url : "";
    button.setAttribute("aria-describedby", title.id);
  }
}

/** Show the reports that an act on one of them concerns as they are now, with the focus on this one. */
async function update(row) {
  const { target } = shown.get(row);
  for (const each of rows()) {
    const { id, target: other } = shown.get(each);
    const ids = [other.id, other.post_id];
    if (!ids.includes(target.id) && !ids.includes(target.author?.id)) continue;
    const { data } = await request("GET", `${root}/reports/${id}`);
    const fresh = copyOf("report-row");
    fillRow(fresh, data);
    showTimes(fresh);
    each.replaceWith(fresh);
    if (each === row) fresh.focus();
  }
  document.dispatchEvent(new Event("acted"));
}

/** Show what another moderator has done meanwhile, if the problem is that. */
async function failed(form, { status, message }) {
  if (status !== 404 && status !== 409) return false;
  try {
    await update(rowOf(form));
  } catch {
    return false;
  }
  say(message);
  return true;
}

onAction("delete", (button) => openQuestion("deletion-form", button));
onAction("suspend", (button) => openQuestion("suspension-form", button));
onAction("dismiss", (button) => openQuestion("dismissal-form", button));

onForm("deletion", {
  failed,
  async sent(form) {
    await update(rowOf(form));
    say(gettext("It is deleted."));
  },
});

onForm("suspension", {
  failed: async (form, problem) => (await showFormer(form, problem)) || failed(form, problem),
  toBody: (values) => suspensionOf(values),
  async sent(form) {
    const row = rowOf(form);
    await close(shown.get(row));
    await update(row);
    say(gettext("The author is suspended, and signed out everywhere."));
  },
});

onForm("dismissal", {
  failed,
  async sent(form) {
    await update(rowOf(form));
    say(gettext("The report is dismissed."));
  },
});

/** Close a report because its author is suspended, unless it is closed. */
async function close({ id, state }) {
  if (state === "closed") return;
  try {
    await request("PATCH", `${root}/reports/${id}`, { body: { outcome: "suspended" } });
  } catch (problem) {
    if (problem.status !== 409) throw problem;
  }
}
