// The form that suspends a member, on the page of the member and beside reports.

import { request, tagOf } from "./api.js";
import { showErrors } from "./fields.js";
import { gettext } from "./language.js";
import { sentenceOfSuspension } from "./moderating.js";

/**
 * If the member is suspended already, show that suspension, and let the next attempt replace it.
 * Return whether it is shown.
 * @param {HTMLFormElement} form
 * @param {import("./problem.js").Problem} problem
 */
export async function showFormer(form, { status }) {
  if (status !== 412 && status !== 428) return false;
  try {
    const { data, etag } = await request("GET", form.action);
    form.dataset.version = tagOf(etag);
    const message = `${sentenceOfSuspension(data)} ${gettext("Suspend again to replace this.")}`;
    showErrors(form, { message, errors: [] });
    return true;
  } catch {
    delete form.dataset.version; // another moderator has lifted it
    return false;
  }
}
